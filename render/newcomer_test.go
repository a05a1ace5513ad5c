// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// releases are those of a fleet, by unit, in the commits 0, 1 and so on. Commit 8 is gone from Git, and 9
// cannot be read now.
type releases struct {
	units map[config.UnitPath]config.Commit
	trees []config.Tree
}

func (r *releases) Newest(path config.UnitPath) Release {
	commit := r.units[path]
	if commit == "" || commit == "8" || commit == "9" {
		return Release{Commit: commit}
	}
	known, err := r.Commit(commit)
	if err != nil {
		panic(err)
	}
	unit, err := known.Unit(path)
	if err != nil || unit == nil {
		return Release{Commit: commit}
	}
	return Release{Commit: commit, Bundles: unit.digests()}
}

func (r *releases) Commit(commit config.Commit) (*Commit, error) {
	switch commit {
	case "8":
		return nil, nil
	case "9":
		return nil, errors.New("not now")
	}
	return NewCommit(r.trees[commit[0]-'0'], nil, "", nil, nil)
}

// TestNewcomers: where units of two tenants want one thing, the one that was released with it keeps it, or
// where no releases are known, the one that has it in the base. Where that does not tell, both have a problem.
// Commits are written as units that want it, "!" for those with a problem of their own and "+" for those that
// want more, the newest commit last; the one before is the base. Releases are written as units with their
// commits.
func TestNewcomers(t *testing.T) {
	for name, c := range map[string]struct {
		commits  []string
		releases string
		want     string // units with a problem; "?" at the end: that is asked again
	}{
		"nobody had it":                      {[]string{"", "shop zed"}, "", "shop zed"},
		"in the base":                        {[]string{"shop", "shop zed"}, "", "zed"},
		"of a tenant of the base":            {[]string{"zed", "shop zed"}, "", "shop"},
		"both in the base":                   {[]string{"shop", "shop zed", "shop zed"}, "", "shop zed"},
		"merged in spite of its problem":     {[]string{"shop", "shop zed", "shop zed"}, "shop:0 zed:0", "zed"},
		"never released":                     {[]string{"shop", "shop zed", "shop zed"}, "shop:0", "zed"},
		"came while the other had a problem": {[]string{"shop", "!shop zed", "shop zed"}, "shop:0 zed:0", "zed"},
		"new in both":                        {[]string{"", "shop", "shop zed"}, "shop:0 zed:0", "shop zed"},
		"waits for its turn":                 {[]string{"", "shop", "shop zed"}, "shop:1 zed:0", "zed"},
		"still waits for it":                 {[]string{"", "shop", "shop zed", "shop zed"}, "shop:1", "zed"},
		"renamed beside a newcomer":          {[]string{"shop", "shop zed", "shop/more zed"}, "shop:0", "shop zed"},
		"changed since":                      {[]string{"shop", "shop+ zed"}, "shop:0", "zed"},
		"changed since, and once more":       {[]string{"shop", "shop+", "shop++ zed"}, "shop:1", "zed"},
		"released before the other's turn":   {[]string{"zed", "shop", "shop zed"}, "shop:1 zed:1", "zed"},
		"given up and taken back":            {[]string{"shop", "zed", "shop zed"}, "shop:1 zed:1", "shop"},
		"its release is gone":                {[]string{"shop", "shop zed"}, "shop:8", "shop zed"},
		"its release cannot be read":         {[]string{"shop", "shop zed"}, "shop:9", "shop zed?"},
		"all of it is released":              {[]string{"shop", "shop"}, "shop:0", ""},
	} {
		for sort := range wantedThings {
			t.Run(name+"/"+sort, func(t *testing.T) {
				r := &releases{units: map[config.UnitPath]config.Commit{}}
				for _, text := range c.commits {
					r.trees = append(r.trees, wantedTree(sort, text))
				}
				for _, each := range strings.Fields(c.releases) {
					tenant, commit, _ := strings.Cut(each, ":")
					r.units[config.UnitPath("services/"+tenant)] = config.Commit(commit)
				}
				var kept Compiler
				for i, tree := range r.trees {
					s := kept.Snapshot("", tree)
					if i < len(r.trees)-1 {
						kept.Base = s.Repository
						continue
					}
					anew := Compiler{Base: kept.Base}
					if c.releases != "" {
						kept.Releases, anew.Releases = r, r
					}
					for _, compiler := range []*Compiler{&kept, &anew} {
						s := compiler.Snapshot("", tree)
						if got := troubled(s); got != c.want {
							t.Errorf("units with problems: got %q, want %q\n%s", got, c.want, s.Problems)
						}
					}
				}
			})
		}
	}
}

// troubled are the tenants of units with problems, sorted, and "?" where it is asked again.
func troubled(s *Snapshot) string {
	var list []string
	for _, unit := range s.Units.All() {
		if len(unit.Problems) > 0 {
			list = append(list, unit.Tenant)
		}
	}
	slices.Sort(list)
	text := strings.Join(list, " ")
	if s.Retry {
		text += "?"
	}
	return text
}

// TestNewcomersWithinATenant: units of one tenant that want one thing have a problem each, and so has
// another tenant's that comes.
func TestNewcomersWithinATenant(t *testing.T) {
	for _, sort := range []string{"object", "value"} {
		base := config.Load(wantedTree(sort, "shop"), nil)
		s := (&Compiler{Base: base}).Snapshot("", wantedTree(sort, "shop shop/more zed"))
		if diff := cmp.Diff("shop shop zed", troubled(s)); diff != "" {
			t.Errorf("%s: tenants of units with problems (-want +got):\n%s%s", sort, diff, s.Problems)
		}
	}
}

// TestNewcomersAreNotWaitedFor: a unit waits for the one that has its namespace, and not for one that may
// not have it.
func TestNewcomersAreNotWaitedFor(t *testing.T) {
	r := &releases{units: map[config.UnitPath]config.Commit{}, trees: []config.Tree{wantedTree("namespace", "shop")}}
	compiler := Compiler{Releases: r}
	for _, c := range []struct{ shop, problems, needs string }{
		{"9", "shop zed?", "services/shop services/zed"}, // its release cannot be read
		{"0", "zed", "services/shop"},
		{"", "shop zed", "services/shop services/zed"},
		{"0", "zed", "services/shop"},
	} {
		r.units["services/shop"] = config.Commit(c.shop)
		s := compiler.Snapshot("", wantedTree("namespace", "shop+ zed"))
		var needs []string
		for _, need := range s.Units.Get("services/other").Placements[0].Needs {
			needs = append(needs, string(need.Unit))
		}
		if got := [2]string{troubled(s), strings.Join(needs, " ")}; got != [2]string{c.problems, c.needs} {
			t.Errorf("with release %q: units with problems and needs: got %q, want %q", c.shop, got, c)
		}
	}
}

// wantedThings are documents of what only one unit may have.
var wantedThings = map[string]string{
	"object": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shared}\ndata: {of: %s}\n",
	"value":  "apiVersion: easy.example.com/v1\nkind: Web\nmetadata: {name: %s}\nspec: {host: a.example}\n",
	"host": "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: shared}\n" +
		"spec: {rules: [{host: a.example}]}\n",
}

// wantedTree is a monorepo with units that want one thing, as a test writes them. There is another one
// in the namespace "shared" in any case.
func wantedTree(sort, units string) config.Tree {
	files := oneCluster("wanted")
	files.write("kinds/web/web.proto", "syntax = \"proto3\";\npackage example.web;\n"+
		"import \"github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto\";\n"+
		"message Web {\n  option (protoc_gen_crd.k8s_crd) = {api_group: \"easy.example.com\", kind: \"Web\"};\n  WebSpec spec = 1;\n}\n"+
		"message WebSpec { string host = 1; }\n")
	files.write("kinds/web/kind.yaml", "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: web}\n"+
		"spec:\n  message: example.web.Web\n"+
		"  unique: [{name: host, value: self.spec.host, in: fleet}]\n  objects:\n  - id: config\n    template:\n"+
		"      {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${self.metadata.name}\", namespace: shared}}\n")
	if sort == "host" {
		for _, tenant := range []string{"shop", "zed", "other"} {
			const document = "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %s}\nspec: {namespaces: [shared]}\n"
			files.write("fleet/"+tenant+".yaml", document, tenant)
		}
	}
	const defaults = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {topology: cluster}}\n"
	for _, unit := range append(strings.Fields(units), "other") {
		path, isBroken := strings.CutPrefix(unit, "!")
		changes := strings.Count(path, "+")
		path = strings.TrimRight(path, "+")
		tenant, _, _ := strings.Cut(path, "/")
		files.write("services/"+path+"/swell.yaml", defaults, tenant)
		text := fmt.Sprintf(wantedThings[sort], strings.ReplaceAll(path, "/", "-"))
		switch {
		case path == "other":
			text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: shared}\n"
		case sort == "namespace":
			text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shared}\n"
		case isBroken:
			text += "mistyped: true\n"
		}
		files.write("services/"+path+"/x.yaml", text)
		if changes > 0 {
			const more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-more, namespace: shared}\ndata: {count: \"%d\"}\n"
			files.write("services/"+path+"/more.yaml", more, path, changes)
		}
	}
	return config.Files(fstest.MapFS(files))
}
