// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
	"github.com/swell-sh/swell/render/object"
)

// # Secrets
//
// The values of a Secret are encrypted by sops, or it is refused. Rendering has no
// keys: an encrypted value is a text like others, so one commit gives the same bytes
// to everybody. The daemon puts the values in their places when it applies the
// object, see sync/sops: for that the object says which file they are from.

// sealedValue is an encrypted value in a Secret of a file.
type sealedValue struct{ field, key, text string }

// sealedFile are the encrypted values of the Secrets in a file, a set for each.
type sealedFile []map[sealedValue]bool

// sealedIn reads the encrypted Secrets of a file.
func (u *unitRenderer) sealedIn(file string) sealedFile {
	if known, ok := u.sealed[file]; ok {
		return known
	}
	var found sealedFile
	if content, err := u.repository.Tree.ReadFile(file); err == nil && bytes.Contains(content, []byte(sops.Prefix)) {
		docs, _ := document.ReadDialect(file, content, document.Kubectl)
		for _, doc := range docs {
			if sops.MetadataIn(doc.Node) != nil {
				found = append(found, sealedValues(doc.Node))
			}
		}
	}
	if u.sealed == nil {
		u.sealed = map[string]sealedFile{}
	}
	u.sealed[file] = found
	return found
}

func sealedValues(secret *yaml.Node) map[sealedValue]bool {
	values := map[sealedValue]bool{}
	for _, field := range secretFields {
		n := document.Lookup(secret, field.(string))
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if key, value := n.Content[i], n.Content[i+1]; value.Kind == yaml.ScalarNode {
				values[sealedValue{field.(string), key.Value, value.Value}] = true
			}
		}
	}
	return values
}

// sealedFrom is the file that all of the encrypted values of a Secret stand in, at the
// same places of one document; empty where there is none.
func (u *unitRenderer) sealedFrom(doc *document.Document, values []sealedValue) string {
	files := []string{doc.File}
	if u.unit.Kustomization != "" {
		files = u.build(u.unit).result.Reads
	}
	for _, file := range files {
		for _, secret := range u.sealedIn(file) {
			if !slices.ContainsFunc(values, func(v sealedValue) bool { return !secret[v] }) {
				return config.RealPath(u.repository.Tree, file)
			}
		}
	}
	return ""
}

// readSealed takes what sops wrote about a document out of the object, and checks it.
func (u *unitRenderer) readSealed(doc *document.Document, object map[string]any) {
	n := sops.MetadataIn(doc.Node)
	if n == nil {
		return
	}
	delete(object, sops.Field)
	if _, err := sops.ReadMetadata(n); err != nil {
		u.problems = append(u.problems, doc.Problem(n, document.CodeSecret, "%s: %v", sops.Field, err))
	}
	if sops.IsEncrypted(doc.Kind) || sops.IsEncrypted(doc.APIVersion) {
		u.problems = append(u.problems, doc.Problem(doc.Node, document.CodeSecret, "all of it is encrypted, so nobody knows what it is: encrypt values alone, with sops encrypt --encrypted-regex '^(data|stringData)$'"))
	}
}

// secretValues checks the values of the object if it is a Secret. seen is the object as
// the schema is to see it, with values of their types in place of encrypted ones; file
// is where those are from.
func (d *draft) secretValues(id object.ID) (seen map[string]any, file string) {
	if seen = d.object; !id.IsSecret() {
		return seen, ""
	}
	var sealed []sealedValue
	var plain []any // the first value that is not encrypted
	for _, name := range secretFields {
		field := name.(string)
		values, ok := d.object[field].(map[string]any)
		if !ok {
			continue
		}
		shown := maps.Clone(values)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			switch text, isText := values[key].(string); {
			case isText && sops.IsEncrypted(text):
				sealed = append(sealed, sealedValue{field, key, text})
				shown[key] = standIn(sops.TypeOf(text))
			case plain == nil && (!isText || text != ""):
				plain = []any{field, key}
			}
		}
		seen = withField(seen, field, shown)
	}
	if plain != nil {
		d.plainSecret(plain)
	}
	if len(sealed) == 0 {
		return seen, ""
	}
	if file = d.fileOf(d.doc, sealed); file == "" {
		d.problem(document.CodeSecret, nil, "has encrypted values that stand in no encrypted Secret of the unit under the same keys: patches, generators, lists and kinds cannot bring them")
	}
	return seen, file
}

// withField is the object with another value of a field.
func withField(object map[string]any, field string, value any) map[string]any {
	object = maps.Clone(object)
	object[field] = value
	return object
}

// standIn is a value of the type that an encrypted one has.
func standIn(kind string) any {
	switch kind {
	case "int":
		return int64(1)
	case "float":
		return 1.5
	case "bool":
		return true
	}
	return ""
}

// plainSecret is what becomes of a Secret that everybody can read.
func (d *draft) plainSecret(path []any) {
	const text = "a value that everybody with the repository can read: encrypt it with sops (sops encrypt --in-place --encrypted-regex '^(data|stringData)$' FILE), or have an operator bring the Secret into the cluster from where it is kept"
	switch d.checks.PlainSecrets {
	case config.Pass:
	case config.Warn:
		d.warn(document.CodeSecret, path, text)
	default:
		d.problem(document.CodeSecret, path, text+"; checks.plainSecrets of the root's swell.yaml can let it pass")
	}
}

// sealedElsewhere finds encrypted values where nobody decrypts them.
func (d *draft) sealedElsewhere(path []any, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			d.sealedElsewhere(append(slices.Clip(path), key), v[key])
		}
	case []any:
		for i, item := range v {
			d.sealedElsewhere(append(slices.Clip(path), i), item)
		}
	case string:
		if sops.IsEncrypted(v) {
			d.problem(document.CodeSecret, path, "is encrypted by sops, and swell decrypts nothing but data and stringData of Secrets")
		}
	}
}
