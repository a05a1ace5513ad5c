// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
)

// executed is what a template makes of a value.
func executed(t *testing.T, template string, x any) (string, error) {
	t.Helper()
	parsed, problem := parseTemplate("f", []byte(template))
	if problem != nil {
		t.Fatal(problem)
	}
	text, _, err := parsed.execute(x)
	return text, err
}

// TestPrintfVerbs: %p printed an address, which is another one each time.
func TestPrintfVerbs(t *testing.T) {
	for verb := rune(' '); verb < 0x7f; verb++ {
		text, err := executed(t, fmt.Sprintf(`{{printf %q .}}`, "%"+string(verb)), map[string]any{"a": int64(1)})
		again, _ := executed(t, fmt.Sprintf(`{{printf %q .}}`, "%"+string(verb)), map[string]any{"a": int64(1)})
		if known := strings.ContainsRune(verbs+"%", verb); known != (err == nil) || text != again {
			t.Errorf("%%%c: got %q, then %q, and %v", verb, text, again, err)
		}
	}
	for format, want := range map[string]string{
		"%s=%d %g":                 "x=7 0.5",
		"%-4s|%04d|%+g%%":          "x   |0007|+0.5%",
		"%[2]d %[1]s":              "7 x",
		"%5[2]d %.1f":              "    7 0.5",
		"%5.2[3]f":                 " 0.50",
		"%#x %q %e":                "0x78 '\\a' 5.000000e-01",
		"%v %v %v":                 "x 7 0.5",
		"no":                       "no%!(EXTRA string=x, int64=7, float64=0.5)",
		"%[9]d":                    "%!d(BADINDEX)",
		"%[99999999999999999999]d": "!not known|BADINDEX",
		"%p":                       `!printf: "%p" is not known here: want %, flags`,
		"%5.2p":                    `!printf: "%5.2p" is not known here`,
		"%T":                       `!printf: "%T" is not known here`,
		"%w":                       `!printf: "%w" is not known here`,
		"%":                        `!printf: "%" is not known here`,
		"%[1]*d":                   `!is not known here`,
		"%[1]5d":                   `!is not known here`,
		"%.*f":                     `!is not known here`,
		"%1000d":                   `!want a width below 1000`,
		"%.1000f":                  `!want a width below 1000`,
	} {
		text, err := executed(t, "{{printf .f .s .d .e}}", map[string]any{"f": format, "s": "x", "d": int64(7), "e": 0.5})
		if strings.Contains(want, "|BADINDEX") {
			if !strings.Contains(text, "BADINDEX") {
				t.Errorf("%s: got %q %v", format, text, err)
			}
			continue
		}
		if message, wrong := strings.CutPrefix(want, "!"); wrong && (err == nil || !strings.Contains(err.Error(), message)) || !wrong && (err != nil || text != want) {
			t.Errorf("%s: got %q %v, want %q", format, text, err, want)
		}
	}
}

// TestPrintfSize: many widths with numbers of arguments made gigabytes.
func TestPrintfSize(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	many := make([]any, 20_000)
	for i := range many {
		many[i] = long[:100]
	}
	for name, c := range map[string]struct {
		template string
		x        any
	}{
		"width":       {"{{printf . 1}}", strings.Repeat("%999[1]d", 200_000)},
		"precision":   {"{{printf . 1}}", strings.Repeat("%.999[1]d", 200_000)},
		"flags":       {"{{printf . 1}}", strings.Repeat("%+-999[1]d", 200_000)},
		"argument":    {"{{printf .f .x}}", map[string]any{"x": long, "f": strings.Repeat("%[1]s", 1000)}},
		"hexadecimal": {`{{printf "%# x%# [1]x%# [1]x" .}}`, long},
		"list":        {`{{printf "%999s" .}}`, many},
		"missing":     {"{{printf .}}", strings.Repeat("%d", 2_000_000)},
		"others":      {"{{printf `` " + strings.Repeat(". ", 1000) + "}}", long},
		"floats":      {"{{printf .f .x}}", map[string]any{"x": 1e308, "f": strings.Repeat("%[1]f", 200_000)}},
		"print":       {"{{print " + strings.Repeat(". ", 1000) + "}}", long},
		"println":     {"{{println " + strings.Repeat(". ", 1000) + "}}", long},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text, err := executed(t, c.template, c.x)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than 8 MiB") {
			t.Errorf("%s: got %d bytes and %v", name, len(text), err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 100 {
			t.Errorf("%s: allocated %d MiB", name, used)
		}
	}
	if text, err := executed(t, `{{printf "%s and %s" . .}}`, long); err != nil || len(text) != 2<<20+5 {
		t.Errorf("got %d bytes and %v", len(text), err)
	}
}

// TestPrintedSize: no text is longer than its bound.
func TestPrintedSize(t *testing.T) {
	values := []any{nil, true, int64(math.MinInt64), 7, 'x', 1e308, -math.MaxFloat64, 5e-324, 1i, "", "x", "\x00\u0080\ufffe\U0010ffff\xff`\"", strings.Repeat("\x00", 100)}
	values = append(values, []any{}, map[string]any{}, values, []any{values, values}, map[string]any{"": nil, "\x00\x00": values, "k": map[string]any{"k": []any{int64(1), nil}}})
	for _, verb := range verbs {
		for _, flags := range []string{"", "#", "+", " ", "0", "-", "# ", "+#", "# +-0"} {
			for _, width := range []string{"", "9", "999", ".", ".9", ".999", "999.999"} {
				for _, value := range values {
					format := "%" + flags + width + string(verb)
					if text, bound := fmt.Sprintf(format, value), printedPart+printedSize(directive.FindStringSubmatch(format), value); len(text) > bound {
						t.Errorf("%s of %.50v: %d bytes, bound %d", format, value, len(text), bound)
					}
				}
			}
		}
	}
	for _, value := range values {
		texts := []string{fmt.Sprint(value, value), fmt.Sprintln(value)}
		for _, none := range []string{""} {
			texts = append(texts, fmt.Sprintf(none, value))
		}
		for _, text := range texts {
			if bound := printedWhole([]any{value, value}); len(text) > bound {
				t.Errorf("%.50v: %d bytes, bound %d", value, len(text), bound)
			}
		}
	}
}
