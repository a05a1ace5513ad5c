// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// bundle has one object for each text in canonical JSON.
func bundle(objects ...string) *object.Bundle {
	b := &object.Bundle{}
	for _, text := range objects {
		root, _ := decode([]byte(text)).(map[string]any)
		group, version, found := strings.Cut(root["apiVersion"].(string), "/")
		if !found {
			group, version = "", group
		}
		metadata := mapping(root, "metadata")
		namespace, _ := metadata["namespace"].(string)
		id := object.ID{Group: group, Kind: root["kind"].(string), Namespace: namespace, Name: metadata["name"].(string)}
		b.Objects = append(b.Objects, &object.Object{ID: id, Version: version, JSON: []byte(text), Digest: object.Digest(text)})
		b.Digest += object.Digest(text)
	}
	return b
}

// textOfUnit is what a reader sees of a unit whose bundles change.
func textOfUnit(t *testing.T, o Outlook, before, after map[string]*object.Bundle) string {
	t.Helper()
	byTarget := func(from map[string]*object.Bundle) map[config.TargetName]*object.Bundle {
		all := map[config.TargetName]*object.Bundle{}
		for name, b := range from {
			all[config.TargetName(name)] = b
		}
		return all
	}
	var b strings.Builder
	if err := (&Report{Changes: o.unit("shop/cart", byTarget(before), byTarget(after))}).Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestContent: a created object is shown once, without its name and swell's marks, and the fields in which
// targets differ. Nothing of a Secret is shown.
func TestContent(t *testing.T) {
	deployment := func(cell string, replicas int) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"swell.sh/unit":"shop/cart"},`+
			`"labels":{"app":"cart","swell.sh/repository":"x","swell.sh/unit":"cart"},"name":"cart","namespace":"shop-%s"},`+
			`"spec":{"replicas":%d,"template":{"spec":{"containers":[{"image":"r.example.com/cart:1","name":"main"}]}}}}`, cell, replicas)
	}
	const secret = `{"apiVersion":"v1","data":{"password":"aHVudGVyMg=="},"kind":"Secret",` +
		`"metadata":{"name":"db","namespace":"shop"},"type":"Opaque"}`
	got := textOfUnit(t, Outlook{}, nil, map[string]*object.Bundle{
		"a": bundle(deployment("a", 2), secret), "b": bundle(deployment("b", 2), secret), "c": bundle(deployment("c", 5), secret)})
	want := `shop/cart
  created Deployment/*/cart on 3 targets: a, b, c
    + metadata:
    +   labels:
    +     app: cart
    + spec:
    +   replicas: 2
    +   template:
    +     spec:
    +       containers:
    +       - image: r.example.com/cart:1
    +         name: main
    but on target c
    - spec.replicas: 2
    + spec.replicas: 5
  created Secret/shop/db on 3 targets: a, b, c
    + data:
    +   password: (value)
    + type: Opaque
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	many := strings.Split(textOfUnit(t, Outlook{}, nil, map[string]*object.Bundle{"a": bundle(configMap(200))}), "\n")
	if len(many) != 44 || many[42] != "    and 161 more lines" {
		t.Errorf("a large object takes %d lines, the last %q", len(many), many[len(many)-2])
	}
}

// TestVariants: targets with the same values are told together, and of many that all differ some are told:
// each was kept and compared with all others.
func TestVariants(t *testing.T) {
	after := map[config.TargetName]*object.Bundle{}
	for i := range 200 {
		value := min(max(i-3, 0)/2, 50)
		after[config.TargetName(fmt.Sprintf("c-%03d", i))] = bundle(fmt.Sprintf(`{"apiVersion":"v1","data":{"k":"%d"},"kind":"ConfigMap",`+
			`"metadata":{"name":"c","namespace":"shop-%d"}}`, value, i))
	}
	changes := (&Outlook{}).unit("shop/cart", nil, after)
	var got []string
	for _, v := range changes[0].Variants {
		got = append(got, fmt.Sprintf("%d %v", len(v.Targets), v.Fields))
	}
	want := []string{"2 [{data.k 0 1}]", "2 [{data.k 0 2}]", "2 [{data.k 0 3}]", "2 [{data.k 0 4}]", "2 [{data.k 0 5}]", "185 []"}
	if len(changes) != 1 || !slices.Equal(got, want) {
		t.Errorf("got %d changes, %q, want %q", len(changes), got, want)
	}
	var b strings.Builder
	if err := (&Report{Changes: changes}).Write(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(b.String(), "    + data.k: 5\n    and 185 more targets with other values\n") {
		t.Errorf("got\n%s", b.String())
	}
}

// TestContentHidesCopies: copies of a Secret in its annotations are hidden, however short, and a risk shows no secret.
func TestContentHidesCopies(t *testing.T) {
	hard := `{"apiVersion":"v1","data":{"p":"aHVudGVyMg=="},"kind":"Secret","metadata":{"annotations":{"a":"b=c","d":"plain",` +
		`"kubectl.kubernetes.io/last-applied-configuration":"abc"},"name":"db","namespace":"shop"}}`
	got := textOfUnit(t, Outlook{}, nil, map[string]*object.Bundle{"a": bundle(hard)})
	const want = `    + data:
    +   p: (value)
    + metadata:
    +   annotations:
    +     a: (secret)
    +     d: plain
    +     kubectl.kubernetes.io/last-applied-configuration: (secret)
`
	if !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	pod := bundle(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},"spec":{"containers":[],` +
		`"volumes":[{"hostPath":{"path":"/run/tr0ub4dor"},"name":"v"}]}}`)
	pod.Objects[0].Secrets = []string{"tr0ub4dor"}
	got = textOfUnit(t, Outlook{}, nil, map[string]*object.Bundle{"a": pod})
	if strings.Contains(got, "tr0ub4dor") || !strings.Contains(got, "! its pods have /run/") {
		t.Errorf("got\n%s", got)
	}
}

// TestContentOfLongLine: the lines of a created object are bounded in length, too.
func TestContentOfLongLine(t *testing.T) {
	long := bundle(`{"apiVersion":"v1","data":{"k":"` + strings.Repeat("v", 10_000) + `"},"kind":"ConfigMap",` +
		`"metadata":{"name":"c","namespace":"shop"}}`)
	got := textOfUnit(t, Outlook{}, nil, map[string]*object.Bundle{"a": long})
	if len(got) > 1_200 || !strings.HasSuffix(got, "vvv...\n") {
		t.Errorf("%d bytes", len(got))
	}
}

// configMap has so many keys.
func configMap(n int) string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf(`"k%03d":"v"`, i))
	}
	return `{"apiVersion":"v1","data":{` + strings.Join(keys, ",") + `},"kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"}}`
}

// TestRisks: what needs a person's eyes comes first, wherever it hides, where the change brings it
// and not where it was before.
func TestRisks(t *testing.T) {
	hard := func(apiVersion, kind, more string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"cart","namespace":"shop"},%s}`, apiVersion, kind, more)
	}
	pod := func(more, container string) string {
		return hard("apps/v1", "Deployment", `"spec":{"replicas":2,"template":{"spec":{`+more+
			`"containers":[{"image":"r.example.com/cart:1","name":"main"`+container+`}]}}}`)
	}
	edited := func(from, to string) string { return strings.Replace(pod("", ""), from, to, 1) }
	binding := func(role string) string {
		return hard("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", `"roleRef":{"kind":"ClusterRole","name":"`+role+
			`"},"subjects":[{"kind":"ServiceAccount","name":"cart","namespace":"shop"}]`)
	}
	role := func(rule string) string {
		return hard("rbac.authorization.k8s.io/v1", "ClusterRole", `"rules":[`+rule+`]`)
	}
	service := func(spec string) string { return hard("v1", "Service", `"spec":{`+spec+`}`) }
	gives := func(role string) string { return "it gives " + role + " to ServiceAccount/shop/cart in all namespaces" }
	none := pod("", "")
	privileged := pod("", `,"securityContext":{"privileged":true}`)
	pool := hard("x.example.com/v1", "Pool", `"spec":{"nodes":[{"containers":[{"name":"c","securityContext":{"privileged":true}}]}]}`)
	const reached = "it is reached from outside the cluster: type "
	const takes = "it takes traffic to addresses of others: externalIPs "
	const elsewhere = "container main has an image of %s, of which there was none before"
	for name, test := range map[string]struct{ before, after, want string }{
		"nothing":      {"", none, ""},
		"privileged":   {"", privileged, "container main is privileged"},
		"as before":    {privileged, strings.Replace(privileged, "cart:1", "cart:2", 1), ""},
		"added":        {none, privileged, "container main is privileged"},
		"taken away":   {privileged, none, ""},
		"capabilities": {"", pod("", `,"securityContext":{"capabilities":{"add":["A"]}}`), "container main has the capabilities A"},
		"two of these": {"", pod("", `,"securityContext":{"capabilities":{"add":["A","B"]}}`),
			"container main has the capabilities A, B"},
		"capability less": {"", pod("", `,"securityContext":{"capabilities":{"drop":["ALL"]}}`), ""},
		"host network":    {"", pod(`"hostNetwork":true,`, ""), "its pods have hostNetwork of the node"},
		"host port":       {"", pod("", `,"ports":[{"containerPort":80,"hostPort":22}]`), "container main has the port 22 of the node"},
		"host path":       {"", pod(`"volumes":[{"hostPath":{"path":"/run"},"name":"v"}],`, ""), "its pods have /run of the node"},
		"kind of others":  {"", pool, "container c is privileged"},
		"to zero":         {none, edited(`"replicas":2`, `"replicas":0`), "it goes to 0 replicas"},
		"zero at first":   {"", edited(`"replicas":2`, `"replicas":0`), ""},
		"image":           {none, edited("r.example.com", "evil.example.org"), fmt.Sprintf(elsewhere, "evil.example.org")},
		"image of Docker": {none, edited("r.example.com/cart", "cart"), fmt.Sprintf(elsewhere, "docker.io")},
		"binding":         {"", binding("view"), gives("view")},
		"other role":      {binding("view"), binding("cluster-admin"), gives("cluster-admin")},
		"role":            {"", role(`{"resources":["*"],"verbs":["get"]}`), "it has a rule with resources: *"},
		"escalate":        {"", role(`{"resources":["roles"],"verbs":["escalate"]}`), "it has a rule with the verb escalate"},
		"public":          {service(`"type":"ClusterIP"`), service(`"type":"NodePort"`), reached + "NodePort"},
		"private":         {"", service(`"ports":[{"port":80}]`), ""},
		"addresses":       {"", service(`"externalIPs":["192.0.2.1"]`), takes + "192.0.2.1"},
		"two addresses":   {"", service(`"externalIPs":["192.0.2.1","192.0.2.2"]`), takes + "192.0.2.1, 192.0.2.2"},
	} {
		t.Run(name, func(t *testing.T) {
			before := map[string]*object.Bundle{}
			if test.before != "" {
				before["a"] = bundle(test.before)
			}
			o := Outlook{knows: func(registry string) bool { return registry == "r.example.com" }}
			first, _, found := strings.Cut(textOfUnit(t, o, before, map[string]*object.Bundle{"a": bundle(test.after)}), "\n\n")
			_, got, _ := strings.Cut(first, " on target a: ")
			if !found {
				got = ""
			}
			if got != test.want {
				t.Errorf("got %q, want %q\n%s", got, test.want, first)
			}
		})
	}
}

// TestHunks: each hunk but the first was said to begin too early in the second text, by the equal lines between
// changes of the hunks before.
func TestHunks(t *testing.T) {
	text := func(changed string) string {
		var b strings.Builder
		for i := range 30 {
			fmt.Fprintf(&b, "line %d%s\n", i, map[int]string{1: changed, 3: changed, 14: strings.ReplaceAll(changed, "new",
				"new\nmore"), 25: changed}[i])
		}
		return b.String()
	}
	var heads []string
	for line := range strings.Lines(Unified("a", "b", text(""), text(" new"))) {
		if strings.HasPrefix(line, "@@") {
			heads = append(heads, strings.TrimSpace(line))
		}
	}
	want := []string{"@@ -1,7 +1,7 @@", "@@ -12,7 +12,8 @@", "@@ -23,7 +24,7 @@"}
	if !slices.Equal(heads, want) {
		t.Errorf("got %q, want %q", heads, want)
	}
}

// TestRisksOfOneTarget: it is said where, and registries are those of the whole base.
func TestRisksOfOneTarget(t *testing.T) {
	pod := func(more string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop"},` +
			`"spec":{"containers":[{"image":"r.example.com/p","name":"c"}]` + more + `}}`
	}
	got := textOfUnit(t, Outlook{}, nil, map[string]*object.Bundle{"a": bundle(pod("")), "b": bundle(pod(`,"hostPID":true`))})
	if !strings.HasPrefix(got, "look at this first:\n  shop/cart: Pod/shop/p on target b: its pods have hostPID of the node\n\n") ||
		!strings.Contains(got, "    ! its pods have hostPID of the node on target b\n") {
		t.Errorf("got\n%s", got)
	}
	image := func(unit, name string) string {
		return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: " + unit + ", namespace: ns}\nspec: {schedule: \"1 2 * * *\", " +
			"jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: " + name + "}]}}}}}\n"
	}
	base := snapshot(t, map[string]string{"a": image("a", "one.example.com/x"), "b": image("b", "two.example.com/x")})
	report := compare(t, base, snapshot(t, map[string]string{"a": image("a", "two.example.com/x"), "b": image("b", "three.example.com/x")}))
	const want = "services/b: CronJob/ns/b on 2 targets: one, two: container c has an image of three.example.com"
	if lines := report.Risks(8); len(lines) != 1 || !strings.Contains(lines[0], want) {
		t.Errorf("got %q of %+v", lines, report)
	}
}

// TestMoved: objects that another unit had are named in one line; where more than the marks change,
// the rest is told.
func TestMoved(t *testing.T) {
	hard := func(name, unit, value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","data":{"k":%q},"kind":"ConfigMap","metadata":{"annotations":{"swell.sh/unit":%q},`+
			`"labels":{"swell.sh/repository":"x","swell.sh/unit":%q},"name":%q,"namespace":"shop"}}`, value, unit, unit, name)
	}
	before := bundle(hard("a", "old", "1"), hard("b", "old", "1"), hard("c", "old", "1"))
	o := Outlook{Was: func(target object.UnitTarget, id object.ID) (*object.Object, object.UnitTarget) {
		return byID(before)[id], object.UnitTarget{Unit: "shop/old", Target: target.Target}
	}}
	after := bundle(hard("a", "new", "1"), hard("b", "new", "2"), hard("c", "new", "1"))
	got := textOfUnit(t, o, nil, map[string]*object.Bundle{"one": after, "two": after})
	want := `shop/cart
  moved ConfigMap/shop/a, ConfigMap/shop/c on 2 targets: one, two
    comes from unit shop/old
  configured ConfigMap/shop/b on 2 targets: one, two
    comes from unit shop/old
    - data.k: 1
    + data.k: 2
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRestarts: a change of a pod's template restarts as many pods as the objects say there are.
func TestRestarts(t *testing.T) {
	workload := func(kind, spec, image string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":"cart","namespace":"shop"},`+
			`"spec":{%s"template":{"spec":{"containers":[{"image":%q,"name":"main"}]}}}}`, kind, spec, image)
	}
	for name, test := range map[string]struct{ kind, spec, otherSpec, want string }{
		"deployment": {"Deployment", `"replicas":3,`, `"replicas":3,`, "restarts 6 pods of 1 workload"},
		"scaled":     {"Deployment", "", "", "restarts the pods of 1 workload"},
		"partly":     {"Deployment", `"replicas":3,`, "", "restarts at least 3 pods of 1 workload"},
		"daemon":     {"DaemonSet", "", "", "restarts the pods of 1 workload"},
		"by hand":    {"DaemonSet", `"updateStrategy":{"type":"OnDelete"},`, `"updateStrategy":{"type":"OnDelete"},`, ""},
		"paused":     {"Deployment", `"paused":true,`, `"paused":true,`, ""},
		"none":       {"StatefulSet", `"replicas":0,`, `"replicas":0,`, ""},
		"others":     {"ReplicaSet", `"replicas":3,`, `"replicas":3,`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			states := func(image string) map[config.TargetName]*object.Bundle {
				return map[config.TargetName]*object.Bundle{
					"a": bundle(workload(test.kind, test.spec, image)), "b": bundle(workload(test.kind, test.otherSpec, image))}
			}
			report := &Report{Changes: Unit("shop/cart", states("r/x:1"), states("r/x:2"))}
			if got := report.Restarts(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	scaledDown := func(n int) map[config.TargetName]*object.Bundle {
		return map[config.TargetName]*object.Bundle{"a": bundle(workload("Deployment", fmt.Sprintf(`"replicas":%d,`, n), "r/x:1"))}
	}
	if got := (&Report{Changes: Unit("shop/cart", scaledDown(3), scaledDown(5))}).Restarts(); got != "" {
		t.Errorf("more replicas: %q", got)
	}
}

// TestHostNamesAreRisks: a host name that another unit has, or had, is said where the change brings it,
// once for all forms of it; that of a Gateway and of the route behind it is none.
func TestHostNamesAreRisks(t *testing.T) {
	ingress := func(unit string, hosts ...string) string {
		var rules []string
		for _, host := range hosts {
			rules = append(rules, fmt.Sprintf("{host: %q}", host))
		}
		return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, namespace: ns}\nspec: {rules: [%s]}\n",
			unit, strings.Join(rules, ", "))
	}
	before := map[string]string{"a": ingress("a", "a.example", "*.wide.example"), "b": ingress("b", "b.example"),
		"d": ingress("d", "d.example"), "e": ingress("e", "d.example")}
	const changed = "Ingress/ns/"
	for name, c := range map[string]struct {
		unit, content string
		want          []string
	}{
		"another's":        {"b", ingress("b", "b.example", "a.example"), []string{changed + "b", "a.example, which services/a has, too"}},
		"below a wildcard": {"c", ingress("c", "x.wide.example"), []string{changed + "c", "which services/a has, too"}},
		"a wildcard":       {"c", ingress("c", "*.example"), []string{"*.example, which services/a has, too"}},
		"its own":          {"b", ingress("b", "b.example", "c.example"), nil},
		"of a Gateway": {"c", "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: c, namespace: ns}\n" +
			"spec: {listeners: [{name: a, hostname: a.example}]}\n", nil},
		"both had it":   {"d", ingress("d", "d.example", "f.example"), nil},
		"had it before": {"a", ingress("a", "a.example"), nil},
	} {
		after := maps.Clone(before)
		after[c.unit] = c.content
		lines := compare(t, snapshot(t, before), snapshot(t, after)).Risks(8)
		if len(lines) != min(1, len(c.want)) {
			t.Errorf("%s: got %q", name, lines)
		}
		for _, want := range c.want {
			if len(lines) == 1 && !strings.Contains(lines[0], want) {
				t.Errorf("%s: got %q, want %q in it", name, lines, want)
			}
		}
	}
	moved := maps.Clone(before)
	moved["a"], moved["b"] = ingress("a", "*.wide.example"), ingress("b", "b.example", "a.example")
	lines := compare(t, snapshot(t, before), snapshot(t, moved)).Risks(8)
	if len(lines) != 1 || !strings.Contains(lines[0], "a.example, which services/a had") {
		t.Errorf("moved: got %q", lines)
	}
}
