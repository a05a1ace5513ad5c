// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
)

// TestUniqueFromCommitToCommit changes hosts, ports and service accounts of a few specs at random: a
// compiler that saw every commit finds the same collisions as a new one.
func TestUniqueFromCommitToCommit(t *testing.T) {
	archive, err := txtar.ParseFile("../testdata/bad/unique.txtar")
	if err != nil {
		t.Fatal(err)
	}
	base := exampleFiles(t, "swell.yaml", "fleet")
	for _, f := range archive.Files {
		switch f.Name {
		case "kinds/web/web.proto", "kinds/web/kind.yaml", "services/swell.yaml":
			base[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	base["fleet/tenants.yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(tenantNamed+"---\n"+tenantNamed, "a", "b"))}
	for _, unit := range []string{"c", "d"} {
		const ofB = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: b}\nspec: {tenant: b}\n"
		base["services/"+unit+"/swell.yaml"] = &fstest.MapFile{Data: []byte(ofB)}
	}
	collisions, refused := 0, 0
	rapidtest.Check(t, 10, time.Second, func(t *rapid.T) {
		files := maps.Clone(base)
		var kept Compiler
		for range 6 {
			unit := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "unit")
			name := "services/" + unit + "/x.yaml"
			switch rapid.SampledFrom([]string{"write", "write", "write", "break", "remove"}).Draw(t, "edit") {
			case "write":
				account := rapid.SampledFrom([]string{"default", "one", "two"}).Draw(t, "account")
				host := rapid.SampledFrom([]string{"a.example", "b.example", "*.example", "b.b.example"}).Draw(t, "name")
				files[name] = &fstest.MapFile{Data: fmt.Appendf(nil, webAndNames,
					unit, rapid.IntRange(0, 3).Draw(t, "host"),
					rapid.IntRange(1, 5).Draw(t, "port"), rapid.IntRange(1, 5).Draw(t, "port"),
					unit, host, account, rapid.SampledFrom([]string{"one", "two"}).Draw(t, "brought"))}
			case "break":
				files[name] = &fstest.MapFile{Data: []byte("apiVersion: easy.example.com/v1\nkind: Web\nmetadata: {name: x}\nspec: {hots: h1}\n")}
			case "remove":
				delete(files, name)
			}
			files["services/always/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: always, namespace: \"always\"}\n")}
			var fresh Compiler
			commit := config.Files(maps.Clone(files))
			want, got := fresh.Snapshot("", commit), kept.Snapshot("", commit)
			if diff := cmp.Diff(want.Problems.String(), got.Problems.String()); diff != "" {
				t.Fatalf("problems (-new +kept):\n%s", diff)
			}
			collisions += len(got.Problems)
			refused += strings.Count(got.Problems.String(), "; the hosts of a Tenant say whose it is")
		}
	})
	if collisions == 0 || refused == 0 {
		t.Errorf("%d collisions, %d of host names of tenants", collisions, refused)
	}
}

const tenantNamed = "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %s}\nspec: {podSecurity: privileged}\n"

// webAndNames is a Web, and objects that name a host and a service account.
const webAndNames = `apiVersion: easy.example.com/v1
kind: Web
metadata: {name: %s}
spec: {host: h%d, ports: [%d, %d]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[5]s, namespace: shop}
spec: {rules: [{host: "%[6]s"}], tls: [{hosts: []}]}
---
apiVersion: v1
kind: Pod
metadata: {name: %[5]s, namespace: shop}
spec: {serviceAccountName: %[7]s, containers: [{name: a, image: a}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[8]s, namespace: shop}
`
