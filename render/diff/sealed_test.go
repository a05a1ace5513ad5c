// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"strings"
	"testing"
)

// sealed is a Secret as sops writes it, with another text for each value.
func sealed(value string) string {
	const metadata = "sops: {age: [], lastmodified: \"2026-11-23T15:15:12Z\", mac: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\", version: 3.13.3}\n"
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {same: \"ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\", password: \"ENC[AES256_GCM,data:" + value + ",iv:AAAA,tag:AAAA,type:str]\"}\n" + metadata
}

// TestSealed: of encrypted values, the report says which changed, by their hashes.
func TestSealed(t *testing.T) {
	report := compare(t, snapshot(t, map[string]string{"s": sealed("AAAA")}), snapshot(t, map[string]string{"s": sealed("BBBB")}))
	var got strings.Builder
	if err := report.Write(&got); err != nil {
		t.Fatal(err)
	}
	const want = `services/s
  configured Secret/ns/s on 2 targets: one, two
    - stringData.password: (encrypted, sha256 274e7138)
    + stringData.password: (encrypted, sha256 9658e736)
`
	if got.String() != want {
		t.Errorf("got %s", got.String())
	}
}
