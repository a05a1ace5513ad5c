// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ourMark is the name of the extension that tells a kubeconfig of ours from a
// user's own. kubectl keeps it when it edits the file.
const ourMark = "devcluster.swell.sh"

// access is one way into one API server.
type access struct {
	Cluster string // also the name of the context
	Server  string // https://127.0.0.1:PORT
	CA      []byte // PEM
	User    string
	Token   string
}

// writeKubeconfig writes a kubeconfig with one context per access, the first
// one current. Readers see the old file or the whole new one.
func writeKubeconfig(path string, all ...access) error {
	conf := clientcmdapi.NewConfig()
	conf.Extensions[ourMark] = &runtime.Unknown{Raw: []byte(`"written by devcluster up"`)}
	conf.CurrentContext = all[0].Cluster
	for _, a := range all {
		user := a.User + "@" + a.Cluster
		conf.Clusters[a.Cluster] = &clientcmdapi.Cluster{Server: a.Server, CertificateAuthorityData: a.CA}
		conf.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: a.Token}
		conf.Contexts[a.Cluster] = &clientcmdapi.Context{Cluster: a.Cluster, AuthInfo: user}
	}
	b, err := clientcmd.Write(*conf)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if err := replaceFile(path, b); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}

// removeKubeconfig removes a kubeconfig that devcluster wrote, or an empty one.
// No file is fine; any other file is left alone, and an error.
func removeKubeconfig(path string) error {
	conf, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && conf.Extensions[ourMark] == nil && !clientcmdapi.IsConfigEmpty(conf) {
		err = errors.New("not written by devcluster, will not replace it")
	}
	if err != nil {
		return fmt.Errorf("--kubeconfig: %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	return nil
}

// replaceFile puts b at path, mode 0600, in one step.
func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".devcluster-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
