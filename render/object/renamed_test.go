// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import "testing"

func TestRenamed(t *testing.T) {
	const before = `{"data":{"x":"\"swell.sh/unit\":\"a\""},"metadata":{"annotations":{"a":"b","swell.sh/unit":"shop/c\"art","z":"1"}}}`
	b := &Bundle{Unit: `shop/c"art`, Digest: "d", Objects: []*Object{{Digest: "o", JSON: []byte(before)}, {JSON: []byte(`{"kind":"X"}`)}}}
	renamed := b.Renamed("shop/ba&sket")
	const want = `{"data":{"x":"\"swell.sh/unit\":\"a\""},"metadata":{"annotations":{"a":"b","swell.sh/unit":"shop/ba&sket","z":"1"}}}`
	if got := string(renamed.Objects[0].JSON); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if string(b.Objects[0].JSON) != before || renamed.Unit != "shop/ba&sket" || renamed.Digest != "d" || renamed.Objects[0].Digest != "o" {
		t.Errorf("bundle %+v, renamed %+v", b, renamed)
	}
	for _, c := range []struct{ before, want string }{
		{
			`{"config":{"swell.sh/unit":"mine"},"list":[{"swell.sh/unit":"x"},1],"metadata":{"annotations":{"swell.sh/unit":"a"},"n":1}}`,
			`{"config":{"swell.sh/unit":"mine"},"list":[{"swell.sh/unit":"x"},1],"metadata":{"annotations":{"swell.sh/unit":"b"},"n":1}}`,
		},
		{`{"metadata":{"annotations":{"swell.sh/unit":{"a":1}}}}`, `{"metadata":{"annotations":{"swell.sh/unit":{"a":1}}}}`},
		{
			`{"metadata":{"a":null,"x":{"annotations":{"swell.sh/unit":"a"}}}}`,
			`{"metadata":{"a":null,"x":{"annotations":{"swell.sh/unit":"a"}}}}`,
		},
	} {
		if got := string(withUnit([]byte(c.before), "b")); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if got := string(renamed.Objects[1].JSON); got != `{"kind":"X"}` {
		t.Errorf("an object without the annotation became %s", got)
	}
}
