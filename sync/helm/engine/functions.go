// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"text/template"
)

// Functions that give something else each time, or that ask the clock or the zone of the
// machine.
var (
	random = []string{"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "uuidv4", "shuffle", "genPrivateKey", "genCA", "genCAWithKey",
		"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "bcrypt", "htpasswd", "encryptAES"}
	clock = []string{"now", "ago", "date", "dateInZone", "date_in_zone", "dateModify", "date_modify", "mustDateModify", "must_date_modify",
		"htmlDate", "htmlDateInZone", "toDate", "mustToDate"}
)

// unsteady is the error of a function that would give something else another time.
type unsteady struct{ function, why string }

func (e *unsteady) Error() string {
	return fmt.Sprintf("%s is called, which %s", e.function, e.why)
}

// steady are functions in place of those of Helm's that do not give the same every time.
// looked is called when a chart looks for an object of the cluster.
func steady(looked func()) template.FuncMap {
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
			looked()
			return map[string]any{}, nil
		},
	}
	refuse := func(names []string, why string) {
		for _, name := range names {
			functions[name] = func(...any) (any, error) { return nil, &unsteady{name, why} }
		}
	}
	refuse(random, "gives something else each time")
	refuse(clock, "asks the clock or the time zone")
	return functions
}
