// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// renameEvents are about a webhook that gives objects of one kind another name.
var renameEvents = []event{
	{"webhook renames", 5, (*world).rename},
	{"webhook mended", 8, (*world).endRename},
}

// firstOfRenames is the first seed whose history may have such a webhook.
const firstOfRenames = 2_000_000_000

func drawRenames(seed uint64, s *shape) {
	s.renames = seed >= firstOfRenames && rand.New(rand.NewPCG(seed, 9)).IntN(2) == 0
}

// rename has a webhook of a cluster give live objects of one kind another name when they are
// written. The server then says that a name cannot be changed, of objects that may be replaced
// where a field cannot be changed.
func (w *world) rename() string {
	c := w.someCluster()
	if c.renames != "" {
		return ""
	}
	c.renames = pick(w.rand, "deployments", "configmaps", "jobs")
	for _, u := range w.git.head.units {
		w.judge.cause(u.path, "a webhook renames "+c.renames+" on "+c.name)
	}
	return c.name + " " + c.renames
}

func (w *world) endRename() string {
	c := w.clusterThat(func(c *cluster) bool { return c.renames != "" })
	if c == nil {
		return ""
	}
	c.renames = ""
	return c.name
}

// renamed says whether the webhook gives what a call writes another name.
func (c *cluster) renamed(call *call) bool {
	_, exists := c.live[keyOf(call.path)]
	return exists && call.method == http.MethodPatch && c.renamesIn(call.path)
}

// renamesIn says whether a path is about the kind that the webhook renames.
func (c *cluster) renamesIn(path string) bool {
	return c.renames != "" && slices.Contains(strings.Split(path, "/"), c.renames)
}

// renamedName answers like an API server whose webhook has renamed a live object.
func renamedName(r *http.Request) answer {
	const why = `Invalid value: "renamed": field is immutable`
	cause := map[string]any{"reason": "FieldValueInvalid", "message": why, "field": "metadata.name"}
	body, err := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "code": http.StatusUnprocessableEntity,
		"reason": "Invalid", "message": fmt.Sprintf(`"renamed" is invalid: metadata.name: %s`, why),
		"details": map[string]any{"name": "renamed", "causes": []any{cause}},
	})
	if err != nil {
		panic(err) // it is text
	}
	return respond(r, http.StatusUnprocessableEntity, "application/json", string(body))
}
