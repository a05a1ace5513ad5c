// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // the one auth-provider that is left, where it is allowed

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/smallfile"
)

// kubeconfig is where the way to a cluster is written, and what may stand there.
// No text of its errors holds anything of a credential: errors of the libraries
// that read one are not passed on, for some quote what they do not understand.
type kubeconfig struct {
	access config.ClusterAccess
	dir    string // of the clusters that name neither file nor variable; may be empty
	allow  []config.Allowance
	given  *rest.Config // in place of all that; mostly nil

	account string // folder with the credentials of the pod; empty: where Kubernetes mounts them
}

// reading is a kubeconfig as it was read.
type reading struct {
	place string // what it was read from, for errors
	base  string // folder that file names in it are relative to; empty: there is none
	text  []byte
	// sum is the address of all that was read: two readings with the same sum
	// lead to the same connection.
	sum [sha256.Size]byte
}

// read reads the kubeconfig as it is now, and all files that it refers to.
func (k *kubeconfig) read() (*rest.Config, [sha256.Size]byte, error) {
	if k.given != nil {
		return rest.CopyConfig(k.given), [sha256.Size]byte{}, nil
	}
	if k.access.InCluster {
		return k.inCluster()
	}
	r, err := k.open()
	if err != nil {
		return nil, r.sum, err
	}
	cfg, err := k.parse(&r)
	if err != nil {
		return nil, r.sum, fmt.Errorf("%s: %w", r.place, err)
	}
	return cfg, r.sum, nil
}

// open reads the text.
func (k *kubeconfig) open() (reading, error) {
	if name := k.access.KubeconfigEnv; name != "" {
		r := reading{place: "environment variable " + name, text: []byte(os.Getenv(name))}
		if len(r.text) == 0 {
			return r, fmt.Errorf("%s: empty or not set, want the content of a kubeconfig", r.place)
		}
		r.sum = sha256.Sum256(r.text)
		return r, nil
	}
	file, err := k.file()
	if err != nil {
		return reading{}, err
	}
	r := reading{place: "kubeconfig " + file, base: filepath.Dir(file)}
	if r.text, err = smallfile.ReadUpTo(file, smallfile.MostKubeconfig); err != nil {
		return r, fmt.Errorf("%s: %w", r.place, document.Cause(err))
	}
	r.sum = sha256.Sum256(r.text)
	return r, nil
}

// kubeconfigEndings are those of the files in a folder of kubeconfigs.
var kubeconfigEndings = []string{".yaml", ".kubeconfig"}

// file finds the file. Two that claim to be the cluster's are one too many.
func (k *kubeconfig) file() (string, error) {
	if k.access.Kubeconfig != "" {
		return k.access.Kubeconfig, nil
	}
	if k.dir == "" {
		return "", errors.New("the daemon's configuration does not say how to reach it")
	}
	var found []string
	for _, ending := range kubeconfigEndings {
		file := filepath.Join(k.dir, k.access.Name+ending)
		switch _, err := os.Stat(file); {
		case err == nil:
			found = append(found, file)
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("kubeconfig %s: %w", file, document.Cause(err))
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no %s.yaml or %s.kubeconfig in %s", k.access.Name, k.access.Name, k.dir)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("want one kubeconfig, got %s", strings.Join(found, " and "))
}

// clustersIn lists the clusters that a folder has kubeconfigs of, sorted.
func clustersIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of kubeconfigs %s: %w", dir, document.Cause(err))
	}
	var names []string
	for _, e := range entries {
		for _, ending := range kubeconfigEndings {
			if name, ok := strings.CutSuffix(e.Name(), ending); ok && document.IsLabel(name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

var errNoKubeconfig = errors.New("not a kubeconfig that can be read")

// line finds where a library could not read on; the rest of what it says may
// quote the text.
var line = regexp.MustCompile(`\bline (\d+)\b`)

// parse makes the client's configuration of a context.
func (k *kubeconfig) parse(r *reading) (*rest.Config, error) {
	all, err := loadKubeconfig(r.text)
	if err != nil {
		return nil, err
	}
	name := k.access.Context
	if name == "" && all.Contexts[k.access.Name] != nil {
		name = k.access.Name
	}
	if name = cmp.Or(name, all.CurrentContext); name == "" {
		return nil, fmt.Errorf("no context %q and no current one", k.access.Name)
	}
	of, err := pick(all, name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(k.refuse(of), of.checkAddresses()); err != nil {
		return nil, fmt.Errorf("context %q: %s", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if err := of.readFiles(r); err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	return of.config()
}

// one is what one context of a kubeconfig says.
type one struct {
	name    string
	context *clientcmdapi.Context
	cluster *clientcmdapi.Cluster
	user    *clientcmdapi.AuthInfo
}

// asked is something that a kubeconfig holds and the daemon's configuration has to allow.
type asked struct {
	what string
	by   config.Allowance
}

// asks is all of that.
func (of one) asks() (all []asked) {
	for _, found := range []struct {
		there bool
		asked
	}{
		{of.user.Exec != nil, asked{"exec", config.AllowExec}},
		{of.user.AuthProvider != nil, asked{"auth-provider", config.AllowAuthProvider}},
		{of.user.TokenFile != "", asked{"tokenFile", config.AllowFiles}},
		{of.user.ClientCertificate != "", asked{"client-certificate", config.AllowFiles}},
		{of.user.ClientKey != "", asked{"client-key", config.AllowFiles}},
		{of.cluster.CertificateAuthority != "", asked{"certificate-authority", config.AllowFiles}},
		{of.cluster.InsecureSkipTLSVerify, asked{"insecure-skip-tls-verify", config.AllowInsecureTLS}},
	} {
		if found.there {
			all = append(all, found.asked)
		}
	}
	return all
}

// refuse names everything that the daemon's configuration would have to allow.
func (k *kubeconfig) refuse(of one) error {
	var errs []error
	for _, found := range of.asks() {
		if !slices.Contains(k.allow, found.by) {
			errs = append(errs, fmt.Errorf("%s is refused, unless the daemon's configuration has spec.allow: [%s]", found.what, found.by))
		}
	}
	return errors.Join(errs...)
}

// checkAddresses reads the addresses before the libraries do, whose errors
// quote them with what secret may be in them.
func (of one) checkAddresses() error {
	server, err := url.Parse(of.cluster.Server)
	switch {
	case of.cluster.Server == "":
		return errors.New("server: missing")
	case err != nil, server.Host == "", server.Scheme != "https" && server.Scheme != "http":
		return errors.New("server: want an address like https://api.example.com:6443")
	case server.User != nil:
		return errors.New("server: want an address without a user and a password in it")
	}
	if of.cluster.ProxyURL == "" {
		return nil
	}
	proxy, err := url.Parse(of.cluster.ProxyURL)
	if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
		return errors.New("proxy-url: want an address like http://proxy.example.com:3128, with http, https or socks5")
	}
	return nil
}

// readFiles puts the content of files in place of their names, so that what
// they held when the connection was made is known.
func (of one) readFiles(r *reading) error {
	files := []struct {
		field string
		name  *string
		take  func([]byte)
	}{
		{"tokenFile", &of.user.TokenFile, func(b []byte) { of.user.Token = string(bytes.TrimSpace(b)) }},
		{"client-certificate", &of.user.ClientCertificate, func(b []byte) { of.user.ClientCertificateData = b }},
		{"client-key", &of.user.ClientKey, func(b []byte) { of.user.ClientKeyData = b }},
		{"certificate-authority", &of.cluster.CertificateAuthority, func(b []byte) { of.cluster.CertificateAuthorityData = b }},
	}
	sum := sha256.New()
	sum.Write(r.sum[:])
	for _, f := range files {
		if *f.name == "" {
			continue
		}
		file := *f.name
		if !filepath.IsAbs(file) {
			if r.base == "" {
				return fmt.Errorf("%s: want a whole path, got %q: a variable is in no folder", f.field, file)
			}
			file = filepath.Join(r.base, file)
		}
		content, err := smallfile.Read(file)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", f.field, file, document.Cause(err))
		}
		if len(bytes.TrimSpace(content)) == 0 {
			return fmt.Errorf("%s: %s: empty", f.field, file)
		}
		own := sha256.Sum256(content)
		sum.Write(own[:])
		f.take(content)
		*f.name = ""
	}
	sum.Sum(r.sum[:0])
	return nil
}

// config is what client-go makes of it.
func (of one) config() (*rest.Config, error) {
	if of.user.Exec != nil {
		of.user.Exec.InteractiveMode = clientcmdapi.NeverExecInteractiveMode // nobody sits there
	}
	whole := clientcmdapi.NewConfig()
	whole.Contexts[of.name], whole.Clusters[of.context.Cluster] = of.context, of.cluster
	whole.AuthInfos[of.context.AuthInfo] = of.user
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*whole, of.name, nil, nil).ClientConfig()
	if err != nil { // about what is missing or there twice; the addresses were looked at
		return nil, fmt.Errorf("context %q: %w", of.name, err)
	}
	return cfg, nil
}
