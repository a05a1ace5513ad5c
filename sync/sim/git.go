// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/swell-sh/swell/config"
)

// git is the repository: the commits, and which of them is the branch's. It is a
// [sync.Source].
type git struct {
	world   *world
	commits map[config.Commit]*commit
	order   []*commit
	head    *commit
	lost    map[config.Commit]bool // whose trees can not be had any more, after a force-push
	down    bool
	gone    bool // what was fetched is gone, until the next fetch
	n       int  // counts versions of content
}

// commit is a commit, and what it means: the judge's knowledge of what Git wants.
type commit struct {
	id      config.Commit
	units   []*unit // by path
	author  string  // see [world.authorOf]
	held    bool    // a document of the fleet is wrong
	masks   []where // of its Masks
	windows []where // of its Windows, see [shut]
	tree    config.Tree
	fetched bool            // some process has it
	twice   map[string]bool // units that want what another one wants
}

// unit is one unit as a commit has it. It is not changed any more.
type unit struct {
	path string
	sort string // app, space, crd, or gadget

	// Of an app:
	name     string
	v, cv    int      // versions of its content, and of that of its ConfigMaps
	configs  []string // ConfigMaps with names of their own, which may move to another unit
	workload bool
	hashed   bool // a ConfigMap whose name changes with its content
	secret   bool
	widget   bool   // a custom resource
	hook     string // before, after, gate, or none
	broken   bool   // its image cannot be pulled
	denied   bool   // admission says no
	frozen   bool   // the spec has a mistake
}

// key is an object of a cluster.
type key struct{ kind, namespace, name string }

func (k key) String() string { return strings.ReplaceAll(k.kind+"/"+k.namespace+"/"+k.name, "//", "/") }

// target is a place where a unit goes.
type target struct {
	name, cluster, cell string
	wave                int
}

const markKey = "sim.example.com/v"

// objects are what the unit wants on a target, each with the mark that its content has.
func (u *unit) objects(t target) map[key]string {
	ns := "shop-" + t.cell
	switch u.sort {
	case "space":
		return map[key]string{{"Namespace", "", ns}: "0"}
	case "crd":
		return map[key]string{{"CustomResourceDefinition", "", "widgets.example.com"}: "0"}
	case "gadget":
		return map[key]string{{"CustomResourceDefinition", "", "gadgets.example.com"}: "0"}
	}
	all := map[key]string{}
	v, cv := fmt.Sprint(u.v), fmt.Sprint(u.cv)
	for _, name := range u.configs {
		all[key{"ConfigMap", ns, name}] = cv
	}
	if u.hashed {
		all[key{"ConfigMap", ns, u.name + "-h" + cv}] = cv
	}
	for kind, there := range map[string]bool{"Deployment": u.workload, "Secret": u.secret, "Widget": u.widget, "Job": u.hook != ""} {
		if there {
			all[key{kind, ns, u.name}] = v
		}
	}
	if u.hook == "gate" {
		all[key{"Job", ns, u.name}] = v + proof
	}
	return all
}

// whole says that the unit goes to clusters, and not to their cells.
func (u *unit) whole() bool { return u.sort == "crd" || u.sort == "gadget" }

// targets are the places of a unit.
func (w *world) targets(u *unit) (all []target) {
	for _, c := range w.shape.clusters {
		if u.whole() {
			all = append(all, target{name: c, cluster: c, wave: w.waveOf(c, "")})
			continue
		}
		for _, cell := range w.shape.cells[c] {
			all = append(all, target{name: c + "/" + cell, cluster: c, cell: cell, wave: w.waveOf(c, cell)})
		}
	}
	return all
}

func (w *world) waveOf(cluster, cell string) int {
	labels := map[string]string{"site": cluster}
	if cell == "a" {
		labels["ring"] = "canary"
	}
	for i, wave := range w.shape.waves {
		if wave.label == "" || labels[wave.label] == wave.value {
			return i
		}
	}
	return -1
}

// waveAt is the name of the wave that a target is in.
func (w *world) waveAt(target string) string {
	cluster, cell, _ := strings.Cut(target, "/")
	return w.judge.waveName(w.waveOf(cluster, cell))
}

// commit is the commit with an id; nil when there is none.
func (g *git) commit(id config.Commit) *commit {
	for _, c := range g.order {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (c *commit) unit(path string) *unit {
	for _, u := range c.units {
		if u.path == path {
			return u
		}
	}
	return nil
}

func newGit(w *world) *git {
	g := &git{world: w, commits: map[config.Commit]*commit{}, lost: map[config.Commit]bool{}}
	units := []*unit{{path: space, sort: "space"}, {path: "services/crd", sort: "crd"}}
	for i := range 1 + w.rand.IntN(3) {
		units = append(units, g.newApp(w.rand, i))
	}
	g.push(&commit{units: units})
	return g
}

var appNames = []string{"cart", "shop", "mail", "pay"}

func (g *git) newApp(r *rand.Rand, i int) *unit {
	u := &unit{path: "services/" + appNames[i], sort: "app", name: appNames[i], v: g.version(), cv: g.version(), workload: r.IntN(4) > 0,
		hashed: r.IntN(2) == 0, secret: r.IntN(2) == 0, widget: r.IntN(3) == 0, hook: pick(r, "", "", "", "before", "after")}
	u.hook = g.world.shape.hookOf(u.name, u.hook)
	for n := range 1 + r.IntN(3) {
		u.configs = append(u.configs, fmt.Sprintf("%s-c%d", u.name, n))
	}
	return u
}

func (g *git) version() int {
	g.n++
	return g.n
}

// push makes a commit the newest one. Its Masks and Windows name nothing in vain that those before
// did not, which would hold it.
func (g *git) push(c *commit) {
	if taken := g.lastTaken(); taken != nil {
		c.masks = namedIn(c, c.masks, taken.masks, g.head.masks)
		c.windows = namedIn(c, c.windows, taken.windows, g.head.windows)
	}
	slices.SortFunc(c.units, func(a, b *unit) int { return strings.Compare(a.path, b.path) })
	sum := sha1.Sum(fmt.Appendf(nil, "%d", len(g.order)))
	c.author = g.world.authorOf(len(g.order))
	c.id = config.Commit(hex.EncodeToString(sum[:]))
	files := fstest.MapFS{}
	for name, content := range g.files(c) {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	c.tree = config.Files(files)
	g.commits[c.id], g.head = c, c
	g.order = append(g.order, c)
	if g.world.judge != nil {
		g.world.judge.offer(c)
	}
}

// lastTaken is the newest commit that holds nothing; nil before the first.
func (g *git) lastTaken() *commit {
	for _, c := range slices.Backward(g.order) {
		if !c.held {
			return c
		}
	}
	return nil
}

// namedIn are bounds without those about a unit that a commit does not have, but for those that
// stood in the same document before.
func namedIn(c *commit, bounds []where, before ...[]where) (named []where) {
	for _, a := range bounds {
		stood := func(list []where) bool { return len(named) < len(list) && list[len(named)] == a }
		if a.unit == "" || c.unit(a.unit) != nil || !slices.ContainsFunc(before, func(list []where) bool { return !stood(list) }) {
			named = append(named, a)
		}
	}
	return named
}

// Fetch is [sync.Source.Fetch].
func (g *git) fetch(ctx context.Context, p *process) (config.Commit, error) {
	p.asks, p.asked = true, time.Now()
	defer func() { p.asks, p.asked = false, time.Now() }()
	answer, err := g.world.gate.wait(ctx, &call{process: p, cluster: "git", what: "FETCH"})
	if err != nil {
		p.refused = true
		return "", err
	}
	return config.Commit(answer.text), nil
}

func (g *git) treeOf(id config.Commit) (config.Tree, error) {
	if g.gone {
		return nil, errGone
	}
	c := g.commits[id]
	if c == nil || g.lost[id] {
		return nil, config.ErrNoCommit
	}
	return c.tree, nil
}

// between is [sync.Commits.Between]. The branch is the commits in their order.
func (g *git) between(from, to config.Commit) ([]config.Commit, error) {
	if g.gone {
		return nil, errGone
	}
	var way []config.Commit
	for _, c := range slices.Backward(g.order) {
		switch {
		case c.id == from && len(way) > 0:
			return way, nil
		case c.id == to || len(way) > 0:
			way = append(way, c.id)
		}
	}
	return []config.Commit{to}, nil
}

func (g *git) files(c *commit) map[string]string {
	files := maps.Clone(fixedFiles)
	files["fleet/fleet.yaml"] = g.world.fleetFile(c)
	files["swell.yaml"] = g.world.shape.budget.file()
	if bounds := boundsFile(c); bounds != "" {
		files["fleet/bounds.yaml"] = bounds
	}
	if c.held {
		files["fleet/more.yaml"] = "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: wrong}\nspec: {cells: [{name: w}], cels: []}\n"
	}
	for _, u := range c.units {
		switch u.sort {
		case "space":
			files[u.path+"/space.yaml"] = "apiVersion: easy.example.com/v1\nkind: Space\nmetadata: {name: space}\nspec: {}\n"
			if rollout := g.world.firstRollout(c); rollout != "" {
				files[u.path+"/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: space}\nspec: {" + rollout + "}\n"
			}
		case "crd":
			files[u.path+"/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: crd}\nspec: {" + g.world.firstRollout(c) + "placement: {topology: cluster}}\n"
			files[u.path+"/crd.yaml"] = widgetDefinition
		case "gadget":
			files[u.path+"/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: gadget}\nspec: {" + g.world.firstRollout(c) + "placement: {topology: cluster}}\n"
			files[u.path+"/crd.yaml"] = strings.NewReplacer("widget", "gadget", "Widget", "Gadget").Replace(widgetDefinition)
		default:
			files[u.path+"/app.yaml"] = u.spec()
			if rollout := g.world.firstRollout(c); u.isFirst() && rollout != "" {
				files[u.path+"/swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: first}\nspec: {" + rollout + "}\n"
			}
		}
	}
	return files
}

func (u *unit) spec() string {
	tag := fmt.Sprint(u.v)
	if u.broken {
		tag = "broken"
	}
	secret := ""
	if u.secret {
		secret = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s-%d", planted, u.v))
	}
	wrong := ""
	if u.frozen {
		wrong = "  imgae: x\n"
	}
	return fmt.Sprintf("apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: %s}\nspec:\n  tag: %q\n  v: %q\n  cv: %q\n  configs: [%s]\n  workload: %t\n  hashed: %t\n  secret: %q\n  widget: %t\n  hook: %q\n  denied: %t\n%s",
		u.name, tag, fmt.Sprint(u.v), fmt.Sprint(u.cv), strings.Join(u.configs, ", "), u.workload, u.hashed, secret, u.widget, u.hook, u.denied, wrong)
}

func (w *world) fleetFile(c *commit) string {
	var b strings.Builder
	for _, c := range w.shape.clusters {
		fmt.Fprintf(&b, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: %s, labels: {site: %s}}\nspec:\n  cells:\n", c, c)
		for _, cell := range w.shape.cells[c] {
			ring := "main"
			if cell == "a" {
				ring = "canary"
			}
			fmt.Fprintf(&b, "  - {name: %s, labels: {ring: %s}}\n", cell, ring)
		}
		b.WriteString("---\n")
	}
	w.writeRollout(&b, "default", c.unit("services/"+first) != nil)
	if w.firstRollout(c) != "" {
		b.WriteString("---\n")
		w.writeRollout(&b, "first", false)
	}
	return b.String()
}

// firstRollout names the Rollout of the units that the first one waits for, and of itself, in a
// spec; empty where nobody waits for it.
func (w *world) firstRollout(c *commit) string {
	if c.unit("services/"+first) == nil || !w.shape.hasAfter() {
		return ""
	}
	return "rollout: first, "
}

// writeRollout writes the Rollout with a name. Others may wait for the first unit, which does not
// wait for itself.
func (w *world) writeRollout(b *strings.Builder, name string, after bool) {
	fmt.Fprintf(b, "apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: %s}\nspec:\n  waves:\n", name)
	for _, wave := range w.shape.waves {
		fmt.Fprintf(b, "  - {name: %s, timeout: %s", wave.name, w.shape.timeout)
		if wave.label != "" {
			fmt.Fprintf(b, ", match: {labels: {%s: %s}}", wave.label, wave.value)
		}
		if wave.soak > 0 {
			fmt.Fprintf(b, ", soak: %s", wave.soak)
		}
		if wave.maxFailures > 0 {
			fmt.Fprintf(b, ", maxFailures: %d", wave.maxFailures)
		}
		if wave.maxConcurrent > 0 {
			fmt.Fprintf(b, ", maxConcurrent: %d", wave.maxConcurrent)
		}
		b.WriteString(w.shape.gates(wave, after))
		b.WriteString("}\n")
	}
	if w.shape.hold {
		b.WriteString("  onFailure: hold\n")
	}
}

var fixedFiles = map[string]string{
	"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: shop, placement: {topology: cell}}\n",
	"kinds/space/space.proto": `syntax = "proto3";
package sim;
import "library/go/k8s/protoc_gen_crd/proto/crd.proto";
message Space {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "Space", singular: "space", plural: "spaces"};
  SpaceSpec spec = 1;
}
message SpaceSpec { string unused = 1; }
`,
	"kinds/space/kind.yaml": `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: space}
spec:
  message: sim.Space
  objects:
  - id: namespace
    template:
      apiVersion: v1
      kind: Namespace
      metadata: {name: "${unit.tenant}-${target.cell}", annotations: {sim.example.com/v: "0"}}
`,
	"kinds/app/app.proto": `syntax = "proto3";
package sim;
import "library/go/k8s/protoc_gen_crd/proto/crd.proto";
message App {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "App", singular: "app", plural: "apps"};
  AppSpec spec = 1;
}
message AppSpec {
  string tag = 1;
  string v = 2;
  string cv = 3;
  repeated string configs = 4;
  bool workload = 5;
  bool hashed = 6;
  string secret = 7;
  bool widget = 8;
  string hook = 9;
  bool denied = 10;
}
`,
	"kinds/app/kind.yaml": `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: app}
spec:
  message: sim.App
  let:
  - {name: ns, value: "unit.tenant + '-' + target.cell"}
  objects:
  - id: config
    each: {name: self.spec.configs}
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${name}", namespace: "${ns}", annotations: {sim.example.com/v: "${self.spec.cv}"}}
      data: {v: "${self.spec.cv}"}
  - id: hashed
    when: self.spec.hashed
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}-h${self.spec.cv}", namespace: "${ns}", annotations: {sim.example.com/v: "${self.spec.cv}"}}
      data: {v: "${self.spec.cv}", denied: "${string(self.spec.denied)}"}
  - id: secret
    when: self.spec.secret != ''
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${self.metadata.name}", namespace: "${ns}", annotations: {sim.example.com/v: "${self.spec.v}"}}
      data: {token: "${self.spec.secret}"}
  - id: deployment
    when: self.spec.workload
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${self.metadata.name}", namespace: "${ns}", annotations: {sim.example.com/v: "${self.spec.v}", sim.example.com/denied: "${string(self.spec.denied)}", swell.sh/replace: allowed}}
      spec:
        replicas: 1
        selector: {matchLabels: {app: "${self.metadata.name}"}}
        template:
          metadata: {labels: {app: "${self.metadata.name}"}}
          spec:
            containers: [{name: main, image: "registry.example.com/app:${self.spec.tag}"}]
  - id: widget
    when: self.spec.widget
    template:
      apiVersion: example.com/v1
      kind: Widget
      metadata: {name: "${self.metadata.name}", namespace: "${ns}", annotations: {sim.example.com/v: "${self.spec.v}"}}
      spec: {v: "${self.spec.v}"}
  - id: hook
    when: self.spec.hook != ''
    template:
      apiVersion: batch/v1
      kind: Job
      metadata:
        name: "${self.metadata.name}"
        namespace: "${ns}"
        annotations: {swell.sh/hook: "${self.spec.hook}", sim.example.com/v: "${self.spec.v + (self.spec.hook == 'gate' ? '` + proof + `' : '')}"}
      spec:
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: "registry.example.com/app:hook"}]
`,
}

const widgetDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, annotations: {sim.example.com/v: "0"}}
spec:
  group: example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {v: {type: string}}}
`
