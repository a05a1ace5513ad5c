// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// ClusterAccess says how to reach a cluster: where its kubeconfig is, which is
// read anew whenever it changes.
type ClusterAccess struct {
	Name string
	// Kubeconfig is a file, KubeconfigEnv the name of an environment variable
	// that holds what would be in the file. Where both are empty, it is the file
	// NAME.yaml or NAME.kubeconfig in [Daemon.KubeconfigDir]. At most one is set.
	Kubeconfig, KubeconfigEnv string
	// InCluster is for the cluster that the daemon runs in as a pod: the credentials are
	// those of the pod's service account, and there is no kubeconfig.
	InCluster bool
	// Context in it. Empty, which it never is for Kubeconfig: the one named like
	// the cluster or, where there is none, the current one.
	Context string
	// Concurrency is the most requests under way at a time; zero is swell's own
	// bound.
	Concurrency int
}

// Allowance is something in a kubeconfig that is refused unless it is allowed. With
// it, the writer of the file could run programs, read files of this machine, or get
// between swell and a cluster.
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

// AllAllowances is for kubeconfigs that somebody names himself.
func AllAllowances() []Allowance { return slices.Clone(allowances) }

var allowances = []Allowance{AllowExec, AllowAuthProvider, AllowFiles, AllowInsecureTLS}

// maxConcurrency is the most that an API server lets in at a time by default
// (its --max-requests-inflight).
const maxConcurrency = 400

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *Daemon) addClusters(in *reading, dir string, clusters []ClusterAccess) {
	for i, c := range clusters {
		at := func(field string) docPath { return in.at("spec", "clusters", i, field) }
		_, twice := d.Clusters[c.Name]
		switch {
		case c.Name == "":
			at("name").problem(document.CodeReference, "missing")
		case twice:
			at("name").problem(document.CodeDuplicate, "%q is there twice", c.Name)
		}
		if c.Concurrency < 0 || c.Concurrency > maxConcurrency {
			at("concurrency").problem(document.CodeType, "want 1 to %d, got %d", maxConcurrency, c.Concurrency)
		}
		switch {
		case c.InCluster:
			in.checkInCluster(i, c)
		case c.Kubeconfig != "" && c.KubeconfigEnv != "":
			in.at("spec", "clusters", i).problem(document.CodeType, "want one of kubeconfig and kubeconfigEnv, got both")
		case c.KubeconfigEnv != "" && !variableName.MatchString(c.KubeconfigEnv):
			// What stands here may be the secret itself.
			at("kubeconfigEnv").problem(document.CodeType, "want the name of an environment variable, like SAS_1_KUBECONFIG")
		case c.Kubeconfig == "" && c.KubeconfigEnv == "" && d.KubeconfigDir == "" && !in.follows("spec", "clusters", i, "kubeconfigEnv") && !in.follows("spec", "clusters", i, "inCluster") && !in.follows("spec", "kubeconfigDir"):
			at("kubeconfig").problem(document.CodeReference, "missing, and so are kubeconfigEnv and spec.kubeconfigDir")
		}
		if c.Kubeconfig != "" {
			c.Kubeconfig, c.Context = inDir(dir, c.Kubeconfig), orText(c.Context, c.Name)
		}
		d.Clusters[c.Name] = c
	}
}

// checkInCluster looks that nothing else says how to reach the pod's own cluster.
func (in *reading) checkInCluster(i int, c ClusterAccess) {
	for _, other := range []struct{ field, value string }{{"kubeconfig", c.Kubeconfig}, {"kubeconfigEnv", c.KubeconfigEnv}, {"context", c.Context}} {
		if other.value != "" {
			in.at("spec", "clusters", i, other.field).problem(document.CodeType, "the cluster is reached with the pod's service account: remove this field, or inCluster")
		}
	}
}

func (d *Daemon) addAllowances(in *reading, names []string) {
	for i, name := range names {
		allowance := Allowance(name)
		if !slices.Contains(allowances, allowance) {
			known := make([]string, len(allowances))
			for i, a := range allowances {
				known[i] = string(a)
			}
			in.at("spec", "allow", i).problem(document.CodeType, "%q: nothing that could be allowed%s", name, document.DidYouMean(name, known))
		}
		d.Allow = append(d.Allow, allowance)
	}
}
