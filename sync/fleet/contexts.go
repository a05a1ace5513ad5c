// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/smallfile"
)

// Context is a context of a kubeconfig.
type Context struct {
	Name string
	// Needs is what the daemon's configuration has to allow for it, sorted.
	Needs []config.Allowance
}

// Contexts are those of a kubeconfig, sorted by name. Nothing of a credential is in them,
// nor in an error.
func Contexts(file string) ([]Context, error) {
	text, err := smallfile.ReadUpTo(file, smallfile.MostKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", file, document.Cause(err))
	}
	all, err := loadKubeconfig(text)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", file, err)
	}
	var contexts []Context
	for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
		c := Context{Name: name}
		if of, err := pick(all, name); err == nil {
			for _, asked := range of.asks() {
				c.Needs = append(c.Needs, asked.by)
			}
		}
		slices.Sort(c.Needs)
		c.Needs = slices.Compact(c.Needs)
		contexts = append(contexts, c)
	}
	return contexts, nil
}

// loadKubeconfig reads the text. Its error quotes nothing of it.
func loadKubeconfig(text []byte) (*clientcmdapi.Config, error) {
	all, err := clientcmd.Load(text)
	if err == nil {
		return all, nil
	}
	if m := line.FindString(err.Error()); m != "" {
		return nil, fmt.Errorf("not a kubeconfig that can be read, at %s", m)
	}
	return nil, errNoKubeconfig
}

// pick is what a context says.
func pick(all *clientcmdapi.Config, name string) (one, error) {
	context := all.Contexts[name]
	if context == nil {
		return one{}, fmt.Errorf("no context %q", name)
	}
	of := one{name: name, context: context, cluster: all.Clusters[context.Cluster], user: all.AuthInfos[context.AuthInfo]}
	switch {
	case of.cluster == nil:
		return one{}, fmt.Errorf("context %q: no cluster %q", name, context.Cluster)
	case of.user == nil && context.AuthInfo != "":
		return one{}, fmt.Errorf("context %q: no user %q", name, context.AuthInfo)
	case of.user == nil:
		of.user = clientcmdapi.NewAuthInfo()
	}
	return of, nil
}
