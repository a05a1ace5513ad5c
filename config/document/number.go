// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Numbers, times and durations are taken when they can be kept as they are
// written, and never cut.

var (
	digits    = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$`)
	justZeros = regexp.MustCompile(`^[-+]?[0._]*([eE]|$)`)
)

var errTooLong = errors.New("a number that does not fit a 64-bit integer: write a string in quotes")

// float reads a number that YAML takes for one with a fraction. It is no 64-bit
// integer that is too long, and not too small to be told from 0.
// No error holds the number, which may be of a Secret.
func float(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil, math.IsNaN(v), math.IsInf(v, 0):
		return 0, errors.New("a number that JSON cannot hold: write a string in quotes")
	case digits.MatchString(text):
		return 0, errTooLong
	case v == 0 && !justZeros.MatchString(text):
		return 0, errors.New("a number that JSON cannot tell from 0: write 0")
	}
	return v, nil
}

// parseNumber reads a finite number: JSON, and so Kubernetes, has no other. ok is
// false when 32 or 64 bits do not keep all of its digits.
func parseNumber(n *yaml.Node, bits int) (f float64, ok bool) {
	f, ok = nearest(n, bits)
	if !ok {
		return 0, false
	}
	written, ok := rational(n)
	kept, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, bits))
	return f, ok && written.Cmp(kept) == 0
}

// nearest is the number of so many bits that is next to the one written.
func nearest(n *yaml.Node, bits int) (float64, bool) {
	if n.Tag != "!!float" && n.Tag != "!!int" {
		return 0, false
	}
	text := n.Value
	if i, ok := new(big.Int).SetString(text, 0); ok && n.Tag == "!!int" { // 0x10, 1_000
		text = i.String()
	}
	f, err := strconv.ParseFloat(text, bits)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// maxExponent is the largest exponent that is worked out: no finite number has
// a larger one.
const maxExponent = 5000

// rational is the number as it is written.
func rational(n *yaml.Node) (*big.Rat, bool) {
	if i, ok := new(big.Int).SetString(n.Value, 0); ok && n.Tag == "!!int" {
		return new(big.Rat).SetInt(i), true
	}
	if justZeros.MatchString(n.Value) {
		return new(big.Rat), true
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(n.Value), "e"); ok {
		if e, err := strconv.Atoi(exponent); err != nil || max(e, -e) > maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(n.Value)
}

// numberHint says what to write for a number whose digits are not all kept.
func numberHint(n *yaml.Node, bits int) string {
	f, ok := nearest(n, bits)
	if !ok || n.Kind != yaml.ScalarNode {
		return ""
	}
	return fmt.Sprintf(", of which %d bits do not keep all digits: write %s", bits, strconv.FormatFloat(f, 'g', -1, bits))
}

var (
	durationTerm  = regexp.MustCompile(`([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h)`)
	durationUnits = map[string]time.Duration{"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond,
		"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour}
	pastNanoseconds = regexp.MustCompile(`[.,][0-9]{9}0*[1-9]`)
)

// isWhole says whether a duration that was read from a text is all of it, and
// not cut at a nanosecond.
func isWhole(v time.Duration, text string) bool {
	sum := new(big.Rat)
	for _, term := range durationTerm.FindAllStringSubmatch(text, -1) {
		amount, ok := new(big.Rat).SetString(term[1])
		if !ok {
			return false
		}
		sum.Add(sum, amount.Mul(amount, new(big.Rat).SetInt64(int64(durationUnits[term[2]]))))
	}
	return sum.Cmp(new(big.Rat).Abs(new(big.Rat).SetInt64(int64(v)))) == 0
}
