// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/smallfile"
)

// mountedAccount is where Kubernetes mounts the credentials of a pod's service account.
const mountedAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// inCluster is the way to the cluster that this process runs in as a pod. The token is
// read anew by the connection, because the kubelet replaces it every hour; it is no part
// of the sum, so that the connection stays.
//
// It is not [rest.InClusterConfig], which goes on without the authority that it cannot
// read, and has its folder fixed.
func (k *kubeconfig) inCluster() (*rest.Config, [sha256.Size]byte, error) {
	none := [sha256.Size]byte{}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, none, errors.New("inCluster: this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; outside of a cluster, name a kubeconfig")
	}
	dir := cmp.Or(k.account, mountedAccount)
	token, authority := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	content := map[string][]byte{}
	for _, file := range []string{token, authority} {
		text, err := smallfile.Read(file)
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			err = errors.New("empty")
		}
		if err != nil {
			return nil, none, fmt.Errorf("inCluster: %s: %w: the pod needs a service account, and automountServiceAccountToken", file, document.Cause(err))
		}
		content[file] = text
	}
	cfg := &rest.Config{Host: "https://" + net.JoinHostPort(host, port), BearerTokenFile: token}
	cfg.CAData = content[authority]
	return cfg, sha256.Sum256(fmt.Appendf(nil, "%s %s", cfg.Host, cfg.CAData)), nil
}
