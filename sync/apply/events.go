// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/apply/health"
)

// maxEvents is how many events of an object are looked through. The server
// keeps them for an hour.
const maxEvents = 50

// maxClaims is how many claims of a pod are read to find the one it waits for.
const maxClaims = 5

// eventsOf are the events about an object, those of the latest beginning first:
// where two are repeated in turns, they keep their order.
func (c *call) eventsOf(ctx context.Context, namespace string, uid types.UID) ([]corev1.Event, error) {
	query := url.Values{"fieldSelector": {"involvedObject.uid=" + string(uid)}, "limit": {strconv.Itoa(maxEvents)}}
	var events corev1.EventList
	err := c.getJSON(ctx, "EventList", &request{
		op: "list", object: "events of " + string(uid), path: "/api/v1/namespaces/" + url.PathEscape(namespace) + "/events", query: query.Encode(),
	}, &events)
	slices.SortFunc(events.Items, func(a, b corev1.Event) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Message, b.Message))
	})
	return events.Items, err
}

// warning is what the latest warning with one of the reasons says; "" when
// there is none.
func (c *call) warning(ctx context.Context, namespace string, uid types.UID, wanted func(reason string) bool) (string, error) {
	events, err := c.eventsOf(ctx, namespace, uid)
	for _, e := range events {
		if e.Type == corev1.EventTypeWarning && wanted(e.Reason) {
			return health.EventText(e), err
		}
	}
	return "", err
}

// claimsTrouble says which of the claims of a pod is not bound, and why. A claim
// that is made for the pod alone goes by the name of its volume.
func (c *call) claimsTrouble(ctx context.Context, pod *corev1.Pod) (string, error) {
	asked := 0
	for _, volume := range pod.Spec.Volumes {
		name, shown := "", ""
		switch {
		case volume.PersistentVolumeClaim != nil:
			name = volume.PersistentVolumeClaim.ClaimName
			shown = "claim " + name
		case volume.Ephemeral != nil:
			name = pod.Name + "-" + volume.Name
			shown = "claim of volume " + volume.Name
		default:
			continue
		}
		if asked++; asked > maxClaims {
			break
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/persistentvolumeclaims/%s", url.PathEscape(pod.Namespace), url.PathEscape(name))
		var claim corev1.PersistentVolumeClaim
		err := c.getJSON(ctx, "PersistentVolumeClaim", &request{op: "get", object: shown, method: http.MethodGet, path: path}, &claim)
		switch {
		case isGone(err, name):
			return shown + ": not found", nil
		case err != nil:
			return "", err
		case claim.Status.Phase == corev1.ClaimBound:
			continue
		}
		events, err := c.eventsOf(ctx, claim.Namespace, claim.UID)
		return shown + ": " + health.Unbound(events, claim.Status.Phase), err
	}
	return "", nil
}
