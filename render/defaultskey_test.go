// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
)

// TestEachFieldOfDefaultsIsSeen: whatever changes in Defaults above a unit, a compiler
// with a memory and a cache makes of it what a fresh one does.
func TestEachFieldOfDefaultsIsSeen(t *testing.T) {
	const placement = "  placement: {topology: cluster, match: {labels: {region: [sas, vla]}}}\n"
	changes := map[string]string{
		"tenant":       "  tenant: shop\n",
		"rollout":      "  rollout: default\n",
		"placement":    "  placement: {topology: cluster, match: {labels: {region: sas}}}\n",
		"labels":       "  labels: {tier: web}\n",
		"overrides":    "  overrides: [{kind: ConfigMap, set: [{path: data.a, value: '2'}]}]\n",
		"adopt":        "  adopt: take\n",
		"drift":        "  drift: [{mode: report}]\n",
		"ignore":       "  ignore: [{kind: ConfigMap, fields: [/data/a]}]\n",
		"allOrNothing": "  allOrNothing: true\n",
		"unit":         "  unit: true\n",
		"namespace":    "  namespace: other\n",
		"prune":        "  prune: keep\n",
	}
	own := config.OwnDocuments()
	at := slices.IndexFunc(own, func(m protoreflect.MessageDescriptor) bool { return m.Name() == "Defaults" })
	fields := own[at].Fields().ByName("spec").Message().Fields()
	for i := range fields.Len() {
		if name := string(fields.Get(i).Name()); changes[name] == "" {
			t.Errorf("no change of %s is tried here", name)
		}
	}
	original := exampleFiles(t, "swell.yaml", "fleet")
	original["services/a/notes/notes.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x}\ndata: {a: '1'}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\ndata: {a: '1'}\n")}
	with := func(spec string) config.Tree {
		files := fstest.MapFS{"services/a/swell.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n" + spec)}}
		for name, file := range original {
			files[name] = file
		}
		return config.Files(files)
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			before, after := placement+"  namespace: x\n", placement+change
			switch name {
			case "placement":
				after = change + "  namespace: x\n"
			case "namespace":
			default:
				after += "  namespace: x\n"
			}
			folder, err := cache.Open(t.TempDir(), 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			warm, restarted, fresh := &Compiler{Cache: folder}, &Compiler{Cache: folder}, &Compiler{}
			warm.Snapshot("", with(before))
			want := fresh.Snapshot("", with(after)).text()
			if !strings.Contains(want, "ConfigMap/") {
				t.Fatalf("renders to nothing:\n%s", want)
			}
			for how, c := range map[string]*Compiler{"with a memory": warm, "after a restart": restarted} {
				if diff := cmp.Diff(want, c.Snapshot("", with(after)).text()); diff != "" {
					t.Errorf("%s (-fresh +got):\n%s", how, diff)
				}
			}
		})
	}
}
