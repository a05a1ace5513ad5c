// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
)

// podOf is the way of a pod whose credentials are in a folder.
func podOf(account string) kubeconfig {
	return kubeconfig{access: config.ClusterAccess{Name: "own", InCluster: true}, account: account}
}

// shared has a real API server.
var shared = &devtest.Shared{Names: []string{"dev-3"}}

func TestMain(m *testing.M) { os.Exit(devtest.Main(m, shared)) }

func TestInClusterIsRefused(t *testing.T) {
	whole, noToken, empty := t.TempDir(), t.TempDir(), t.TempDir()
	for file, text := range map[string]string{whole + "/token": secret, whole + "/ca.crt": "certificate", noToken + "/ca.crt": "certificate", empty + "/token": " \n", empty + "/ca.crt": "c"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, host, port, account, want string }{
		{"no pod", "", "", whole, "inCluster: this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; outside of a cluster, name a kubeconfig"},
		{"no port", "10.0.0.1", "", whole, "this is no pod"},
		{"no account", "10.0.0.1", "443", noToken, "token: no such file or directory: the pod needs a service account, and automountServiceAccountToken"},
		{"an empty token", "10.0.0.1", "443", empty, "token: empty: the pod needs a service account"},
		{"a pod", "fd00::1", "443", whole, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", c.host)
			t.Setenv("KUBERNETES_SERVICE_PORT", c.port)
			k := podOf(c.account)
			cfg, _, err := k.read()
			switch {
			case c.want == "" && (err != nil || cfg.Host != "https://[fd00::1]:443"):
				t.Errorf("got %v, %v", cfg, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), secret):
				t.Errorf("the token is shown: %v", err)
			}
		})
	}
}

// TestInCluster: a real API server takes a request with the files that a pod has. The token
// is no part of the sum: one that the kubelet replaces makes no other connection.
func TestInCluster(t *testing.T) {
	admin, err := shared.Clusters(t).Config("dev-3")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	name := metav1.ObjectMeta{Name: "pod", Namespace: "default"}
	_, errAccount := client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	_, errRole := client.RbacV1().Roles("kube-system").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	_, errBinding := client.RbacV1().RoleBindings("kube-system").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pod"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "pod"}}}, metav1.CreateOptions{})
	token, errToken := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "pod", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err := errors.Join(errAccount, errRole, errBinding, errToken); err != nil {
		t.Fatal(err)
	}
	account := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(account, "token"), []byte(token.Status.Token), 0o600), os.WriteFile(filepath.Join(account, "ca.crt"), admin.CAData, 0o600)); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(admin.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	c := newCluster("own", "shop", podOf(account), apply.Options{})
	l, uid, err := c.connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	system, err := client.CoreV1().Namespaces().Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil || string(system.UID) != uid {
		t.Errorf("it is the cluster %q, want %q (%v)", uid, system.UID, err)
	}
	if err := os.WriteFile(filepath.Join(account, "token"), []byte("another one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, sum, err := c.kubeconfig.read(); err != nil || sum != l.sum {
		t.Errorf("another token makes another connection (%v)", err)
	}
	if _, _, err := newCluster("own", "shop", podOf(account), apply.Options{}).connect(ctx); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("with a token that is none: %v", err)
	}
}
