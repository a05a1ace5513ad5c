// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/swell-sh/swell/config/timezone"
)

// Functions that give something else each time, or that ask the clock or the zone of the
// machine. The others of sprig's for dates give the same for the same date.
var (
	random = []string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "uuidv4", "shuffle", "genPrivateKey", "genCA", "genCAWithKey",
		"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "bcrypt", "htpasswd", "encryptAES"}
	clock = []string{"now", "ago", "date", "dateInZone", "date_in_zone", "htmlDate", "htmlDateInZone",
		"toDate", "mustToDate", "durationRound"}
)

// unsteady is the error of a function that would give something else another time.
type unsteady struct{ function, why string }

func (e *unsteady) Error() string {
	return fmt.Sprintf("%s is called, which %s", e.function, e.why)
}

// chance stands for all that is another thing each time, in one rendering: what chance, the
// clock and the zone give is the one or the other of two sides, the same whenever that side is
// asked for. A chart that gives the same with both does not use it.
type chance struct {
	// sides says which side a call gets, by its number.
	sides func(call int) side
	// refused is the number of the call that is an error; none where it is below zero.
	refused int
	// kept are values that are made by chance, of all renderings of a request: by call and side.
	kept map[callSide][]reflect.Value

	calls  int
	looked bool // for an object of the cluster
}

type side int

type callSide struct {
	call int
	side side
}

// moments and zones are those of the sides.
var (
	zones   = [2]*time.Location{time.UTC, time.FixedZone("", (13*60+45)*60)}
	moments = [2]time.Time{time.Date(2006, 1, 2, 15, 4, 5, 0, zones[0]), time.Date(2033, 11, 30, 23, 59, 58, 0, zones[1])}
)

// ask is a call of a function: the side that it gets, and its number.
func (c *chance) ask(name, why string) (side, int) {
	call := c.calls
	c.calls++
	if call == c.refused {
		panic(&unsteady{name, why}) // which text/template makes the error of the call
	}
	return c.sides(call), call
}

// functions are those in place of Helm's that do not give the same every time.
func (c *chance) functions() template.FuncMap {
	functions := template.FuncMap{
		"keys": func(all ...map[string]any) []string {
			var keys []string
			for _, m := range all {
				keys = append(keys, slices.Sorted(maps.Keys(m))...)
			}
			return keys
		},
		"values": func(m map[string]any) []any {
			values := make([]any, 0, len(m))
			for _, key := range slices.Sorted(maps.Keys(m)) {
				values = append(values, m[key])
			}
			return values
		},
		"lookup": func(string, string, string, string) (map[string]any, error) {
			c.looked = true
			return map[string]any{}, nil
		},
	}
	usual := sprig.TxtFuncMap()
	for _, name := range random {
		functions[name] = c.keep(name, usual[name])
	}
	maps.Copy(functions, c.texts())
	maps.Copy(functions, c.dates())
	return functions
}

const (
	isRandom = "gives something else each time"
	isClock  = "asks the clock or the time zone"
)

// keep is a function whose values differ by themselves: keys, certificates, salted hashes.
func (c *chance) keep(name string, function any) any {
	f := reflect.ValueOf(function)
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		which, call := c.ask(name, isRandom)
		key := callSide{call, which}
		if c.kept[key] == nil {
			if f.Type().IsVariadic() {
				c.kept[key] = f.CallSlice(args)
			} else {
				c.kept[key] = f.Call(args)
			}
		}
		return c.kept[key]
	}).Interface()
}

// texts are the functions of which the sides are plain to make.
func (c *chance) texts() template.FuncMap {
	functions := template.FuncMap{
		"randBytes": func(n int) string {
			which, _ := c.ask("randBytes", isRandom)
			return base64.StdEncoding.EncodeToString(slices.Repeat([]byte{[2]byte{0, 255}[which]}, n))
		},
		"randInt": func(least, end int) int {
			which, _ := c.ask("randInt", isRandom)
			return [2]int{least, max(least, end-1)}[which]
		},
		"uuidv4": func() string {
			which, _ := c.ask("uuidv4", isRandom)
			return [2]string{"00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"}[which]
		},
		"shuffle": func(text string) string {
			which, _ := c.ask("shuffle", isRandom)
			runes := []rune(text)
			if which == 1 {
				slices.Reverse(runes)
			}
			return string(runes)
		},
	}
	for name, letters := range map[string][2]string{
		"randAlphaNum": {"a", "7"}, "randAlpha": {"a", "Z"}, "randAscii": {"a", "~"}, "randNumeric": {"1", "8"},
	} {
		functions[name] = func(n int) string {
			which, _ := c.ask(name, isRandom)
			return strings.Repeat(letters[which], n)
		}
	}
	return functions
}

// dates are the functions that ask the clock or the zone. What they are given for a date and
// is none is now, as to sprig.
func (c *chance) dates() template.FuncMap {
	inZone := func(name, format string, date any, zone string) string {
		t, known := moment(date)
		location, err := timezone.Load(zone)
		if err != nil {
			location = time.UTC
		}
		if !known || zone == "Local" {
			which, _ := c.ask(name, isClock)
			if !known {
				t = moments[which]
			}
			if zone == "Local" {
				location = zones[which]
			}
		}
		return t.In(location).Format(format)
	}
	toDate := func(name string) func(format, text string) (time.Time, error) {
		return func(format, text string) (time.Time, error) {
			which, _ := c.ask(name, isClock)
			return time.ParseInLocation(format, text, zones[which])
		}
	}
	since := func(name string, date any) time.Duration {
		which, _ := c.ask(name, isClock)
		t, known := moment(date)
		if !known {
			t = moments[which]
		}
		return moments[which].Sub(t)
	}
	round := sprig.TxtFuncMap()["durationRound"].(func(any) string)
	return template.FuncMap{
		"now": func() time.Time {
			which, _ := c.ask("now", isClock)
			return moments[which]
		},
		"ago":            func(date any) string { return since("ago", date).Round(time.Second).String() },
		"date":           func(format string, date any) string { return inZone("date", format, date, "Local") },
		"htmlDate":       func(date any) string { return inZone("htmlDate", time.DateOnly, date, "Local") },
		"dateInZone":     func(format string, date any, zone string) string { return inZone("dateInZone", format, date, zone) },
		"date_in_zone":   func(format string, date any, zone string) string { return inZone("date_in_zone", format, date, zone) },
		"htmlDateInZone": func(date any, zone string) string { return inZone("htmlDateInZone", time.DateOnly, date, zone) },
		"toDate": func(format, text string) time.Time {
			t, _ := toDate("toDate")(format, text) // as sprig's: the zero time
			return t
		},
		"mustToDate": toDate("mustToDate"),
		"durationRound": func(duration any) string {
			if t, ok := duration.(time.Time); ok {
				return round(since("durationRound", t).String())
			}
			return round(duration)
		},
	}
}

// moment is a date as sprig takes it.
func moment(date any) (t time.Time, known bool) {
	switch date := date.(type) {
	case time.Time:
		return date, true
	case *time.Time:
		return *date, true
	case int64:
		return time.Unix(date, 0), true
	case int:
		return time.Unix(int64(date), 0), true
	case int32:
		return time.Unix(int64(date), 0), true
	}
	return time.Time{}, false
}
