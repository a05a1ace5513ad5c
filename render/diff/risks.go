// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
)

// Risk is something in a change that a person should look at first: rights over a node or the
// cluster, a way in from outside, an image from a registry that is new, a workload that goes to
// zero. It is told where the change brings it, not where it was before.
type Risk struct {
	Text    string              `json:"text"`
	Targets []config.TargetName `json:"targets"`
}

// riskWords stand in the canonical JSON of every object with a risk, but for those of some kinds, and
// for images.
var riskWords = []string{
	`"hostNetwork":true`, `"hostPID":true`, `"hostIPC":true`, `"hostPath"`, `"hostPort"`, `"privileged":true`, `"capabilities"`,
	`"replicas":0`,
}

// mayBeRisky is quick, and true for each object with a risk.
func mayBeRisky(o *object.Object, knows func(registry string) bool) bool {
	if slices.Contains([]string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "Service"}, o.ID.Kind) {
		return true
	}
	if slices.ContainsFunc(riskWords, func(word string) bool { return bytes.Contains(o.JSON, []byte(word)) }) {
		return true
	}
	if knows != nil {
		for registry := range registriesIn(o.JSON) {
			if registry != "" && !knows(registry) {
				return true
			}
		}
	}
	return false
}

// risks are what an object brings that the one before did not have; old may be nil. knows says
// of a registry whether images came from it before; nil is not asked.
func risks(old, obj *object.Object, knows func(registry string) bool) (texts []string) {
	if !mayBeRisky(obj, knows) {
		return nil
	}
	var before []string
	if old != nil {
		before = risksOf(old, nil)
		if replicasOf(old) != "0" && replicasOf(obj) == "0" {
			texts = append(texts, "it goes to 0 replicas")
		}
	}
	for _, text := range risksOf(obj, knows) {
		if !slices.Contains(before, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// risksOf are those of one object, sorted as they stand in it.
func risksOf(o *object.Object, knows func(registry string) bool) (texts []string) {
	redactor := o.Redactor()
	w := riskWalk{knows: knows, add: func(format string, args ...any) {
		if text := redactor.Redact(fmt.Sprintf(format, args...)); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}}
	root, _ := decode(o.JSON).(map[string]any)
	switch o.ID.Kind {
	case "ClusterRoleBinding", "RoleBinding":
		w.binding(o.ID.Kind, root)
	case "ClusterRole":
		w.role(root)
	case "Service":
		w.service(root)
	}
	w.walk(root)
	return texts
}

// replicasOf is spec.replicas as it is written; empty where there is none.
func replicasOf(o *object.Object) string {
	root, _ := decode(o.JSON).(map[string]any)
	n, _ := mapping(root, "spec")["replicas"].(json.Number)
	return n.String()
}

// riskWalk finds the risks of an object.
type riskWalk struct {
	knows func(registry string) bool
	add   func(format string, args ...any)
}

// walk looks at every mapping for the form of a pod, as kinds of others have pods too.
func (w *riskWalk) walk(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, isPod := v["containers"].([]any); isPod {
			w.pod(v)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.walk(v[key])
		}
	case []any:
		for _, item := range v {
			w.walk(item)
		}
	}
}

func (w *riskWalk) pod(spec map[string]any) {
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if isSet, _ := spec[field].(bool); isSet {
			w.add("its pods have %s of the node", field)
		}
	}
	for _, volume := range mappings(spec["volumes"]) {
		if path, isHost := mapping(volume, "hostPath")["path"].(string); isHost {
			w.add("its pods have %s of the node", document.Printable(path))
		}
	}
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range mappings(spec[field]) {
			w.container(c)
		}
	}
}

func (w *riskWalk) container(c map[string]any) {
	name, _ := c["name"].(string)
	name = document.Printable(name)
	security := mapping(c, "securityContext")
	if isSet, _ := security["privileged"].(bool); isSet {
		w.add("container %s is privileged", name)
	}
	if added, _ := mapping(security, "capabilities")["add"].([]any); len(added) > 0 {
		w.add("container %s has the capabilities %s", name, textsOf(added))
	}
	for _, port := range mappings(c["ports"]) {
		if number, _ := port["hostPort"].(json.Number); number != "" && number != "0" {
			w.add("container %s has the port %s of the node", name, number)
		}
	}
	image, _ := c["image"].(string)
	if registry := registryOf(image); registry != "" && w.knows != nil && !w.knows(registry) {
		w.add("container %s has an image of %s, of which there was none before", name, document.Printable(registry))
	}
}

// registryOf is the host of an image's name; empty where there is no image.
func registryOf(image string) string {
	host, _, found := strings.Cut(image, "/")
	switch {
	case image == "":
		return ""
	case !found || !strings.ContainsAny(host, ".:") && host != "localhost":
		return "docker.io"
	}
	return host
}

func (w *riskWalk) binding(kind string, root map[string]any) {
	role := mapping(root, "roleRef")
	name, _ := role["name"].(string)
	if kind == "RoleBinding" && name != "cluster-admin" {
		return
	}
	scope := "in all namespaces"
	if kind == "RoleBinding" {
		scope = "in the namespace"
	}
	var who []string
	for _, subject := range mappings(root["subjects"]) {
		parts := []string{}
		for _, field := range []string{"kind", "namespace", "name"} {
			if text, _ := subject[field].(string); text != "" {
				parts = append(parts, text)
			}
		}
		who = append(who, strings.Join(parts, "/"))
	}
	if len(who) > 0 {
		w.add("it gives %s to %s %s", document.Printable(name), document.Printable(document.Some(who, 3)), scope)
	}
}

func (w *riskWalk) role(root map[string]any) {
	for _, rule := range mappings(root["rules"]) {
		for _, field := range []string{"verbs", "resources", "apiGroups"} {
			if list, _ := rule[field].([]any); field != "apiGroups" && slices.Contains(list, any("*")) {
				w.add("it has a rule with %s: *", field)
			}
		}
		for _, verb := range []string{"escalate", "bind", "impersonate"} {
			if list, _ := rule["verbs"].([]any); slices.Contains(list, any(verb)) {
				w.add("it has a rule with the verb %s", verb)
			}
		}
	}
}

func (w *riskWalk) service(root map[string]any) {
	spec := mapping(root, "spec")
	if kind, _ := spec["type"].(string); kind == "LoadBalancer" || kind == "NodePort" {
		w.add("it is reached from outside the cluster: type %s", kind)
	}
	if list, _ := spec["externalIPs"].([]any); len(list) > 0 {
		w.add("it takes traffic to addresses of others: externalIPs %s", textsOf(list))
	}
}

// textsOf are the items of a list in a line.
func textsOf(list []any) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = document.Printable(fmt.Sprint(item))
	}
	return strings.Join(texts, ", ")
}

// mapping is a mapping below another one; nil where there is none.
func mapping(in map[string]any, key string) map[string]any {
	m, _ := in[key].(map[string]any)
	return m
}

// mappings are the items of a list that are mappings.
func mappings(list any) (all []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// registries says of a registry whether a snapshot has images of it. It looks through the
// snapshot, once, as far as it has to.
func registries(s *render.Snapshot) func(string) bool {
	seen := map[string]bool{}
	var left []*render.Unit // that nobody has looked through
	for _, unit := range s.Units.All() {
		left = append(left, unit)
	}
	return func(registry string) bool {
		for ; !seen[registry] && len(left) > 0; left = left[1:] {
			bundles, err := s.Bundles(left[0])
			if err != nil {
				continue // a problem of its own
			}
			for _, b := range bundles {
				for _, o := range b.Objects {
					for found := range registriesIn(o.JSON) {
						seen[found] = true
					}
				}
			}
		}
		return seen[registry]
	}
}

// registriesIn are the registries of the images in canonical JSON, as they stand there.
func registriesIn(text []byte) iter.Seq[string] {
	key, quote := []byte(`"image":"`), []byte(`"`)
	return func(yield func(string) bool) {
		for rest := text; ; {
			_, after, found := bytes.Cut(rest, key)
			if !found {
				return
			}
			image, left, _ := bytes.Cut(after, quote)
			if !yield(registryOf(string(image))) {
				return
			}
			rest = left
		}
	}
}

// Risks are the clusters in which units would wait, and the risks of all changes, a line each.
func (r *Report) Risks(most int) (lines []string) {
	for i := range r.Joining {
		lines = append(lines, r.Joining[i].Text())
	}
	for _, c := range r.Changes {
		for _, risk := range c.Risks {
			lines = append(lines, fmt.Sprintf("%s: %s on %s: %s", visible(c.Unit), c.Object, Targets(risk.Targets, most), risk.Text))
		}
	}
	if r.Later != nil {
		lines = append(lines, r.Later.Risks(most)...)
	}
	return lines
}
