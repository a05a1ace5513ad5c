// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

func explainCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var apiVersion, output string
	var recursive bool
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD...] | explain CODE | explain UNIT",
		Short: "Describe a kind or one of its fields, a class of problems like SW1003, or what protects a unit",
		Long: `Show the description, type and fields of a kind, or of the field that the path
leads to. KIND is an easy kind of the monorepo, a kind of Kubernetes, or one of
swell's own documents (Repository, Cluster, Rollout, Tenant, HealthRule, Defaults,
EasyKind, Daemon). The path leads through lists and maps. For an easy kind, also show
the objects that it stands for; spec.override.ID leads into them.

Kinds of Kubernetes have no descriptions, because their schemas are embedded without
them.

For a code, as swell check shows it behind each problem, say what causes such problems,
with an example, and the way out.

For a unit, by its path, show what protects it: the bounds of its Tenant, the owners of its
files, the policies and Checkers that judge its objects, the waves and gates of its
Rollout, Masks and Windows. Each has the line that says so, and how many objects, texts,
files or targets of the unit it matches, from the monorepo alone. The unit is rendered.

Exit codes: 0 shown, 2 no such kind, field, code or unit.`,
		Example: `  swell explain Runtime
  swell explain Runtime.spec.autoscale
  swell explain Runtime.spec.override.deployment.spec.strategy
  swell explain Deployment.spec.template.spec.containers --recursive
  swell explain HorizontalPodAutoscaler --api-version autoscaling/v1
  swell explain SW1009
  swell explain services/shop/cart`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if problemCode.MatchString(args[0]) {
				return explainCode(cmd.OutOrStdout(), output, args[0])
			}
			if strings.Contains(args[0], "/") {
				return where.explainUnit(cmd, output, args[0])
			}
			known, notes, err := explainable(&where)
			if err != nil {
				return err
			}
			name, path := splitPath(args[0])
			k, err := findKind(known, name, apiVersion)
			if err != nil {
				for _, note := range notes { // it may be one of those
					fmt.Fprintln(cmd.ErrOrStderr(), "swell:", note)
				}
				return err
			}
			s, err := k.descend(path)
			if err != nil {
				return err
			}
			if output != formatText {
				return writeData(cmd.OutOrStdout(), output, explanationOf(k, path, s, recursive))
			}
			e := explanation{out: cmd.OutOrStdout()}
			e.write(k, path, s, recursive)
			return nil
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	cmd.Flags().StringVar(&apiVersion, "api-version", "", "apiVersion of the kind, where several have one of that name")
	outputFlag(cmd, &output, formatText, formatJSON, formatYAML)
	cmd.Flags().BoolVar(&recursive, "recursive", false, "show the fields of the fields too")
	return cmd
}

// explained is a kind that can be explained.
type explained struct {
	apiVersion, name string
	from             string // "an easy kind in kinds/runtime"
	easy             bool
	shape            shape
	objects          []kind.Object // of an easy kind
}

func (k *explained) group() string {
	group, _, found := strings.Cut(k.apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// explainable lists all kinds: swell's own, those of Kubernetes, and those of
// the monorepo, if there is one here. notes are about kinds that do not load.
func explainable(where *repoFlags) (known []*explained, notes []string, err error) {
	for _, m := range config.OwnDocuments() {
		known = append(known, &explained{apiVersion: config.APIVersion, name: string(m.Name()), from: "a document of swell itself", shape: messageShape(m)})
	}
	hard, err := schema.Kubernetes("")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range hard.Names() {
		apiVersion, kindName, _ := strings.Cut(name, " ")
		known = append(known, &explained{apiVersion: apiVersion, name: kindName, from: "of Kubernetes " + schema.Versions()[0],
			shape: lazyHardShape(hard.Kind(apiVersion, kindName))})
	}
	easy, notes, err := explainedKinds(where)
	return append(known, easy...), notes, err
}

func explainedKinds(where *repoFlags) (known []*explained, notes []string, err error) {
	dir := where.argument(nil, 0)
	if _, err := where.in.findMonorepo(dir); err != nil {
		return nil, []string{"no monorepo here, so easy kinds are not known; --repo names its folder"}, nil
	}
	tree, _, err := where.open(dir)
	if err != nil {
		return nil, nil, err
	}
	loaded := render.Kinds(tree)
	if len(loaded.Repository.Folders()) == 0 {
		return nil, nil, loaded.Repository.Problems
	}
	all := loaded.Kinds
	for _, folder := range all.BrokenFolders() {
		notes = append(notes, fmt.Sprintf("%s has problems, swell check shows them", folder))
	}
	for _, k := range all.Declared() {
		whole, err := document.Envelope(k.Message())
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %s", k.Folder, err))
			continue
		}
		from := "an easy kind in " + k.Folder
		if k.Folder == "" {
			from = "an easy kind of swell"
		}
		s := documented(messageShape(whole), k.Message())
		known = append(known, &explained{apiVersion: k.APIVersion(), name: k.Name, from: from, easy: true,
			shape: withOverride(s, k.Objects(), loaded.Hard), objects: k.Objects()})
	}
	return known, notes, nil
}

var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// splitPath splits "Runtime.spec.hosts[0].name" into the kind and the path,
// without indexes.
func splitPath(text string) (kindName string, path []string) {
	steps := strings.Split(brackets.ReplaceAllString(text, ""), ".")
	return steps[0], steps[1:]
}

// findKind finds a kind by its name, in any case of letters, also in the
// plural. Of several versions in one group it is the newest.
func findKind(known []*explained, name, apiVersion string) (*explained, error) {
	var found []*explained
	for _, written := range []string{name, strings.TrimSuffix(name, "s"), strings.TrimSuffix(name, "es"), strings.TrimSuffix(name, "ies") + "y"} {
		for _, k := range known {
			if strings.EqualFold(k.name, written) && (apiVersion == "" || k.apiVersion == apiVersion) {
				found = append(found, k)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	if len(found) == 0 {
		return nil, noSuchKind(known, name, apiVersion)
	}
	slices.SortFunc(found, func(a, b *explained) int {
		return cmp.Or(cmp.Compare(a.group(), b.group()), kubeversion.CompareKubeAwareVersionStrings(versionOf(b), versionOf(a)))
	})
	found = slices.CompactFunc(found, func(a, b *explained) bool { return a.group() == b.group() })
	if len(found) > 1 {
		var names []string
		for _, k := range found {
			names = append(names, k.apiVersion)
		}
		return nil, hinted{fmt.Errorf("kind %s: several have it: %s", found[0].name, strings.Join(names, ", ")), "--api-version selects one"}
	}
	return found[0], nil
}

func versionOf(k *explained) string { return k.apiVersion[strings.LastIndex(k.apiVersion, "/")+1:] }

func noSuchKind(known []*explained, name, apiVersion string) error {
	var names, versions []string
	for _, k := range known {
		names = append(names, k.name)
		if strings.EqualFold(k.name, name) {
			versions = append(versions, k.apiVersion)
		}
	}
	if len(versions) > 0 {
		return fmt.Errorf("kind %s: not in %q%s", name, apiVersion, document.DidYouMean(apiVersion, versions))
	}
	return fmt.Errorf("kind %q: no such kind%s", name, document.DidYouMean(name, names))
}

// descend finds what the path leads to.
func (k *explained) descend(path []string) (shape, error) {
	s := k.shape
	for i, step := range path {
		where := strings.Join(append([]string{k.name}, path[:i]...), ".")
		if step == "*" && s.elements {
			continue // any item, any key
		}
		fields := s.allFields()
		if len(fields) == 0 {
			return shape{}, fmt.Errorf("%s.%s: no such field, %s is %s", where, step, where, s.typ)
		}
		j := slices.IndexFunc(fields, func(f field) bool { return f.name == step })
		if j < 0 {
			var names []string
			for _, f := range fields {
				names = append(names, f.name)
			}
			return shape{}, fmt.Errorf("%s.%s: no such field%s", where, step, document.DidYouMean(step, names))
		}
		doc := fields[j].doc
		if s = fields[j].shape; doc != "" {
			s.doc = strings.TrimSpace(doc + "\n\n" + s.doc)
		}
	}
	return s, nil
}
