// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// create makes an object in a cluster, and removes it after the test.
func (w *world) create(cluster string, resource schema.GroupVersionResource, format string, args ...any) {
	w.Helper()
	var u unstructured.Unstructured
	w.must(yaml.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object))
	client := w.client(cluster).Resource(resource).Namespace(u.GetNamespace())
	_, err := client.Create(w.Context(), &u, metav1.CreateOptions{})
	w.must(err)
	w.Cleanup(func() {
		_ = client.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})
	})
}

var (
	serviceAccounts     = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	roleBindings        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
)

// account makes a service account in the namespace default with a cluster role,
// "" for none, and returns its user name and a token.
func (w *world) account(cluster, name, role string) (user, token string) {
	w.Helper()
	w.create(cluster, serviceAccounts, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: default}\n", name)
	if role != "" {
		w.bindCluster(cluster, name, role, name)
	}
	cfg, err := w.clusters.Config(cluster)
	w.must(err)
	client, err := kubernetes.NewForConfig(cfg)
	w.must(err)
	answer, err := client.CoreV1().ServiceAccounts("default").CreateToken(w.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.must(err)
	return "system:serviceaccount:default:" + name, answer.Status.Token
}

// bindCluster gives a service account in the namespace default a cluster role.
func (w *world) bindCluster(cluster, name, role, account string) {
	w.Helper()
	w.create(cluster, clusterRoleBindings, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{kind: ServiceAccount, name: %s, namespace: default}]
`, name, role, account)
}

// remove deletes an object in a cluster as somebody else.
func (w *world) remove(cluster string, resource schema.GroupVersionResource, namespace, name string) {
	w.Helper()
	w.must(w.client(cluster).Resource(resource).Namespace(namespace).Delete(w.Context(), name, metav1.DeleteOptions{}))
}

// everyTenMinutes makes the daemon, when it is started the next time, look for
// drift.
func (w *world) everyTenMinutes() {
	w.Helper()
	schedule, err := cron.ParseStandard("*/10 * * * *")
	w.must(err)
	w.drift = config.Drift{Schedule: schedule, Location: time.UTC}
}

// kubeconfig is the text of one for a cluster and a token, with a context named
// like the cluster.
func (w *world) kubeconfig(cluster, token string) string {
	w.Helper()
	all, err := clientcmd.LoadFromFile(w.clusters.Kubeconfig)
	w.must(err)
	w.must(clientcmdapi.MinifyConfig(func() *clientcmdapi.Config { all.CurrentContext = cluster; return all }()))
	for _, user := range all.AuthInfos {
		user.Token = token
	}
	text, err := clientcmd.Write(*all)
	w.must(err)
	return string(text)
}

// place puts a file where it is, whole, at once.
func (w *world) place(file, text string) {
	w.Helper()
	w.must(os.WriteFile(file+".new", []byte(text), 0o600))
	w.must(os.Rename(file+".new", file))
}

// rejected waits until a cluster does not take a token any more; an API server
// remembers for some seconds that it was good.
func (w *world) rejected(cluster, token string) {
	w.Helper()
	cfg, err := w.clusters.Config(cluster)
	w.must(err)
	cfg.BearerToken = token
	client, err := kubernetes.NewForConfig(cfg)
	w.must(err)
	deadline := time.Now().Add(w.longest())
	for {
		_, err := client.Discovery().ServerVersion()
		if apierrors.IsUnauthorized(err) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("the token is good for %s after its account: %v", w.longest(), err)
		}
		pause(w.TB)
	}
}

// users are those who made the requests, but for the watches: one may begin on a
// connection that is about to be replaced.
func users(events []audited) string {
	seen := map[string]bool{}
	for _, e := range events {
		if e.over() && e.Verb != "watch" && e.Verb != "list" {
			seen[e.User.Username] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), " ")
}

// TestCredentialsRotate: a kubeconfig that comes, changes, breaks and gets well
// again while the daemon runs is taken up, and no credential is ever shown.
func TestCredentialsRotate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, oneToken := w.account("dev-2", w.tenant+"-one", "cluster-admin")
	two, twoToken := w.account("dev-2", w.tenant+"-two", "cluster-admin")
	delete(w.access, "dev-2")
	w.kubeconfigs = t.TempDir()
	file := filepath.Join(w.kubeconfigs, "dev-2.yaml")
	w.auditOf("dev-2") // what was before
	w.stop()
	w.start()
	w.until("the canary", func() bool {
		space, app := w.unit("space"), w.unit("app")
		return space != nil && app != nil && space.Targets["dev-1/a"].Health == rollout.HealthGood && app.Targets["dev-1/a"].Health == rollout.HealthGood
	})
	w.now = w.now.Add(10 * time.Minute)
	w.until("the report of the missing file", func() bool { return w.unit("space").Targets["dev-2/c"].Trouble == rollout.TroubleUnreachable })
	if reason := w.unit("space").Targets["dev-2/c"].Reason; !strings.Contains(reason, "there is no dev-2.yaml or dev-2.kubeconfig in ") {
		t.Errorf("reason %q", reason)
	}
	w.place(file, w.kubeconfig("dev-2", oneToken))
	w.release()
	w.want("who wrote", users(w.auditOf("dev-2")), one)

	tag := 1
	change := func() { // makes a commit and brings it to dev-2
		t.Helper()
		tag++
		w.app("app", fmt.Sprint(tag), "one")
		w.commit()
		w.soaked("app", tag)
		w.want("images", w.tags("app"), fmt.Sprintf("%d %d %d", tag, tag, tag))
	}
	w.place(file, w.kubeconfig("dev-2", twoToken))
	change()
	w.want("who wrote after the change, while the old token is still good", users(w.auditOf("dev-2")), two)

	w.logged.Reset()
	w.place(file, "users: ["+oneToken)
	change()
	w.want("who wrote with a broken file", users(w.auditOf("dev-2")), two)
	said := "cluster dev-2: the connection made before stays in use: kubeconfig " + file + ": not a kubeconfig that can be read, at line "
	if n := strings.Count(w.logged.String(), said); n != 1 {
		t.Errorf("said %d times, want once: %s", n, said)
	}
	w.place(file, strings.Replace(w.kubeconfig("dev-2", oneToken), "server: https://", "server: https://me:"+twoToken+"@", 1))
	change()
	w.want("who wrote with a refused file", users(w.auditOf("dev-2")), two)
	w.place(file, w.kubeconfig("dev-2", "no-token-at-all"))
	change()
	w.want("who wrote with a token that is not taken", users(w.auditOf("dev-2")), two)

	w.place(file, w.kubeconfig("dev-2", oneToken))
	w.must(w.client("dev-2").Resource(serviceAccounts).Namespace("default").Delete(t.Context(), w.tenant+"-two", metav1.DeleteOptions{}))
	change()
	if got := users(w.auditOf("dev-2")); !strings.Contains(got, one) {
		t.Errorf("who wrote with a good file: got %q, want %q among them", got, one)
	}
	for _, token := range []string{oneToken, twoToken} {
		if strings.Contains(w.logged.String(), token) || strings.Contains(w.describe(), token) {
			t.Error("a token was shown")
		}
	}
}

// TestTokenExpiresInMidWave: a cluster that takes the token no more is held, the
// others go on, and a new token in the file is enough.
func TestTokenExpiresInMidWave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, token := w.account("dev-2", w.tenant+"-swell", "cluster-admin")
	file := filepath.Join(w.dir, "kubeconfig")
	w.place(file, w.kubeconfig("dev-2", token))
	w.access["dev-2"] = config.ClusterAccess{Name: "dev-2", Kubeconfig: file, Context: "dev-2"}
	w.stop()
	w.start()
	w.release()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "2" })
	w.must(w.client("dev-2").Resource(serviceAccounts).Namespace("default").Delete(t.Context(), w.tenant+"-swell", metav1.DeleteOptions{}))
	w.rejected("dev-2", token)
	w.until("the canary's health", func() bool { return w.unit("app").Targets["dev-1/a"].Health == rollout.HealthGood })
	w.now = w.now.Add(10 * time.Minute)
	w.until("the report", func() bool { return w.unit("app").Targets["dev-2/c"].Trouble == rollout.TroubleUnavailable })
	if reason := w.unit("app").Targets["dev-2/c"].Reason; !strings.Contains(reason, "Unauthorized") {
		t.Errorf("reason %q", reason)
	}
	w.until("the other target of the wave", func() bool { return w.unit("app").Targets["dev-1/b"].Health == rollout.HealthGood })
	w.want("images", w.tags("app"), "2 2 1")
	_, token = w.account("dev-2", w.tenant+"-again", "cluster-admin")
	w.place(file, w.kubeconfig("dev-2", token))
	w.until("the end, with another token", w.is("app", 2, rollout.Done))
	w.want("images", w.tags("app"), "2 2 2")
}
