// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/render/object"
)

// accountUse is where an object names a service account that it acts as, or whose token it asks for.
type accountUse struct {
	path            []any
	namespace, name string
}

// accountFields are the fields, at any depth, that name a service account of the object's own
// namespace: those of pods, and what kinds of others that make pods or act for themselves call so. The
// last two are mostly mappings with a name, and perhaps a namespace.
var accountFields = []string{"serviceAccountName", "serviceAccount", "serviceAccountRef"}

// freeKeys are fields whose keys are names that people make up.
var freeKeys = []any{"labels", "annotations", "matchLabels", "selector", "nodeSelector"}

// tokenSecret is the type of a Secret that the cluster writes a token into, of the account that
// tokenOf names.
const (
	tokenSecret = "kubernetes.io/service-account-token"
	tokenOf     = "kubernetes.io/service-account.name"
)

// accountsIn are the service accounts that an object names.
func accountsIn(id object.ID, content map[string]any) (uses []accountUse) {
	add := func(path []any, namespace, name any) {
		inNamespace, _ := namespace.(string)
		if text, _ := name.(string); text != "" {
			uses = append(uses, accountUse{slices.Clone(path), cmp.Or(inNamespace, id.Namespace), text})
		}
	}
	if id.IsSecret() {
		if content["type"] == tokenSecret {
			path := []any{"metadata", "annotations", tokenOf}
			add(path, nil, fieldOf(content, path...))
		}
		return uses
	}
	if id.Group == "rbac.authorization.k8s.io" {
		return tokensIn(id, content)
	}
	if id.IsDefinition() || id.Group == "" && id.Kind == "ConfigMap" {
		return nil // a field is defined there, and a text has the name
	}
	inside(content, make([]any, 0, 16), func(path []any, m map[string]any) {
		if len(path) > 0 && slices.Contains(freeKeys, path[len(path)-1]) {
			return
		}
		for _, field := range accountFields {
			switch value := m[field].(type) {
			case string:
				add(append(path, field), nil, value)
			case map[string]any:
				add(append(path, field, "name"), value["namespace"], value["name"])
			}
		}
	})
	return uses
}

// tokensIn are the service accounts whose tokens a role gives by name.
func tokensIn(id object.ID, content map[string]any) (uses []accountUse) {
	rules, _ := content["rules"].([]any)
	for i, item := range rules {
		rule, _ := item.(map[string]any)
		if id.Kind != "Role" || indexOf(rule["resources"], tokens) < 0 {
			continue
		}
		names, _ := rule["resourceNames"].([]any)
		for n, name := range names {
			if text, _ := name.(string); text != "" {
				uses = append(uses, accountUse{[]any{"rules", i, "resourceNames", n}, id.Namespace, text})
			}
		}
	}
	return uses
}

// subject is who a binding gives rights to.
type subject struct{ kind, namespace, name string }

// everybody are the subjects that stand for accounts of every namespace, or for whoever asks.
var everybody = []subject{
	{"Group", "", "system:authenticated"}, {"Group", "", "system:unauthenticated"}, {"Group", "", "system:serviceaccounts"},
	{"User", "", "system:anonymous"},
}

// subjectOf is a subject of a binding. A user or a group that is a service account, or those of a
// namespace, is a ServiceAccount, the group without a name.
func subjectOf(m map[string]any) subject {
	text := func(field string) string { value, _ := m[field].(string); return value }
	s := subject{text("kind"), text("namespace"), text("name")}
	if s.kind == "ServiceAccount" {
		return s
	}
	s.namespace = ""
	if rest, isAccount := strings.CutPrefix(s.name, "system:serviceaccount:"); isAccount && s.kind == "User" {
		namespace, name, _ := strings.Cut(rest, ":")
		return subject{"ServiceAccount", namespace, name}
	}
	if namespace, isGroup := strings.CutPrefix(s.name, "system:serviceaccounts:"); isGroup && s.kind == "Group" {
		return subject{"ServiceAccount", namespace, ""}
	}
	return s
}

// wallOfSubjects keeps the tenant's bindings to accounts of its namespaces, and to those that its
// document names.
func (r ruling) wallOfSubjects(namespace string, content map[string]any, refuse refusing) {
	subjects, _ := content["subjects"].([]any)
	for i, item := range subjects {
		m, _ := item.(map[string]any)
		s := subjectOf(m)
		path := []any{"subjects", i}
		switch {
		case slices.Contains(everybody, s) && !r.Allows("wideRights"):
			refuse(append(path, "name"), "tenant %s may not give rights to everybody: its allow has no wideRights", r.Name)
		case s.kind == "ServiceAccount" && !r.Namespace(s.namespace) && !r.MayName(namespace, s.namespace, s.name):
			const text = "tenant %s may not give rights to service accounts of namespace %s: its accounts are %s"
			refuse(path, text, r.Name, s.namespace, orNone(r.Accounts))
		}
	}
}
