// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/object"
)

func blameCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var output, unit, target string
	cmd := &cobra.Command{
		Use:   "blame OBJECT [FIELD] [FOLDER | REVISION]",
		Short: "Show which line set a field of an object, and who wrote it",
		Long: `Show which line a field of a Kubernetes object comes from: a line of a spec, of a
file beside it, of Defaults, of an override, of the fleet, of data or of a kind.
Without FIELD, show all fields, one line each. In a Git repository, also show the
commit that brought the line, its author and the day, or that the line is not
committed yet.

OBJECT is Kind/name or Kind/namespace/name, the kind in any case of letters.
FIELD is a path as diff prints it (spec.template.spec.containers[name=main].image),
with an index ([0]), as in an override ([?name=='main']), or a JSON pointer
(/spec/replicas). A path that is also a revision or a folder of the monorepo must be
written as a pointer. A field that differs between targets is shown for each.

The lines of a field: value is the source of the value, the deciding one first;
template is the place where a kind puts it into the object; condition is a condition
that the kind evaluated on the way. A default names its line in the kind, and the
field of the spec that could be set instead. For objects that kustomize builds or a
Helm chart renders, the likeliest lines are shown, because neither reports them: of a
chart, the line of the template and the values that it asks for. Values of Secrets are
not shown.

Exit codes: 0 shown, 1 the unit has problems, 2 no such object or field.`,
		Example: `  swell blame Deployment/shop-rz00a/cart
  swell blame deployment/cart spec.replicas
  swell blame deployment/cart spec.replicas HEAD~5 --target sas-1`,
		Args: arguments(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			field, name := where.blameArguments(args)
			tree, commit, err := where.open(name)
			if err != nil {
				return err
			}
			compiler, done, err := where.compiler(cmd)
			if err != nil {
				return err
			}
			defer done()
			snapshot, err := where.compiled(cmd.Context(), compiler.Accepted(commit, tree))
			if err != nil {
				return err
			}
			if snapshot.Held {
				printProblems(cmd.ErrOrStderr(), snapshot.Problems)
				return exit(exitError)
			}
			q := question{snapshot: snapshot, unit: where.units(unit, nil, 0), target: target}
			answer, err := q.answer(args[0], field)
			var problems document.Problems
			if errors.As(err, &problems) {
				printProblems(cmd.ErrOrStderr(), problems)
				return exit(exitProblems)
			}
			if err != nil {
				return err
			}
			past, closed := where.history(name, commit, snapshot.Repository.Tree)
			defer closed()
			w := blameWriter{ctx: cmd.Context(), out: cmd.OutOrStdout(), history: past}
			if output == formatText {
				return w.text(answer)
			}
			return w.data(output, answer)
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML)
	cmd.Flags().StringVar(&unit, "unit", "", "only objects of this unit, or of the units below this folder")
	cmd.Flags().StringVar(&target, "target", "", "only on this target (cluster/cell), or the targets of this cluster")
	return cmd
}

// blameArguments tells the field, which may be empty, from the folder or
// revision.
func (p *repoFlags) blameArguments(args []string) (field, name string) {
	switch len(args) {
	case 1:
		return "", p.argument(nil, 0)
	case 3:
		return args[1], args[2]
	}
	if _, _, err := p.open(args[1]); err == nil {
		return "", args[1]
	}
	return args[1], p.argument(nil, 0)
}

// question is where an object is looked for.
type question struct {
	snapshot     *render.Snapshot
	unit, target string
}

// answer is an object, the same one on all targets of a unit.
type answer struct {
	id      object.ID // without its namespace where that differs
	unit    config.UnitPath
	targets []config.TargetName
	fields  []answered
	single  bool // one field was asked for
}

// answered is a field as it is on some of the targets.
type answered struct {
	field   string
	path    []any
	value   any
	targets []config.TargetName // sorted as the fleet is; nil for all
	origins []blame.Origin
}

// hit is an object on a target.
type hit struct {
	unit   config.UnitPath
	target config.TargetName
	id     object.ID
}

func (q *question) answer(object, field string) (*answer, error) {
	hits, err := q.find(object)
	if err != nil {
		return nil, err
	}
	var steps []fieldStep
	if field != "" {
		if steps, err = parseField(field); err != nil {
			return nil, err
		}
	}
	a := &answer{id: hits[0].id, unit: hits[0].unit}
	var missing error
	for _, h := range hits {
		if h.id.Namespace != a.id.Namespace {
			a.id.Namespace = "*"
		}
		found, err := q.fields(h, steps)
		if err != nil {
			missing = err
			var problems document.Problems
			if errors.As(err, &problems) {
				return nil, err
			}
			continue
		}
		a.targets = append(a.targets, h.target)
		for _, f := range found {
			a.add(f, h.target)
		}
		a.single = a.single || len(found) == 1 && field != ""
	}
	if len(a.targets) == 0 {
		return nil, fmt.Errorf("%s: %w", a.id, missing)
	}
	a.settle()
	return a, nil
}

// fields are the fields of an object on one target that the steps lead to.
func (q *question) fields(h hit, steps []fieldStep) ([]answered, error) {
	blamed, err := q.snapshot.Blame(h.unit, h.target)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(blamed, func(b render.Blamed) bool { return b.Object.ID == h.id })
	if i < 0 {
		return nil, fmt.Errorf("on %s: not rendered again", h.target)
	}
	whole := decodeObject(blamed[i].Object)
	redactor := blamed[i].Object.Redactor()
	prefix, err := findField(whole, steps)
	if err != nil {
		return nil, errors.New(redactor.Redact(err.Error()))
	}
	var found []answered
	for _, f := range blamed[i].Fields {
		if len(f.Path) >= len(prefix) && slices.Equal(f.Path[:len(prefix)], prefix) {
			found = append(found, answered{field: redactor.Redact(fieldText(whole, f.Path)), path: f.Path, value: f.Value, origins: f.Origins})
		}
	}
	return found, nil
}

// add takes up a field of a target, with the others that say the same.
func (a *answer) add(f answered, target config.TargetName) {
	for i := range a.fields {
		known := &a.fields[i]
		if known.field == f.field && fmt.Sprint(known.value) == fmt.Sprint(f.value) && slices.Equal(known.origins, f.origins) {
			known.targets = append(known.targets, target)
			return
		}
	}
	f.targets = []config.TargetName{target}
	a.fields = append(a.fields, f)
}

// settle puts the fields of all targets in order.
func (a *answer) settle() {
	slices.SortStableFunc(a.fields, func(x, y answered) int { return slices.CompareFunc(x.path, y.path, compareSteps) })
	for i := range a.fields {
		if len(a.fields[i].targets) == len(a.targets) {
			a.fields[i].targets = nil
		}
	}
}

// compareSteps orders indexes, and names, of which only one sort is at a place.
func compareSteps(a, b any) int {
	i, isIndex := a.(int)
	j, alsoIndex := b.(int)
	if isIndex && alsoIndex {
		return cmp.Compare(i, j)
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// find lists where the object is: in one unit, once on each target.
func (q *question) find(object string) ([]hit, error) {
	kindName, namespace, name, err := splitObject(object)
	if err != nil {
		return nil, err
	}
	units, err := pick(q.snapshot, q.unit, "")
	if err != nil {
		return nil, err
	}
	var hits []hit
	var known []string
	broken := 0
	for _, u := range units {
		if len(u.Problems) > 0 {
			if q.unit != "" && len(units) == 1 {
				return nil, u.Problems
			}
			broken++
			continue
		}
		bundles, err := q.snapshot.Bundles(u)
		if err != nil {
			return nil, err
		}
		for _, b := range bundles {
			for _, o := range b.Objects {
				known = append(known, o.ID.Kind+"/"+o.ID.Name)
				if config.Within(string(b.Target), q.target) && isKind(o.ID, kindName) && o.ID.Name == name && (namespace == "" || o.ID.Namespace == namespace) {
					hits = append(hits, hit{u.Path, b.Target, o.ID})
				}
			}
		}
	}
	if len(hits) == 0 {
		return nil, q.notFound(object, kindName+"/"+name, known, broken)
	}
	return hits, ambiguous(object, hits)
}

// splitObject reads Kind/name or Kind/namespace/name.
func splitObject(text string) (kindName, namespace, name string, err error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return "", "", "", fmt.Errorf("object %q: want Kind/name or Kind/namespace/name", document.Shorten(text))
	}
	if len(parts) == 3 {
		namespace = parts[1]
	}
	return parts[0], namespace, parts[len(parts)-1], nil
}

// isKind says whether a kind is meant by a word: its name in any case, also in
// the plural, with or without its group.
func isKind(id object.ID, word string) bool {
	name, group, grouped := strings.Cut(word, ".")
	if grouped && group != id.Group {
		return false
	}
	for _, plural := range []string{"", "s", "es"} {
		if strings.EqualFold(id.Kind+plural, name) {
			return true
		}
	}
	return strings.EqualFold(strings.TrimSuffix(id.Kind, "y")+"ies", name)
}

func (q *question) notFound(object, short string, known []string, broken int) error {
	where := ""
	if q.unit != "" {
		where += " in " + q.unit
	}
	if q.target != "" {
		where += " on " + q.target
	}
	slices.Sort(known)
	err := fmt.Errorf("object %s: no such object%s%s", document.Shorten(object), where, document.DidYouMean(short, slices.Compact(known)))
	if broken > 0 {
		return hinted{err, fmt.Sprintf("%d units have problems and render to nothing; swell check shows them", broken)}
	}
	return err
}

// ambiguous is an error when the hits are several objects.
func ambiguous(object string, hits []hit) error {
	names := map[config.TargetName]hit{}
	for _, h := range hits {
		first, there := names[h.target]
		names[h.target] = h
		switch {
		case h.unit != hits[0].unit:
			return hinted{fmt.Errorf("object %s: units %s and %s have one", object, hits[0].unit, h.unit), "--unit or a namespace selects one"}
		case there:
			return hinted{fmt.Errorf("object %s: %s and %s are both on %s", object, first.id, h.id, h.target), "write Kind/namespace/name, or Kind.group/name"}
		}
	}
	return nil
}
