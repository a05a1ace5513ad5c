// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/simulator/loopback"
	"github.com/swell-sh/swell/sync/source/gittest"
)

// clusterCommands are commands of scripts that have simulated clusters.
var clusterCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"clusters": startClusters,
	"contexts": writeContexts,
	"down":     stopCluster,
	"up":       restartCluster,
	"await":    awaitOutput,
	"answers":  awaitAnswer,
	"live":     printObject,
	"edit":     editObject,
	"applied":  applyAs,
	"commit":   commitAll,
}

// scriptCluster is a simulated cluster that another process can reach.
type scriptCluster struct {
	*simulator.Cluster
	server *loopback.Server
}

// clustersKey is where a script's clusters are, by name.
type clustersKey struct{}

func scriptClusters(ts *testscript.TestScript) map[string]*scriptCluster {
	return ts.Value(clustersKey{}).(map[string]*scriptCluster)
}

// startClusters starts simulated clusters with these names, until the script ends, and
// writes their kubeconfigs to clusters/NAME.yaml in the current folder:
//
//	clusters NAME...
func startClusters(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: clusters NAME...")
	}
	ts.Check(os.MkdirAll(ts.MkAbs("clusters"), 0o755))
	for _, name := range args {
		c := &scriptCluster{Cluster: simulator.New()}
		scriptClusters(ts)[name] = c
		c.begin(ts, name)
	}
}

// writeContexts writes one kubeconfig with the clusters that are up, each a context of its
// name:
//
//	contexts FILE
func writeContexts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: contexts FILE")
	}
	all := clientcmdapi.NewConfig()
	for name, c := range scriptClusters(ts) {
		config := c.server.Kubeconfig(name)
		maps.Copy(all.Clusters, config.Clusters)
		maps.Copy(all.AuthInfos, config.AuthInfos)
		maps.Copy(all.Contexts, config.Contexts)
	}
	ts.Check(clientcmd.WriteToFile(*all, ts.MkAbs(args[0])))
}

// restartCluster starts a cluster again that is down, as it was but at another address,
// and writes its kubeconfig anew:
//
//	up NAME
func restartCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: up NAME")
	}
	clusterNamed(ts, args[0]).begin(ts, args[0])
}

func (c *scriptCluster) begin(ts *testscript.TestScript, name string) {
	c.server = loopback.Start(c.Cluster)
	ts.Defer(c.server.Close)
	ts.Check(clientcmd.WriteToFile(*c.server.Kubeconfig(name), filepath.Join(ts.MkAbs("clusters"), name+".yaml")))
}

// stopCluster makes a cluster unreachable:
//
//	down NAME
func stopCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: down NAME")
	}
	clusterNamed(ts, args[0]).server.Close()
}

// longestWait bounds what scripts wait for, on a machine that is shared.
const longestWait = 2 * time.Minute

// printObject prints an object of a cluster as YAML, without what an API server adds
// to its metadata. It waits for the object: the inventory has one before it is sent. With !,
// there is no such object:
//
//	[!] live CLUSTER KIND[/NAMESPACE]/NAME
func printObject(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: live CLUSTER KIND[/NAMESPACE]/NAME")
	}
	client, name := objectNamed(ts, args[0], args[1])
	o, err := client.Get(context.Background(), name, metav1.GetOptions{})
	for deadline := time.Now().Add(longestWait); !neg && apierrors.IsNotFound(err) && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		o, err = client.Get(context.Background(), name, metav1.GetOptions{})
	}
	if neg {
		if err == nil {
			ts.Fatalf("%s is there", args[1])
		}
		return
	}
	ts.Check(err)
	o.SetManagedFields(nil)
	text, err := yaml.Marshal(o)
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
}

// editObject changes an object in a cluster as somebody with kubectl edit does, by a
// JSON merge patch:
//
//	edit CLUSTER KIND[/NAMESPACE]/NAME PATCH
func editObject(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit CLUSTER KIND[/NAMESPACE]/NAME PATCH")
	}
	client, name := objectNamed(ts, args[0], args[1])
	patch, err := yaml.YAMLToJSON([]byte(args[2]))
	ts.Check(err)
	_, err = client.Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-edit"})
	ts.Check(err)
}

// applyAs applies the documents of a file to a cluster, as another tool under the name of
// its field manager:
//
//	applied CLUSTER MANAGER FILE
func applyAs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: applied CLUSTER MANAGER FILE")
	}
	for _, text := range strings.Split(ts.ReadFile(args[2]), "\n---\n") {
		var o unstructured.Unstructured
		ts.Check(yaml.Unmarshal([]byte(text), &o.Object))
		name := o.GetKind() + "/" + o.GetName()
		if ns := o.GetNamespace(); ns != "" {
			name = o.GetKind() + "/" + ns + "/" + o.GetName()
		}
		client, _ := objectNamed(ts, args[0], name)
		_, err := client.Apply(context.Background(), o.GetName(), &o, metav1.ApplyOptions{FieldManager: args[1], Force: true})
		ts.Check(err)
	}
}

func clusterNamed(ts *testscript.TestScript, name string) *scriptCluster {
	c := scriptClusters(ts)[name]
	if c == nil {
		ts.Fatalf("no cluster %q: start it with clusters", name)
	}
	return c
}

// objectNamed is where an object is, that is written as swell writes it.
func objectNamed(ts *testscript.TestScript, cluster, object string) (client dynamic.ResourceInterface, name string) {
	parts := strings.Split(object, "/")
	if len(parts) < 2 || len(parts) > 3 {
		ts.Fatalf("%q: want KIND/NAME or KIND/NAMESPACE/NAME", object)
	}
	cfg := clusterNamed(ts, cluster).Config()
	resource, err := resourceOf(discovery.NewDiscoveryClientForConfigOrDie(cfg), parts[0])
	ts.Check(err)
	all := dynamic.NewForConfigOrDie(cfg).Resource(resource)
	if len(parts) == 3 {
		return all.Namespace(parts[1]), parts[2]
	}
	return all, parts[1]
}

func resourceOf(client discovery.DiscoveryInterface, kind string) (schema.GroupVersionResource, error) {
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if r.Kind == kind {
				gv, err := schema.ParseGroupVersion(list.GroupVersion)
				return gv.WithResource(r.Name), err
			}
		}
	}
	return schema.GroupVersionResource{}, fmt.Errorf("%q: no such kind", kind)
}

// commitAll commits all that is in a monorepo, which becomes a Git repository with the
// first commit. The message is the rest of the line:
//
//	commit FOLDER MESSAGE...
func commitAll(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: commit FOLDER MESSAGE...")
	}
	folder := ts.MkAbs(args[0])
	if _, err := os.Stat(filepath.Join(folder, ".git")); err != nil {
		ts.Check(gittest.Init(folder))
	}
	if ts.Getenv("GIT_AUTHOR_DATE") != "" {
		ts.Fatalf("commit: it is of now; for another date use exec git")
	}
	_, err := gittest.CommitAs(ts.Getenv("GIT_AUTHOR_NAME"), ts.Getenv("GIT_AUTHOR_EMAIL"), folder, strings.Join(args[1:], " "))
	ts.Check(err)
}

// awaitAnswer waits until a daemon answers at a socket. A daemon locks its state before, so
// that "running" in a status comes too early for that:
//
//	answers SOCKET
func awaitAnswer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answers SOCKET")
	}
	for deadline := time.Now().Add(longestWait); ; time.Sleep(50 * time.Millisecond) {
		client, err := serve.Dial(context.Background(), ts.MkAbs(args[0]))
		if err == nil {
			ts.Check(client.Close())
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no daemon within %s: %v", longestWait, err)
		}
	}
}

// awaitOutput runs a command again and again until what it prints matches, whatever its
// exit code is:
//
//	await REGEXP COMMAND [ARGUMENT...]
func awaitOutput(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await REGEXP COMMAND [ARGUMENT...]")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(longestWait); ; time.Sleep(300 * time.Millisecond) {
		stdout, stderr, _ := runLine(ts, args[1], args[2:]...)
		if want.MatchString(stdout) {
			_, _ = io.WriteString(ts.Stdout(), stdout)
			_, _ = io.WriteString(ts.Stderr(), stderr)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no match for %s within %s in\n%s%s", args[0], longestWait, stdout, stderr)
		}
	}
}
