// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/line"
)

// definition is what has to be known of a custom resource definition.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (d *definition) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

// Polling of what the server does on its own after it has answered: at first
// often, because it is mostly a matter of milliseconds.
const (
	firstPoll = 10 * time.Millisecond
	maxPoll   = 500 * time.Millisecond
)

// poll asks until ready says so or fails, or until ctx ends; then it returns
// the last error of ready, or the one of ctx when there was none.
func poll(ctx context.Context, ready func() (bool, error)) error {
	for pause := firstPoll; ; pause = min(2*pause, maxPoll) {
		done, err := ready()
		if done {
			return err
		}
		if !wait(ctx, pause) {
			return errors.Join(err, ctx.Err())
		}
	}
}

// establish waits until a definition that was just written is served in all
// its versions. What is in the way becomes the result's error, and the next
// apply sends the definition, and waits, again.
func (a *applying) establish(ctx context.Context, o *object.Object, r *Result) definition {
	var d definition
	if err := json.Unmarshal(o.JSON, &d); err != nil && r.Err == nil {
		r.Err = &Error{Op: "apply", Object: o.ID.String(), class: ErrRefused, Message: err.Error()}
	}
	if r.Err != nil {
		return d
	}
	timed, cancel := context.WithTimeout(ctx, a.options.EstablishTimeout)
	defer cancel()
	lacking := "not established"
	err := poll(timed, func() (bool, error) { return a.isServed(timed, o, &d, &lacking) })
	if err == nil {
		return d
	}
	r.Action, r.Entry.Digest = "", ""
	switch {
	case ctx.Err() != nil:
		r.Err = transportError(ctx, &request{op: "apply", object: o.ID.String()}, 0, err)
	case timed.Err() != nil: // the server is slow, or it will never serve the kind
		r.Err = &Error{
			Op: "apply", Object: o.ID.String(), class: ErrMissing, cause: ErrNoKind,
			Message: fmt.Sprintf("%s within %s", lacking, a.options.EstablishTimeout),
		}
		if e := (*Error)(nil); errors.As(err, &e) && !errors.Is(err, context.DeadlineExceeded) {
			r.Err = on("apply", o.ID, e)
		}
	default:
		r.Err = on("apply", o.ID, err)
	}
	return d
}

// isServed says whether a definition is established and discovery shows its
// kind. lacking becomes what is still missing. An error with done ends the wait.
func (a *applying) isServed(ctx context.Context, o *object.Object, d *definition, lacking *string) (done bool, err error) {
	path := "/apis/" + o.APIVersion() + "/customresourcedefinitions/" + o.ID.Name
	var live definition
	if err := a.getJSON(ctx, o.ID.Kind, &request{op: "get", object: o.ID.String(), path: path}, &live); err != nil {
		return errors.Is(err, ErrUnreachable), err
	}
	established := false
	for _, condition := range live.Status.Conditions {
		switch {
		case condition.Type == "Established":
			established = condition.Status == metav1.ConditionTrue
		case condition.Type == "NamesAccepted" && condition.Status == metav1.ConditionFalse:
			return true, &Error{
				Op: "apply", Object: o.ID.String(), class: ErrRefused,
				Message: "its names are not accepted: " + line.One(condition.Message),
			}
		}
	}
	if !established {
		return false, nil
	}
	*lacking = "established, but its kind not served"
	for _, v := range d.Spec.Versions {
		if !v.Served {
			continue
		}
		kinds, err := a.discover(ctx, schema.GroupVersion{Group: d.Spec.Group, Version: v.Name})
		if err != nil {
			return errors.Is(err, ErrUnreachable), err
		}
		if _, ok := kinds[d.Spec.Names.Kind]; !ok {
			return false, nil
		}
	}
	return true, nil
}

// sendSettling repeats the sending of an object whose definition was changed by
// this very call for as long as the refusal may come from the form before.
func (s *sending) sendSettling(ctx context.Context, refusal error) (meta *metav1.PartialObjectMetadata, info answerInfo, err error) {
	timed, cancel := context.WithTimeout(ctx, s.options.SettleTime)
	defer cancel()
	err = refusal
	for pause := firstPoll; isFromOldForm(err) && wait(timed, pause); pause = min(2*pause, maxPoll) {
		meta, info, err = s.send(ctx)
	}
	return meta, info, err
}

func isFromOldForm(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.silent() {
		return false
	}
	switch e.Code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return true
	}
	return false
}
