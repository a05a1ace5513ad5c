// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/store"
)

// # Pods that nothing replaces
//
// The one delete without an entry of the inventory: a pod, of a StatefulSet that has one.
// Which pod that is says sync/apply/health/stuck.go; whether it may be deleted is decided
// here, once for each look.

// HoldsPodsBack says that objects of a kind may come to wait for a pod that they do not
// replace, see [health.StuckPod].
func HoldsPodsBack(id object.ID) bool { return id.Group == "apps" && id.Kind == "StatefulSet" }

// help says how an object of the work gets healthy that does not by itself: text continues
// the reason of its health. Where it is a StatefulSet that waits for a pod it never replaces,
// the pod is deleted if it may be; then freed says so, for the history. Both are empty where
// nothing more is known.
func (c *call) help(
	ctx context.Context, work *Work, o *object.Object, live *unstructured.Unstructured, known store.Entry,
) (text, freed string) {
	if HoldsPodsBack(o.ID) {
		if text, freed = c.free(ctx, work, live, known); text != "" {
			return text, freed
		}
	}
	wanted, err := decodeObject(o.JSON)
	if err != nil {
		return "", ""
	}
	remedy := health.RemedyFor(live, wanted)
	if len(remedy.Command) == 0 {
		return remedy.Why, ""
	}
	return remedy.Why + " " + work.kubectl(o.ID.Namespace, remedy.Command...), ""
}

// kubectl is a command for whoever looks after the cluster.
func (w *Work) kubectl(namespace string, words ...string) string {
	command := append([]string{"kubectl"}, words...)
	command = append(command, "-n", namespace)
	if w.Cluster != "" {
		command = append(command, "--context", w.Cluster)
	}
	return strings.Join(command, " ")
}

// free deletes the pod that a StatefulSet waits for and never replaces, and says so; or
// names the pod, and says why it is not deleted and how somebody deletes it.
//
// Nothing is deleted of a StatefulSet that is not known to be the one which was applied, as
// it was applied.
func (c *call) free(ctx context.Context, work *Work, live *unstructured.Unstructured, known store.Entry) (text, freed string) {
	var set appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &set); err != nil {
		return "", ""
	}
	if !Judged(known) || known.UID != string(set.UID) || !health.ReplacesInOrder(&set) {
		return "", ""
	}
	pods, err := c.listPods(ctx, live)
	if err != nil { // only the reason is poorer
		return "", ""
	}
	pod := health.StuckPod(&set, pods)
	if pod == nil {
		return "", ""
	}
	named := fmt.Sprintf("pod %s keeps revision %s", pod.Name, health.Revision(pod))
	if work.Spares != "" {
		return named + "; swell does not delete it: " + work.Spares, ""
	}
	why := work.leavesPod(pod)
	if why == "" {
		switch why, err = c.deletePod(ctx, pod); {
		case err != nil:
			why = messageOf(err)
		case why == "":
			return named + ": it never was ready, and was deleted",
				fmt.Sprintf("pod %s of revision %s, which never was ready and which it waited for to make pods of revision %s",
					pod.Name, health.Revision(pod), set.Status.UpdateRevision)
		}
	}
	return fmt.Sprintf("%s; swell does not delete it: %s: %s", named, why, work.kubectl(pod.Namespace, "delete", "pod", pod.Name)), ""
}

// leavesPod says why a stuck pod is not deleted, whatever the rights are; empty: it is. A
// bundle that was put back proves that the revision before it was bad. Otherwise the pod
// must have a trouble of its own: one that is only slow may get ready.
func (w *Work) leavesPod(pod *corev1.Pod) string {
	switch {
	case !w.Frees:
		return "drift is only reported here"
	case !health.NeverReady(pod):
		return "it may have been ready before"
	case !w.PutBack && !health.IsBroken(pod):
		return "it may still get ready"
	}
	return ""
}

// deletePod deletes a pod, if it is as it was seen, and if there is a right to; why says why
// not. To ask before saves a refusal with each look.
func (c *call) deletePod(ctx context.Context, pod *corev1.Pod) (why string, err error) {
	path := "/api/v1/namespaces/" + url.PathEscape(pod.Namespace) + "/pods/" + url.PathEscape(pod.Name)
	if !c.mayDo(ctx, right{c.user, attributesOf(path, "delete")}) {
		return "it has no right to, see swell rbac --stuck-pods", nil
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion},
	})
	if err != nil {
		return "", err
	}
	_, err = c.do(ctx, &request{
		op: "delete", object: "Pod/" + pod.Namespace + "/" + pod.Name, method: http.MethodDelete, path: path,
		accept: acceptMeta, contentType: jsonType, body: body, once: true,
	})
	var e *Error
	switch {
	case isGone(err, pod.Name):
		return "it went at the same moment", nil
	case errors.As(err, &e) && (e.isOtherUID() || e.isOtherVersion()):
		return "it changed at the same moment", nil
	}
	return "", err
}
