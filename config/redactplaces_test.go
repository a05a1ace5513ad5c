// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

// TestMarksAreShown: swell's own keys in an override of labels were hidden.
func TestMarksAreShown(t *testing.T) {
	roots, err := DecodeAll([]byte("override: {o: {update: [{path: metadata.labels, value: {app.kubernetes.io/managed-by: helm, swell.sh/unit: x, app.kubernetes.io/kX9vQ2mT7pLz4WbN: y}}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	var r Redactor
	r.AddPlaces(SecretPlaces(roots[0], nil))
	for text, want := range map[string]string{
		`["app.kubernetes.io/managed-by"]`:       `["app.kubernetes.io/managed-by"]`,
		`["swell.sh/unit"]`:                      `["swell.sh/unit"]`,
		`["app.kubernetes.io/kX9vQ2mT7pLz4WbN"]`: `["(secret)"]`,
	} {
		if got := r.Redact(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
