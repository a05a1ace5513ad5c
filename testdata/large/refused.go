// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package large

import (
	"fmt"
	"strings"
)

// Refused is a monorepo of plain YAML, eight documents a unit, of which every second unit
// is refused: for a misspelt field, for a custom resource without a definition, by a
// policy, or for a Secret that everybody can read.
type Refused struct{ Units int }

// Files calls each with all files of the monorepo.
func (r Refused) Files(each func(name, content string) error) error {
	for name, content := range map[string]string{
		"swell.yaml":          "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: refused}\nspec: {}\n",
		"fleet/fleet.yaml":    operatorsFleet,
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: all, placement: {topology: cluster}}\n",
		"policies/large.yaml": policies,
	} {
		if err := each(name, content); err != nil {
			return err
		}
	}
	for i := range r.Units {
		if err := each(fmt.Sprintf("services/team%02d/unit%04d/all.yaml", i%50, i), refusedUnit(i)); err != nil {
			return err
		}
	}
	return nil
}

func refusedUnit(i int) string {
	docs := Mixed(fmt.Sprintf("space%04d", i), fmt.Sprintf("app%04d", i))
	if i%2 == 0 {
		return strings.Join(docs, "---\n")
	}
	text := strings.Join(docs, "---\n")
	switch i / 2 % 4 {
	case 0:
		return strings.Replace(text, "replicas:", "replicsa:", 1)
	case 1:
		return text + fmt.Sprintf("---\napiVersion: monitoring.example.org/v1\nkind: ServiceMonitor\nmetadata: {name: app%04d, namespace: space%04d}\nspec: {}\n", i, i)
	case 2:
		return strings.Replace(text, "registry.example.com/", "docker.io/", 1)
	}
	return text + fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: app%04d, namespace: space%04d}\nstringData: {password: swordfish%d}\n", i, i, i)
}
