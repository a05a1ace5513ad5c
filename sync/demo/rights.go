// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/rbac"
)

// account is that of the daemon in each cluster.
var account = rbac.Account{Namespace: "swell", Name: "swell"}

// roles are what swell rbac prints for the working copy: the daemon of the story has these rights and
// no others.
func (r *Repository) roles() ([]rbac.Role, error) {
	var compiler render.Compiler
	s := compiler.Snapshot("", config.Files(os.DirFS(r.Work)))
	if len(s.Problems) > 0 {
		return nil, s.Problems
	}
	return rbac.Needed(s, s.Repository.Clusters, rbac.Options{Account: account, LeaseNamespace: config.DefaultLeaseNamespace})
}

// admit makes the daemon's account in a cluster, gives it the roles, and returns how the daemon gets in.
func (l *Live) admit(ctx context.Context, roles []rbac.Role, to config.ClusterAccess, dir string) (config.ClusterAccess, error) {
	named := func(kind, name, namespace string) any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}}
	}
	objects := []any{named("Namespace", account.Namespace, ""), named("ServiceAccount", account.Name, account.Namespace)}
	for i := range roles {
		objects = append(objects, roles[i].Object(), roles[i].Binding())
	}
	for _, o := range objects {
		if err := l.apply(ctx, o); err != nil {
			return to, err
		}
	}
	token, err := l.token(ctx)
	if err != nil {
		return to, err
	}
	kubeconfig, err := clientcmd.LoadFromFile(to.Kubeconfig)
	if err != nil {
		return to, err
	}
	kubeconfig.CurrentContext = to.Context
	if err := clientcmdapi.MinifyConfig(kubeconfig); err != nil {
		return to, err
	}
	for name := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	to.Kubeconfig = filepath.Join(dir, to.Name+"-swell.yaml")
	return to, clientcmd.WriteToFile(*kubeconfig, to.Kubeconfig)
}

// apply makes an object, or the one that is there like it.
func (l *Live) apply(ctx context.Context, o any) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var u unstructured.Unstructured
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return err
	}
	resource := u.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(u.GetKind()) + "s")
	options := metav1.ApplyOptions{FieldManager: "swell-demo", Force: true}
	if _, err := l.Client.Resource(resource).Namespace(u.GetNamespace()).Apply(ctx, u.GetName(), &u, options); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// token is one of the daemon's account.
func (l *Live) token(ctx context.Context) (string, error) {
	request := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"name": account.Name}}}
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	answer, err := l.Client.Resource(accounts).Namespace(account.Namespace).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("a token of service account %s: %w", account, err)
	}
	token, _, err := unstructured.NestedString(answer.Object, "status", "token")
	return token, err
}

// claimRights asks each cluster who the daemon is there and whether it may do more than the monorepo
// takes, which has no Secrets.
func (s *story) claimRights(ctx context.Context, access map[string]config.ClusterAccess) error {
	users, mayMore := map[string]bool{}, false
	for _, to := range access {
		daemon, err := Connect(devcluster.Running(to.Kubeconfig), to.Context)
		if err != nil {
			return err
		}
		who, err := ask(ctx, daemon.Client, "authentication.k8s.io/v1", "SelfSubjectReview", nil)
		if err != nil {
			return err
		}
		name, _, _ := unstructured.NestedString(who, "status", "userInfo", "username")
		users[name] = true
		may, err := ask(ctx, daemon.Client, "authorization.k8s.io/v1", "SelfSubjectAccessReview",
			map[string]any{"resourceAttributes": map[string]any{"verb": "create", "resource": "secrets"}})
		if err != nil {
			return err
		}
		allowed, _, _ := unstructured.NestedBool(may, "status", "allowed")
		mayMore = mayMore || allowed
	}
	user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	isAccount := len(users) == 1 && users[user]
	return s.claim(isAccount && !mayMore, "the daemon is %s, with the rights that swell rbac prints and no others", user)
}

// ask sends a review, and returns the answer.
func ask(ctx context.Context, client dynamic.Interface, apiVersion, kind string, spec map[string]any) (map[string]any, error) {
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if spec != nil {
		review.Object["spec"] = spec
	}
	resource := review.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(kind) + "s")
	answer, err := client.Resource(resource).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return answer.Object, nil
}
