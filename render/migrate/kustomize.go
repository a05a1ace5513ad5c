// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// readKustomize takes each kustomization that no other one names for a unit.
func (r *reader) readKustomize() error {
	if len(r.kustomizations) == 0 {
		return errors.New("no kustomization.yaml is in the repository")
	}
	var folders []string
	for _, folder := range sortedKeys(r.kustomizations) {
		if len(r.named[folder]) == 0 && !r.components[folder] && !r.inChart(folder) {
			folders = append(folders, folder)
		}
	}
	if len(folders) == 0 {
		first := r.kustomizations[sortedKeys(r.kustomizations)[0]]
		return fmt.Errorf("%s: each kustomization is named by another one: a circle, or there are Components only", first)
	}
	places := r.environments(folders)
	for _, folder := range folders {
		of := stand(r.kustomizations[folder], "kustomization", folder)
		built := r.content(folder, false)
		if len(built.problems) > 0 {
			r.leave(of, "", fmt.Sprintf("cannot be built: %s", built.problems[0]), "mend it; swell builds from the files of the commit alone")
			continue
		}
		one := release{of: of, name: nameOf(folder), folder: folder, objects: built.objects}
		if lacksNamespace(built.objects) {
			one.settings.Namespace = "default"
			r.note(of, "", "objects without a namespace go to default, as with kubectl", "namespace in the unit's Defaults, if it is another one")
		}
		r.releaseAt(one, places[folder])
	}
	return nil
}

// releaseAt adds a release on some clusters, or on all where there is no name among them.
func (r *reader) releaseAt(one release, clusters []string) {
	for _, cluster := range clusters {
		on := one
		on.cluster = cluster
		r.releases = append(r.releases, &on)
	}
}

// stand is an object for a file that is no document of a tool.
func stand(file, kind, name string) *object {
	return &object{doc: &document.Document{File: file, Node: &yaml.Node{Kind: yaml.MappingNode}}, value: map[string]any{"kind": kind, "metadata": map[string]any{"name": name}}}
}

// nameOf is a name for a folder: one that says an environment takes the folder above.
func nameOf(folder string) string {
	words := slices.DeleteFunc(strings.Split(folder, "/"), func(word string) bool {
		return word == "overlays" || word == "envs" || word == "environments" || word == "."
	})
	return strings.Join(words[max(len(words)-2, 0):], "-")
}

// environments are the clusters for folders, and all for one that is for no environment.
// Where the user names no clusters, each environment is taken for one.
func (r *reader) environments(folders []string) map[string][]string {
	given := len(r.clusters) > 0
	for _, folder := range folders {
		if name := asLabel(environmentOf(folder)); name != "" && !given {
			r.addCluster(name)
		}
	}
	places := map[string][]string{}
	for _, folder := range folders {
		name := environmentOf(folder)
		if places[folder] = r.clustersFor(folder, name); len(places[folder]) == 0 {
			r.leave(stand(folder, "folder", folder), "", fmt.Sprintf("no cluster has a name like %s", quoted(name)), fmt.Sprintf("--cluster %s, or one with that word in its name", asLabel(name)))
		}
	}
	return places
}

// clustersFor are the clusters with the name of a folder on the path, or of the environment;
// else those of the same stage, as production is that of prod-eu; else, where there is no
// environment, all.
func (r *reader) clustersFor(folder, environment string) (clusters []string) {
	words := strings.Split(folder, "/")
	for _, cluster := range r.clusters {
		if slices.Contains(words, cluster) || cluster == asLabel(environment) {
			clusters = append(clusters, cluster)
		}
	}
	if len(clusters) > 0 {
		return clusters
	}
	stage := stageOf(environment)
	if environment == "" || stage == stageOf("") {
		return r.clusters
	}
	for _, cluster := range r.clusters {
		if stageOf(cluster) == stage {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// environmentFolders hold a folder for each environment.
var environmentFolders = []string{"clusters", "env", "envs", "environments"}

// environmentOf is the name of an environment on a path: that of a folder in one for
// environments, or with a word for a stage in it; empty when there is none.
func environmentOf(folder string) string {
	words := strings.Split(folder, "/")
	for i, word := range slices.Backward(words) {
		if i > 0 && slices.Contains(environmentFolders, words[i-1]) || isStage(word) {
			return word
		}
	}
	for _, word := range slices.Backward(words) {
		if stageOf(word) != stageOf("") {
			return word
		}
	}
	return ""
}

// lacksNamespace says whether some objects have no namespace although their kind has one.
func lacksNamespace(objects []*object) bool {
	return slices.ContainsFunc(objects, func(o *object) bool {
		return o.namespace() == "" && !clusterKinds[o.kind()] && o.group() != "apiextensions.k8s.io"
	})
}

// clusterKinds are kinds of Kubernetes that live in no namespace.
var clusterKinds = map[string]bool{"Namespace": true, "Node": true, "PersistentVolume": true, "ClusterRole": true, "ClusterRoleBinding": true, "StorageClass": true,
	"PriorityClass": true, "IngressClass": true, "CustomResourceDefinition": true, "APIService": true, "MutatingWebhookConfiguration": true,
	"ValidatingWebhookConfiguration": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true, "CSIDriver": true, "RuntimeClass": true}
