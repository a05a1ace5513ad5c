// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// fluxPath is the folder of the tree that a Kustomization builds; ok is false, and it is
// said why, when there is none.
func (c *fluxCluster) fluxPath(o *object) (folder string, ok bool) {
	folder, ok = cleanPath(o.text("spec", "path"))
	if !ok {
		c.leave(o, "spec.path", fmt.Sprintf("%s leads out of the repository", quoted(o.text("spec", "path"))), "mend the path")
		return "", false
	}
	kind, name := o.text("spec", "sourceRef", "kind"), o.text("spec", "sourceRef", "name")
	namespace := cmp.Or(o.text("spec", "sourceRef", "namespace"), o.namespace())
	switch kind {
	case "GitRepository":
		source := c.object(fluxSource, kind, namespace, name)
		if !c.isOwn(source, folder) && (source != nil || name != "flux-system") {
			at := "which is not in the repository"
			if source != nil {
				at = source.text("spec", "url")
			}
			c.leave(o, "spec.sourceRef", fmt.Sprintf("its folder is in another repository or branch, that of GitRepository %s (%s)", quoted(name), at), "bring the folder into this repository, or make that one a monorepo too")
			return "", false
		}
	case "ExternalArtifact":
		if folder, ok = c.artifactPath(namespace, name, folder); !ok {
			c.leave(o, "spec.sourceRef", fmt.Sprintf("no ArtifactGenerator of this repository copies its folder into the ExternalArtifact %s", quoted(name)), "name the folder of this repository in a Kustomization")
			return "", false
		}
	default:
		c.leave(o, "spec.sourceRef", fmt.Sprintf("its files are in the %s %s, not in this repository", kind, quoted(name)), "bring the folder into this repository")
		return "", false
	}
	if !c.isFolder(folder) {
		c.leave(o, "spec.path", fmt.Sprintf("%s: no such folder", quoted(folder)), "mend the path, or remove the Kustomization")
		return "", false
	}
	return folder, true
}

// object is one for Flux: of what was built so far, or else as it stands in a file.
func (c *fluxCluster) object(group, kind, namespace, name string) *object {
	id := idOf(group, kind, namespace, name)
	if o := c.objects[id]; o != nil {
		return o
	}
	for _, o := range append(c.raw[id], c.raw[idOf(group, kind, "", name)]...) {
		if !slices.ContainsFunc(c.others, func(folder string) bool { return config.Within(o.doc.File, folder) }) {
			return o
		}
	}
	return nil
}

// isOwn says whether a GitRepository is this one: by its URL where that is known, else it
// is the one that has no document (bootstrap made it), or that of the name of flux-system.
func (c *fluxCluster) isOwn(source *object, folder string) bool {
	if source == nil {
		return c.isFolder(folder)
	}
	if c.options.URL != "" && sameURL(c.options.URL, source.text("spec", "url")) {
		return true
	}
	own := c.object(fluxSource, "GitRepository", source.namespace(), "flux-system")
	if own != nil {
		return sameURL(own.text("spec", "url"), source.text("spec", "url")) && own.text("spec", "ref", "branch") == source.text("spec", "ref", "branch")
	}
	return c.options.URL == "" && c.isFolder(folder)
}

// artifactPath is the folder of the tree that an ArtifactGenerator copies to a folder of an
// artifact.
func (c *fluxCluster) artifactPath(namespace, name, folder string) (string, bool) {
	for _, id := range sortedKeys(c.objects) {
		o := c.objects[id]
		if o.group() != fluxArtifacts || o.kind() != "ArtifactGenerator" || o.namespace() != namespace {
			continue
		}
		if at, ok := c.copied(o, name, folder); ok {
			return at, true
		}
	}
	return "", false
}

func (c *fluxCluster) copied(generator *object, name, folder string) (string, bool) {
	own := map[string]bool{}
	for _, source := range listAt(generator.value, "spec", "sources") {
		git := c.object(fluxSource, "GitRepository", cmp.Or(textAt(source, "namespace"), generator.namespace()), textAt(source, "name"))
		own["@"+textAt(source, "alias")] = textAt(source, "kind") == "GitRepository" && c.isOwn(git, ".")
	}
	for _, artifact := range listAt(generator.value, "spec", "artifacts") {
		if textAt(artifact, "name") != name {
			continue
		}
		for _, item := range listAt(artifact, "copy") {
			alias, from, _ := strings.Cut(textAt(item, "from"), "/")
			from, deep := strings.CutSuffix("/"+from, "/**")
			from, okFrom := cleanPath(from)
			to, okTo := cleanPath(strings.TrimPrefix(textAt(item, "to"), "@artifact"))
			if !deep || !okFrom || !okTo || !own[alias] || !config.Within(folder, to) {
				continue
			}
			if at := path.Join(from, strings.TrimPrefix(folder, strings.TrimPrefix(to, "."))); c.isFolder(at) {
				return at, true
			}
		}
	}
	return "", false
}

// sameURL says whether two URLs are of one Git repository, whatever the protocol.
func sameURL(a, b string) bool { return plainURL(a) == plainURL(b) }

func plainURL(text string) string {
	text = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), "/"), ".git")
	if parsed, err := url.Parse(text); err == nil && parsed.Host != "" {
		return parsed.Hostname() + "/" + strings.Trim(parsed.Path, "/")
	}
	if _, rest, found := strings.Cut(text, "@"); found { // git@host:path
		text = rest
	}
	host, rest, found := strings.Cut(text, ":")
	if found && !slices.Contains([]string{"", "."}, host) {
		return host + "/" + strings.Trim(rest, "/")
	}
	return text
}
