// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
)

// ClusterAccess says how to reach a cluster: where its kubeconfig is, which is
// read anew whenever it changes.
type ClusterAccess struct {
	Name string
	// Kubeconfig is a file, KubeconfigEnv the name of an environment variable
	// that holds what would be in the file. Where both are empty, it is the file
	// NAME.yaml or NAME.kubeconfig in [Daemon.KubeconfigDir]. At most one is set.
	Kubeconfig, KubeconfigEnv string
	// Context in it. Empty, which it never is for Kubeconfig: the one named like
	// the cluster or, where there is none, the current one.
	Context string
	// Concurrency is the most requests under way at a time; zero is swell's own
	// bound.
	Concurrency int
}

// Allowance is something in a kubeconfig that is refused where it is not
// allowed: whoever may write the file could run programs, read files of this
// machine, or get between swell and a cluster.
type Allowance string

const (
	// AllowExec lets a kubeconfig name a program that gets the credentials.
	AllowExec Allowance = "exec"
	// AllowAuthProvider lets it use a provider of credentials of client-go.
	AllowAuthProvider Allowance = "authProvider"
	// AllowFiles lets it refer to files: tokenFile, client-certificate,
	// client-key and certificate-authority.
	AllowFiles Allowance = "files"
	// AllowInsecureTLS lets it switch off the check of the server's certificate.
	AllowInsecureTLS Allowance = "insecureTLS"
)

var allowances = []Allowance{AllowExec, AllowAuthProvider, AllowFiles, AllowInsecureTLS}

// maxConcurrency is the most that an API server lets in at a time by default
// (its --max-requests-inflight).
const maxConcurrency = 400

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *Daemon) addClusters(doc *Document, dir string, clusters []ClusterAccess) Problems {
	var problems Problems
	for i, c := range clusters {
		_, twice := d.Clusters[c.Name]
		switch {
		case c.Name == "":
			problems = append(problems, doc.at("spec.clusters[%d].name: missing", CodeReference, "spec", "clusters", i)(i))
		case twice:
			problems = append(problems, doc.at("spec.clusters[%d].name: %q is there twice", CodeDuplicate, "spec", "clusters", i, "name")(i, c.Name))
		case c.Concurrency < 0 || c.Concurrency > maxConcurrency:
			problems = append(problems, doc.at("spec.clusters[%d].concurrency: want 1 to %d, got %d", CodeType, "spec", "clusters", i, "concurrency")(i, maxConcurrency, c.Concurrency))
		case c.Kubeconfig != "" && c.KubeconfigEnv != "":
			problems = append(problems, doc.at("spec.clusters[%d]: want one of kubeconfig and kubeconfigEnv, got both", CodeType, "spec", "clusters", i)(i))
		case c.KubeconfigEnv != "" && !variableName.MatchString(c.KubeconfigEnv):
			// What stands here may be the secret itself.
			problems = append(problems, doc.at("spec.clusters[%d].kubeconfigEnv: want the name of an environment variable, like SAS_1_KUBECONFIG", CodeType, "spec", "clusters", i, "kubeconfigEnv")(i))
		case c.Kubeconfig == "" && c.KubeconfigEnv == "" && d.KubeconfigDir == "":
			problems = append(problems, doc.at("spec.clusters[%d].kubeconfig: missing, and so are kubeconfigEnv and spec.kubeconfigDir", CodeReference, "spec", "clusters", i)(i))
		}
		if c.Kubeconfig != "" {
			c.Kubeconfig, c.Context = inDir(dir, c.Kubeconfig), orText(c.Context, c.Name)
		}
		d.Clusters[c.Name] = c
	}
	return problems
}

func (d *Daemon) addAllowances(doc *Document, names []string) Problems {
	var problems Problems
	for i, name := range names {
		allowance := Allowance(name)
		if !slices.Contains(allowances, allowance) {
			known := make([]string, len(allowances))
			for i, a := range allowances {
				known[i] = string(a)
			}
			problems = append(problems, doc.at("spec.allow[%d]: %q: nothing that could be allowed%s", CodeType, "spec", "allow", i)(i, name, DidYouMean(name, known)))
		}
		d.Allow = append(d.Allow, allowance)
	}
	return problems
}
