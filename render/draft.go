// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/helm"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/override"
	"github.com/swell-sh/swell/render/schema"
)

// maxObject is the largest object that an API server takes, in bytes of JSON:
// etcd's default request limit is 1.5 MiB, and the stored form with
// managedFields is larger than what we send.
const maxObject = 1 << 20

// draft is a hard object before it is checked and made final.
type draft struct {
	repository string // its name
	unit       *config.Unit
	doc        *document.Document        // the spec, or the hard object itself
	object     map[string]any            // may be shared; copied before it is changed
	touched    func() []override.Touched // by overrides; nil when there are none
	hard       *schema.Set
	noKind     func(apiVersion, kindName string) noKind // see [world.noKind]
	rendered   *rendered                                // an object of a chart; nil for others
	template   *yaml.Node                               // of the object in its kind; nil for a hard object
	templateAt document.Position
	chain      []document.Position // of the templates that led to this one
	// written is where in the spec the value at a path was written; nil, or ok is
	// false, where that is not known.
	written func(path []any) (at document.Position, ok bool)
	// fromData names the value of data that the value at a path was taken from, and
	// its line; empty when there is none. Nil for a hard document.
	fromData func(path []any) string
	// readsTenant says of a unit without a tenant whether a value was computed
	// from it all the same; nil when the unit has one.
	readsTenant func(path []any) bool
	tenants     []ruling
	sharedNames []sharedName // once the object is sealed
	secrets     []string     // that it may have taken from a spec's secret fields
	step        *blame.Step  // how the object was made; nil when nobody asks
	problems    document.Problems
	// space is the namespace of a written object that names none. anywhere: it came out of
	// kustomize or a chart, which set namespaces also on what lives in none.
	space    string
	anywhere bool
	sealed   *schema.Kind      // once the object is sealed
	notes    document.Problems // what does not hold the unit
	checks   config.Checks
	// fileOf finds the file that encrypted values of the document are from.
	fileOf func(*document.Document, []sealedValue) string
}

// problem adds a problem at a path into the object: at the override that the
// value is from, or that took it away; else at its line in a hard document; for
// a rendered object at the spec, via its line in the template.
func (d *draft) problem(code document.Code, path []any, format string, args ...any) {
	d.problemOf(code, path, path, format, args...)
}

// problemOf is problem for a value that an override may have made or taken away
// at another path, below that of the problem.
func (d *draft) problemOf(code document.Code, path, value []any, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(path) > 0 {
		message = d.pathText(path) + ": " + message
	}
	if d.touched != nil {
		if at, _ := override.Origin(d.touched(), value); at.File != "" { // also of what was removed
			p := document.Problem{Position: at, Code: code, Message: fmt.Sprintf("%s %s: %s: %s", d.doc.Kind, d.doc.Name, d.what(), message)}
			switch {
			case slices.ContainsFunc(d.chain, func(template document.Position) bool { return template.File == at.File }):
				// Of an easy spec that a template rendered.
				p.Position, p.Via = d.doc.Position(), append(slices.Clip(d.chain), at)
			case at.File != d.doc.File:
				p.Via = []document.Position{d.doc.Position()}
			}
			d.problems = append(d.problems, p)
			return
		}
	}
	if d.rendered != nil {
		p := d.rendered.chart.problem(helm.Finding{Text: d.what() + ": " + message})
		p.Code, p.Via = code, []document.Position{d.rendered.at(path)}
		d.problems = append(d.problems, p)
		return
	}
	if d.template == nil {
		doc, at := d.doc.Place(path)
		p := doc.Problem(at, code, "%s", message)
		for _, other := range d.doc.Ambiguous { // what is wrong with it may follow from that
			if other.Position == doc.At(doc.Deepest(path...)) {
				p.Message += "; it is " + other.Message
			}
		}
		d.problems = append(d.problems, p)
		return
	}
	if d.readsTenant != nil && len(path) > 0 && code != document.CodeUnknown && d.readsTenant(path) {
		// What is wrong with the value follows from that, and differs from target to target.
		message = d.pathText(path) + ": no tenant: say `tenant: ...` in a swell.yaml here or further up"
	}
	p := d.doc.Problem(d.doc.Node, code, "%s %s: %s: %s%s", d.doc.Kind, d.doc.Name, d.what(), message, d.fromOneOf([][]any{path}))
	at := document.NodeAt(d.template, path)
	p.Via = append(slices.Clip(d.chain), document.Position{File: d.templateAt.File, Line: at.Line, Column: at.Column})
	if d.written != nil && len(path) > 0 {
		if at, ok := d.written(path); ok {
			p.Position = at
		}
	}
	d.problems = append(d.problems, p)
}

// fromOneOf ends a message about one of the values at these paths, an outer one
// before what is in it: the value of data that it was taken from. It is empty when
// there is none, or more than one.
func (d *draft) fromOneOf(paths [][]any) (text string) {
	var named []any
	for _, path := range paths {
		if d.fromData == nil || len(path) == 0 || named != nil && len(path) > len(named) && slices.Equal(path[:len(named)], named) {
			continue
		}
		switch from := d.fromData(path); {
		case from == "":
		case named != nil:
			return ""
		default:
			text, named = ", from "+from, path
		}
	}
	return text
}

// pathText is a path as a message may show it: a key of a Secret's data that may be
// a value is not.
func (d *draft) pathText(path []any) string {
	const keyed = 2 // the field and the key
	if len(path) == 0 {
		return schema.PathText(path)
	}
	if len(path) >= keyed && config.MaySecretObject(d.object) && slices.Contains(secretFields, path[0]) {
		if key, ok := path[1].(string); ok && !document.PlainKey(key) {
			path = slices.Clone(path)
			path[1] = document.Redacted
		}
	}
	if key, ok := path[0].(string); len(path) == 1 && ok && isSecret(d.object) && config.UnknownInSecret(key) {
		return document.Redacted
	}
	const annotated = 3 // metadata, annotations and the key
	if len(path) == annotated && config.MaySecretObject(d.object) && path[1] == "annotations" {
		if key, ok := path[2].(string); ok && !slices.Contains(config.AnnotationsSet, key) && unknownAnnotation(key) {
			path = []any{path[0], path[1], config.KeyPrefix + document.Redacted}
		}
	}
	return schema.PathText(path)
}

// isSecret says whether a decoded object is a Secret.
func isSecret(object map[string]any) bool {
	return object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

var secretFields = []any{"data", "stringData"}

// violations become problems: all of them, or the first ones in the order of
// their paths when there are very many.
func (d *draft) violations(all []schema.Violation) {
	if len(all) > document.MaxProblems {
		paths := make(map[string]schema.Violation, len(all))
		for _, v := range all {
			paths[schema.PathText(v.Path)+"\x00"+v.Message] = v
		}
		texts := slices.Sorted(maps.Keys(paths))
		d.problem(document.CodeObject, nil, "%d problems, of which the first %d are told", len(texts), min(len(texts), document.MaxProblems))
		all = all[:0]
		for _, text := range texts[:min(len(texts), document.MaxProblems)] {
			all = append(all, paths[text])
		}
	}
	for _, v := range all {
		if isServerOwned(v.Path) { // is to go altogether
			continue
		}
		value := v.Path
		if v.Missing != "" {
			value = append(slices.Clip(value), v.Missing)
		}
		before := len(d.problems)
		d.problemOf(v.Code, v.Path, value, "%s", v.Message)
		for i := range d.problems[before:] {
			d.problems[before+i].Basis = basisOf(v)
		}
	}
}

func basisOf(v schema.Violation) document.Basis {
	if v.Modelled {
		return document.Modelled
	}
	return document.Exact
}

// what names the object as well as it can be told by now.
func (d *draft) what() string {
	kindName, _ := d.object["kind"].(string)
	metadata, _ := d.object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if d.readsTenant != nil && d.readsTenant([]any{"metadata", "name"}) {
		return document.Shorten(kindName) // its name is no good
	}
	if kindName == "" {
		kindName = "object"
	}
	if name == "" {
		return document.Shorten(kindName) + " without a name"
	}
	return document.Shorten(kindName) + "/" + document.Shorten(name)
}

// seal checks the object and makes it final; nil after a problem.
func (d *draft) seal() *object.Object {
	apiVersion, _ := d.object["apiVersion"].(string)
	kindName, _ := d.object["kind"].(string)
	if apiVersion == "" || kindName == "" {
		d.problem(document.CodeDocument, nil, "want an apiVersion and a kind, got %q and %q", document.Shorten(apiVersion),
			document.Shorten(kindName))
		return nil
	}
	hard := d.hard.Kind(apiVersion, kindName)
	if hard == nil {
		if hard = d.unknown(apiVersion, kindName); hard == nil {
			return nil
		}
	}
	d.deprecated(hard)
	id := object.ID{Kind: kindName}
	version := apiVersion
	if group, v, ok := strings.Cut(apiVersion, "/"); ok {
		id.Group, version = group, v
	}
	if kindName == "Event" && (id.Group == "" || id.Group == "events.k8s.io") {
		// The only kind that is one object in two groups; and it does not last.
		d.problem(document.CodeObject, nil, "%s Event: a note of what happened in a cluster, which deletes it after a while: not from Git", apiVersion)
		return nil
	}
	d.object = schema.WithoutNulls(hard.Type(), d.object).(map[string]any)
	d.object = schema.WithoutUnset(hard.Type(), d.object).(map[string]any)
	d.dropStatus()
	d.place(hard.Namespaced)
	d.nameHook(id)
	metadata := d.metadata(&id, hard.Namespaced)
	seen, sealed := d.secretValues(id)
	d.violations(hard.Check(seen, len(d.secrets) > 0))
	phase := d.phase(metadata)
	d.applying(id, metadata)
	d.tenancy(id, hard.Namespaced)
	if len(d.problems) > 0 {
		return nil
	}
	obj := maps.Clone(d.object)
	obj["metadata"] = d.marked(metadata)
	o := &object.Object{ID: id, Version: version, Phase: phase, JSON: schema.AppendObject(nil, obj), Spec: d.doc.Position(), Template: d.templateAt, Sealed: sealed}
	if len(o.JSON) > maxObject {
		d.problem(document.CodeObject, nil, "%s: %d bytes, an API server takes at most %d", id, len(o.JSON), maxObject)
		return nil
	}
	if bytes.Contains(o.JSON, []byte(sops.Prefix)) {
		if d.sealedElsewhere(nil, seen); len(d.problems) > 0 {
			return nil
		}
	}
	d.noteNames(id)
	d.object, d.sealed = obj, hard
	o.Digest = object.DigestOf(o.JSON)
	o.Secrets = config.QuotedIn(string(o.JSON), d.secrets)
	return o
}

// noKind is why there is no hard kind of a name.
type noKind struct {
	code    document.Code
	message string
	nowhere bool // it is a custom resource whose definition is nowhere
}

// noKind says why a cluster has no hard kind of a name; hard are its schemas.
func (w *world) noKind(hard *schema.Set, apiVersion, kindName string) noKind {
	name := document.Shorten(apiVersion) + " " + document.Shorten(kindName)
	if why := hard.Unserved(apiVersion, kindName); why != "" {
		return noKind{document.CodeVersion, name + ": " + why, false}
	}
	if d := w.hard.elsewhere(hard, apiVersion, kindName); d != nil {
		return noKind{document.CodeVersion, fmt.Sprintf("%s: its definition at %s is not placed on this cluster: place unit %s there, let `swell facts pull` take that of the cluster, or put the CustomResourceDefinition into a file of the folder of schemas",
			name, d.place, d.unit), true}
	}
	if len(w.kinds.Unnamed()) == 0 && hard.Nowhere(apiVersion, kindName, w.kinds.Names()) {
		return noKind{document.CodeVersion, name + ": " + toOtherTool(apiVersion, kindName) + "its definition is nowhere: `swell facts pull` takes those of the clusters, or put its CustomResourceDefinition into a file of the folder of schemas", true}
	}
	return noKind{document.CodeDocument, name + ": no such kind" + suggestKind(w.kinds, hard, apiVersion, kindName), false}
}

// unknown is the kind of an object that no schema is known of, by the repository's rule
// for these; nil where it is refused.
func (d *draft) unknown(apiVersion, kindName string) *schema.Kind {
	why := d.noKind(apiVersion, kindName)
	switch {
	case why.nowhere && d.checks.UnknownKinds == config.Pass:
	case why.nowhere && d.checks.UnknownKinds == config.Warn:
		d.warn(why.code, nil, "%s; only its metadata is checked", why.message)
	case why.nowhere:
		d.problem(why.code, nil, "%s; checks.unknownKinds of the root's swell.yaml can let it pass", why.message)
		return nil
	default:
		d.problem(why.code, nil, "%s", why.message)
		if why.code == document.CodeVersion {
			d.problems[len(d.problems)-1].Basis = document.Exact
		}
		return nil
	}
	metadata, _ := d.object["metadata"].(map[string]any)
	return d.hard.Any(kindName, metadata["namespace"] != nil) // applying refuses the wrong scope
}

// deprecated notes that the kind will not be served for ever in the version of the object.
func (d *draft) deprecated(hard *schema.Kind) {
	switch text := hard.Deprecation(); {
	case text == "":
	case hard.Definition() != "": // in the words of its definition
		d.warn(document.CodeVersion, nil, "%s", text)
	default:
		d.warn(document.CodeVersion, nil, "%s %s: %s", d.object["apiVersion"], d.object["kind"], text)
	}
}

// warn is problem for a note.
func (d *draft) warn(code document.Code, path []any, format string, args ...any) {
	before := len(d.problems)
	d.problem(code, path, format, args...)
	d.notes = append(d.notes, d.problems[before:]...)
	d.problems = d.problems[:before]
}

// suggestKind is the end of a message that there is no such kind.
func suggestKind(kinds *kind.Kinds, hard *schema.Set, apiVersion, kindName string) string {
	if unnamed := kinds.Unnamed(); len(unnamed) > 0 {
		return fmt.Sprintf("; %s does not load, it may be that one", strings.Join(unnamed, ", "))
	}
	if instead := hard.Instead(apiVersion, kindName); instead != "" {
		return instead
	}
	return document.DidYouMean(apiVersion+" "+kindName, slices.Concat(kinds.Names(), hard.Names()))
}

// serverOwned are fields of metadata that only the server or a controller may
// set.
var serverOwned = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields", "selfLink", "ownerReferences", "finalizers"}

// isServerOwned says whether a path leads to or into what only the server may
// set.
func isServerOwned(path []any) bool {
	switch {
	case len(path) == 0:
		return false
	case path[0] == "status":
		return true
	}
	if len(path) < 2 || path[0] != "metadata" {
		return false
	}
	field, _ := path[1].(string)
	return slices.Contains(serverOwned, field)
}

// metadata checks the object's identity and fills in id.
func (d *draft) metadata(id *object.ID, namespaced bool) map[string]any {
	if d.object["status"] != nil {
		d.problem(document.CodeObject, []any{"status"}, "set by the cluster, not from Git: remove it")
	}
	metadata, _ := d.object["metadata"].(map[string]any)
	for _, field := range serverOwned {
		if metadata[field] != nil {
			d.problem(document.CodeObject, []any{"metadata", field}, "set by the cluster, not from Git: remove it")
		}
	}
	var named, placed bool // else of another type, which the schema says
	id.Name, named = textAt(metadata, "name")
	id.Namespace, placed = textAt(metadata, "namespace")
	if d.object["metadata"] != nil && metadata == nil {
		return nil
	}
	switch {
	case !named:
	case id.Name == "" && metadata["generateName"] != nil: // which is refused
	case id.Name == "":
		d.problem(document.CodeDocument, []any{"metadata", "name"}, "missing")
	case id.Group == "rbac.authorization.k8s.io" && !isRoleName(id.Name), id.Group != "rbac.authorization.k8s.io" && !document.IsName(id.Name):
		d.problem(document.CodeObject, []any{"metadata", "name"}, "%+q: want at most 253 lower-case letters, digits, - and .", document.Shorten(id.Name))
	}
	switch {
	case !placed:
	case namespaced && id.Namespace == "":
		d.problem(document.CodeDocument, []any{"metadata", "namespace"}, "missing, a %s lives in a namespace", id.Kind)
	case !namespaced && id.Namespace != "":
		d.problem(document.CodeObject, []any{"metadata", "namespace"}, "a %s lives in no namespace: remove it", id.Kind)
	case namespaced && !document.IsLabel(id.Namespace):
		d.problem(document.CodeObject, []any{"metadata", "namespace"}, "%+q: want at most 63 lower-case letters, digits and -", document.Shorten(id.Namespace))
	}
	d.forged(metadata)
	return metadata
}

// textAt is a text in a mapping, empty where there is none; ok is false for a
// value of another type.
func textAt(m map[string]any, key string) (text string, ok bool) {
	if m[key] == nil {
		return "", true
	}
	text, ok = m[key].(string)
	return text, ok
}

// maxPhase is the last phase that an object can be in.
const maxPhase = 999

// phase is the value of [config.AnnotationPhase], 0 where there is none.
func (d *draft) phase(metadata map[string]any) int {
	annotations, _ := metadata["annotations"].(map[string]any)
	text, there := annotations[config.AnnotationPhase].(string)
	if !there {
		return 0
	}
	phase, err := strconv.Atoi(text)
	if err != nil || phase < 0 || phase > maxPhase {
		d.problem(document.CodeObject, []any{"metadata", "annotations", config.AnnotationPhase}, "want an integer from 0 to %d as a string, got %q", maxPhase, document.Shorten(text))
	}
	return phase
}

// isRoleName says whether s can be the name of an object of RBAC, which takes
// more: system:node, a_b:C, any part of a path. swell takes what can be seen of that.
func isRoleName(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '/' || s[i] == '%' {
			return false
		}
	}
	return s != "" && s != "." && s != ".." && len(s) <= 253
}

// forged finds labels and annotations that are swell's to set.
func (d *draft) forged(metadata map[string]any) {
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		for _, key := range config.LabelsSet {
			if values[key] != nil {
				d.problem(document.CodeObject, []any{"metadata", field, key}, "set by swell on everything it applies: remove it")
			}
		}
	}
}

// marked is the metadata with swell's own labels and annotation added.
func (d *draft) marked(metadata map[string]any) map[string]any {
	metadata = maps.Clone(metadata)
	labels := withText(metadata["labels"], config.LabelRepository, d.repository, config.LabelUnit, UnitLabel(d.unit.Path))
	if _, given := labels[config.LabelManagedBy]; !given {
		labels[config.LabelManagedBy] = config.ManagedBy
	}
	metadata["labels"] = labels
	annotations := withText(metadata["annotations"], config.AnnotationUnit, string(d.unit.Path))
	if d.unit.Defaults.Keeps {
		annotations[config.AnnotationPrune] = config.PruneDisabled
	}
	metadata["annotations"] = annotations
	return metadata
}

func withText(values any, pairs ...string) map[string]any {
	old, _ := values.(map[string]any)
	merged := make(map[string]any, len(old)+len(pairs)/2)
	maps.Copy(merged, old)
	for i := 0; i < len(pairs); i += 2 {
		merged[pairs[i]] = pairs[i+1]
	}
	return merged
}

var labelValue = regexp.MustCompile(`^[a-z0-9]([-a-z0-9/]{0,61}[a-z0-9])?$`)

// UnitLabel is a unit's path as the value of a label: slashes become dots.
// A path that is too long or has other characters than lower-case letters,
// digits and - is cut and told apart by a hash at its end.
func UnitLabel(unit config.UnitPath) string {
	dotted := strings.ReplaceAll(string(unit), "/", ".")
	if labelValue.MatchString(string(unit)) && !strings.Contains(string(unit), "//") {
		return dotted
	}
	sum := sha256.Sum256([]byte(unit))
	kept := regexp.MustCompile(`[^-A-Za-z0-9.]`).ReplaceAllString(dotted, "-")
	kept = strings.Trim(kept[:min(len(kept), 52)], "-.")
	return strings.TrimLeft(kept+"-"+hex.EncodeToString(sum[:5]), "-")
}
