// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/schema"
)

// validObjects are those of testdata/valid.yaml.
func validObjects(t testing.TB) []map[string]any {
	t.Helper()
	content, err := os.ReadFile("testdata/valid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for part := range strings.SplitSeq(string(content), "\n---\n") {
		objects = append(objects, readObject(t, []byte(part)))
	}
	return objects
}

// customKinds are definitions of custom resources, and good objects of them.
func customKinds(t testing.TB) (definitions, objects []map[string]any) {
	t.Helper()
	for _, name := range []string{"widgets", "gauges", "routes"} {
		base := "../../render/schema/testdata/" + name
		content, err := os.ReadFile(base + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, readObject(t, content))
		archive, err := txtar.ParseFile(base + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if !strings.HasPrefix(string(f.Data), "# ") { // else it has mistakes
				object := readObject(t, f.Data)
				metadata := object["metadata"].(map[string]any)
				if metadata["name"] = f.Name; metadata["namespace"] != nil {
					metadata["namespace"] = "valid"
				}
				objects = append(objects, object)
			}
		}
	}
	return definitions, objects
}

func readObject(t testing.TB, text []byte) (object map[string]any) {
	t.Helper()
	content, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = utiljson.Unmarshal(content, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// place is a value inside an object, and where it is kept.
type place struct {
	in    map[string]any // or items
	key   string
	items *[]any
	index int
	put   func([]any) // stores a changed list
	typ   *schema.Type
	path  string
}

func (p *place) get() any {
	if p.in != nil {
		return p.in[p.key]
	}
	return (*p.items)[p.index]
}

func (p *place) set(v any) {
	if p.in != nil {
		p.in[p.key] = v
		return
	}
	(*p.items)[p.index] = v
}

func (p *place) remove() {
	if p.in != nil {
		delete(p.in, p.key)
		return
	}
	p.put(slices.Delete(slices.Clone(*p.items), p.index, p.index+1))
}

// mutator changes objects at random.
type mutator struct {
	*rand.Rand
	set    *schema.Set
	values map[*schema.Type][]any // of all valid objects, by type
}

func newMutator(set *schema.Set, objects []map[string]any) *mutator {
	m := &mutator{set: set, values: map[*schema.Type][]any{}}
	for _, object := range objects {
		for _, p := range m.places(object) {
			m.values[p.typ] = append(m.values[p.typ], p.get())
		}
	}
	return m
}

func (m *mutator) typeOf(object map[string]any) *schema.Type {
	return m.set.Kind(object["apiVersion"].(string), object["kind"].(string)).Type()
}

// places are all values of an object that may be changed, in a fixed order.
func (m *mutator) places(object map[string]any) []*place {
	var all []*place
	var visit func(typ *schema.Type, v any, path string, put func([]any))
	visit = func(typ *schema.Type, v any, path string, put func([]any)) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				field := typ.Fields[key]
				if field == nil {
					field = typ.Elem
				}
				below := path + "." + key
				if field == nil || owned(below) || isStatus(key, field) {
					continue
				}
				if below != ".metadata" {
					all = append(all, &place{in: v, key: key, typ: field, path: below})
				}
				visit(field, v[key], below, func(l []any) { v[key] = l })
			}
		case []any:
			if typ.Elem == nil {
				return
			}
			for i := range v {
				below := fmt.Sprintf("%s[%d]", path, i)
				all = append(all, &place{items: &v, index: i, put: put, typ: typ.Elem, path: below})
				visit(typ.Elem, v[i], below, func(l []any) { v[i] = l })
			}
		}
	}
	visit(m.typeOf(object), object, "", nil)
	return all
}

// owned are places that decide which object it is, and such as swell or the
// cluster sets.
func owned(path string) bool {
	switch path {
	case ".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".status", ".spec.ttlSecondsAfterFinished":
		return true
	}
	return strings.HasSuffix(path, ".nodePort") // a dry run gives no port away, so it takes any
}

func isStatus(key string, t *schema.Type) bool { return key == "status" && t.Form == schema.Object }

// mutate makes one change and says which.
func (m *mutator) mutate(object map[string]any) string {
	places := m.places(object)
	if len(places) == 0 {
		return "nothing is left"
	}
	p := places[m.IntN(len(places))]
	switch m.IntN(16) {
	case 0:
		return m.retype(p)
	case 1:
		p.set(nil)
		return "null for " + p.path
	case 2:
		if v, ok := p.get().(map[string]any); ok && len(v) > 0 {
			return m.rename(p, v)
		}
	}
	switch v := p.get().(type) {
	case map[string]any:
		return m.mapping(object, p, v)
	case []any:
		return m.list(p, v)
	default:
		return m.scalar(object, places, p, v)
	}
}

// retype puts a value of any form in the place of another.
func (m *mutator) retype(p *place) string {
	some := []any{"x", "1", "true", int64(1), 1.5, 2.0, true, false, []any{}, []any{"x"}, []any{int64(1)}, map[string]any{}, map[string]any{"a": "b"}}
	old := p.get()
	p.set(deepCopy(some[m.IntN(len(some))]))
	return fmt.Sprintf("changed %s from %#v to %#v", p.path, old, p.get())
}

// rename misspells the name of a field.
func (m *mutator) rename(p *place, v map[string]any) string {
	names := slices.Sorted(maps.Keys(v))
	name := names[m.IntN(len(names))]
	wrong := m.misspell(name)
	if v[wrong] != nil || owned(p.path+"."+name) {
		wrong = name + "x"
	}
	v[wrong] = v[name]
	delete(v, name)
	return fmt.Sprintf("misspelt %s.%s as %s", p.path, name, wrong)
}

func (m *mutator) mapping(object map[string]any, p *place, v map[string]any) string {
	switch n := m.IntN(10); {
	case n < 2:
		p.remove()
		return "removed " + p.path
	case n < 3:
		p.set(map[string]any{})
		return "emptied " + p.path
	case n < 5 && len(m.values[p.typ]) > 1:
		return m.other(p)
	case p.typ.Form == schema.Map && len(v) > 0:
		return m.key(p, v)
	}
	return m.add(p, v)
}

// other takes a value of the same type from another place.
func (m *mutator) other(p *place) string {
	all := m.values[p.typ]
	p.set(deepCopy(all[m.IntN(len(all))]))
	return "took another value for " + p.path
}

// key renames a key of a map, or adds one.
func (m *mutator) key(p *place, v map[string]any) string {
	keys := slices.Sorted(maps.Keys(v))
	key := keys[m.IntN(len(keys))]
	renamed := m.misspell(key)
	if m.IntN(2) == 0 {
		renamed = someTexts[m.IntN(len(someTexts))]
	}
	if renamed == "" || v[renamed] != nil {
		renamed = key + "_x"
	}
	v[renamed] = v[key]
	if m.IntN(3) > 0 {
		delete(v, key)
	}
	return fmt.Sprintf("renamed %s in %s to %q", key, p.path, renamed)
}

// add sets a field that was not there.
func (m *mutator) add(p *place, v map[string]any) string {
	var absent []string
	for name := range p.typ.Fields {
		if v[name] == nil && !owned(p.path+"."+name) && !isStatus(name, p.typ.Fields[name]) && (!isMetadata(p.typ) || name == "labels" || name == "annotations") {
			absent = append(absent, name)
		}
	}
	if len(absent) == 0 {
		p.remove()
		return "removed " + p.path
	}
	slices.Sort(absent)
	name := absent[m.IntN(len(absent))]
	v[name] = m.value(p.typ.Fields[name], 3)
	return fmt.Sprintf("added %s.%s", p.path, name)
}

func isMetadata(t *schema.Type) bool { return t.Fields["managedFields"] != nil }

func (m *mutator) list(p *place, v []any) string {
	switch n := m.IntN(10); {
	case n < 2 || p.typ.Elem == nil:
		p.remove()
		return "removed " + p.path
	case n < 4 || len(v) == 0:
		p.set([]any{})
		return "emptied " + p.path
	case n < 7:
		item := deepCopy(v[m.IntN(len(v))])
		what := "repeated an item of "
		if object, ok := item.(map[string]any); ok && m.IntN(3) > 0 { // with another key
			for _, key := range p.typ.Keys {
				switch value := object[key].(type) {
				case string:
					object[key] = value + "2"
				case int64:
					object[key] = value + 1
				}
			}
			what = "repeated an item with another key in "
		}
		p.set(append(slices.Clone(v), item))
		return what + p.path
	case n < 8 && len(m.values[p.typ]) > 1:
		return m.other(p)
	}
	p.set(append(slices.Clone(v), m.value(p.typ.Elem, 2)))
	return "added an item to " + p.path
}

func (m *mutator) scalar(object map[string]any, places []*place, p *place, v any) string {
	if m.IntN(6) == 0 {
		p.remove()
		return "removed " + p.path
	}
	old := v
	switch v := v.(type) {
	case string:
		switch n := m.IntN(6); {
		case n == 0:
			p.set(m.misspell(v))
		case n == 1:
			if other, ok := places[m.IntN(len(places))].get().(string); ok {
				p.set(other)
			}
		case n == 2 && len(m.values[p.typ]) > 1:
			p.set(m.values[p.typ][m.IntN(len(m.values[p.typ]))])
		default:
			p.set(m.value(p.typ, 0))
		}
	case bool:
		p.set(!v)
	default:
		p.set(m.value(p.typ, 0))
	}
	return fmt.Sprintf("changed %s from %#v to %#v", p.path, old, p.get())
}

var (
	someTexts = []string{"00:00:5e:00:53:01", "a@example.com", "7ba7b810-9dad-11d1-80b4-00c04fd430c8", "2026-01-02", "2026-13-02", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00",
		"2026-01-02 03:04:05", "3s", "1.5h", "3", "PT3S", "#ff0000", "#ff00", "aGVsbG8=", "aGVsbG8", "TODO", "none", "kg", "2019-12-31T23:59:59Z", "::ffff:10.0.0.1", "010.0.0.1",
		"10.0.0.0/08", "TCP", "0", "string", "", "x", "UPPER", "a_b", "-a", "a-", "a.b", "a b", strings.Repeat("a", 64), strings.Repeat("a", 254), "8080", "101%", "50%", "0%", "-1", "http",
		"10.0.0.0/33", "10.0.0.0/8", "10.0.0.1", "10.0.0.1/8", "::1", "2001:db8::/32", "256.0.0.1", "127.0.0.1", "1Gi", "-1Gi", "*/5 * * * *", "61 * * * *", "@daily",
		"Europe/Berlin", "Europe/Berlni", "Always", "None", "/data", "../up", "a/../b", "relative/path", "example.com", "*.example.com", "a.*.com", "example.com/name",
		"Example.com/Name", "/", "a/b/c", "https://example.com", "http://example.com", "True", "cpu", "memory", "gpu", "requests.cpu", "v1", "apps/v1", "name=x", "1x", "ä",
		"metadata.name", "metadata.labels", "limits.cpu", "tcp", "Deny", "*"}
	someFractions  = []any{0.5, 1.5, 1.3, -0.5, int64(0), int64(7), int64(1), 100.5, 1e300}
	someNumbers    = []int64{-1, 0, 1, 2, 5, 10, 100, 101, 256, 511, 512, 600, 3600, 3601, 86401, 30080, 65535, 65536, 70000, 1<<31 - 1}
	someQuantities = []any{"0", "-1", "1", "2", "100m", "1500m", "0.5", "1Gi", "64Mi", "10Gi", "-1Gi", int64(3)}
	someShares     = []any{int64(-1), int64(0), int64(1), int64(8080), int64(70000), "0%", "50%", "101%", "-5%", "half", "", "http", "8080", "1"}
)

// value makes a value of a type.
func (m *mutator) value(t *schema.Type, depth int) any {
	if known := m.values[t]; len(known) > 0 && t.Form <= schema.List && m.IntN(2) == 0 {
		return deepCopy(known[m.IntN(len(known))])
	}
	switch t.Form {
	case schema.Object:
		v := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
			if isMetadata(t) && name != "labels" && name != "annotations" {
				continue
			}
			if slices.Contains(t.Required, name) || depth > 0 && m.IntN(4) == 0 {
				v[name] = m.value(t.Fields[name], depth-1)
			}
		}
		return v
	case schema.Map:
		v := map[string]any{}
		for range m.IntN(3) {
			v[[]string{"a", "cpu", "memory", "example.com/a", "storage", "UP per", "tls.crt"}[m.IntN(7)]] = m.value(t.Elem, depth-1)
		}
		return v
	case schema.List:
		v := []any{}
		for range m.IntN(3) {
			v = append(v, m.value(t.Elem, depth-1))
		}
		return v
	case schema.Integer:
		return someNumbers[m.IntN(len(someNumbers))]
	case schema.Number:
		return someFractions[m.IntN(len(someFractions))]
	case schema.Boolean:
		return m.IntN(2) == 0
	case schema.Quantity:
		return someQuantities[m.IntN(len(someQuantities))]
	case schema.IntOrString:
		return someShares[m.IntN(len(someShares))]
	case schema.Base64:
		return []string{"", "aGVsbG8=", "e30="}[m.IntN(3)]
	case schema.String:
		if t.Rules != nil && len(t.Rules.Enum) > 0 && m.IntN(6) > 0 {
			return t.Rules.Enum[m.IntN(len(t.Rules.Enum))]
		}
		return someTexts[m.IntN(len(someTexts))]
	}
	return map[string]any{"a": "b"}
}

// misspell changes one character of a text.
func (m *mutator) misspell(s string) string {
	if s == "" {
		return "x"
	}
	i := m.IntN(len(s))
	switch m.IntN(4) {
	case 0:
		return s[:i] + s[i+1:]
	case 1:
		return s[:i] + s[i:i+1] + s[i:]
	case 2:
		return s[:i] + "_" + s[i+1:]
	}
	return s[:i] + strings.ToUpper(s[i:i+1]) + s[i+1:]
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for key, value := range v {
			c[key] = deepCopy(value)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, value := range v {
			c[i] = deepCopy(value)
		}
		return c
	}
	return v
}
