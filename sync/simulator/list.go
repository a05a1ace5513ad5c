// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// get is a GET of one object.
func (c *Cluster) get(q *request) (object, error) {
	if err := q.known("pretty", "resourceVersion"); err != nil {
		return nil, err
	}
	if err := c.readable(q); err != nil {
		return nil, err
	}
	if version := q.query.Get("resourceVersion"); version != "" && version != "0" {
		return nil, unmodelled("a GET of resourceVersion %s", version)
	}
	o := c.find(q.kind, key{q.namespace, q.name})
	if o == nil {
		return nil, q.missing()
	}
	return o, nil
}

// others are kinds that show the objects of another one.
var others = map[resource]resource{{"events.k8s.io", "events"}: {"", "events"}}

// readable refuses to show what was stored as another kind.
func (c *Cluster) readable(q *request) error {
	if s := c.stores[others[q.resource]]; s != nil && len(s.objects) > 0 {
		return unmodelled("%s in %s", q.plural, q.GroupVersion())
	}
	return nil
}

// selection picks objects.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

func (s selection) everything() bool { return s.labels.Empty() && s.fields.Empty() }

func (s selection) matches(o object) bool {
	return s.labels.Matches(labels.Set(o.GetLabels())) && (s.fields.Empty() || s.fields.Matches(fieldsOf(o)))
}

// fieldsOf are the fields that a selector may name.
func fieldsOf(o object) fields.Set {
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	switch o := o.(type) {
	case *corev1.Event:
		set["involvedObject.uid"], set["involvedObject.name"], set["involvedObject.kind"] = string(o.InvolvedObject.UID), o.InvolvedObject.Name, o.InvolvedObject.Kind
		set["involvedObject.namespace"], set["reason"], set["type"] = o.InvolvedObject.Namespace, o.Reason, o.Type
	case *corev1.Pod:
		set["spec.nodeName"], set["status.phase"] = o.Spec.NodeName, string(o.Status.Phase)
	}
	return set
}

func (q *request) selection() (s selection, err error) {
	if s.labels, err = labels.Parse(q.query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	if s.fields, err = fields.ParseSelector(q.query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	sample := q.empty()
	for _, r := range s.fields.Requirements() {
		if _, ok := fieldsOf(sample)[r.Field]; !ok {
			if q.typed {
				return s, unmodelled("the field selector %s of %s", r.Field, q.plural)
			}
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return s, nil
}

// page is what is left of a list.
type page struct {
	items   []object
	version string
	until   time.Time
}

// pages are what is left of lists, by their token.
type pages map[string]page

// pageLife is for how long a list may be gone on with: a real server forgets what it
// was after five to ten minutes.
const pageLife = 5 * time.Minute

const (
	tooOld = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter."
)

// list is a GET of many objects.
func (c *Cluster) list(q *request) (any, int, error) {
	if err := q.known("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "pretty", "propagationPolicy", "dryRun", "timeout"); err != nil {
		return nil, 0, err
	}
	if err := c.readable(q); err != nil {
		return nil, 0, err
	}
	picks, err := q.selection()
	if err != nil {
		return nil, 0, err
	}
	limit, err := strconv.Atoi("0" + q.query.Get("limit"))
	if err != nil {
		return nil, 0, unmodelled("the limit %q", q.query.Get("limit"))
	}
	p, err := c.page(q, picks)
	if err != nil {
		return nil, 0, err
	}
	result := &listed{kind: q.kind, items: p.items}
	result.ResourceVersion = p.version
	if limit > 0 && len(p.items) > limit {
		result.items, p.items = p.items[:limit], p.items[limit:]
		result.Continue = c.keepPage(q, p, result.items[limit-1])
		if picks.everything() {
			result.RemainingItemCount = new(int64(len(p.items)))
		}
	}
	for i, o := range result.items {
		result.items[i] = q.as(o)
	}
	return result, http.StatusOK, nil
}

// page is what the request lists, from where it says.
func (c *Cluster) page(q *request, picks selection) (page, error) {
	if token := q.query.Get("continue"); token != "" {
		p, ok := c.pages[token]
		if !ok || time.Now().After(p.until) {
			return page{}, apierrors.NewResourceExpired(tooOld)
		}
		return p, nil
	}
	if err := c.checkListVersion(q); err != nil {
		return page{}, err
	}
	p := page{version: strconv.FormatUint(c.version, 10), until: time.Now().Add(pageLife)}
	if s := c.stores[q.resource]; s != nil {
		for _, o := range s.sorted(q.namespace) {
			if picks.matches(o) {
				p.items = append(p.items, o)
			}
		}
	}
	return p, nil
}

// checkListVersion: only the newest version is there to be listed.
func (c *Cluster) checkListVersion(q *request) error {
	text, match := q.query.Get("resourceVersion"), q.query.Get("resourceVersionMatch")
	if text == "" || text == "0" {
		return nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return unmodelled("the resourceVersion %q", text)
	case match == string(metav1.ResourceVersionMatchExact) && version != c.version:
		return unmodelled("lists of the past")
	case version > c.version:
		return unmodelled("lists of the future")
	}
	return nil
}

// keepPage keeps the rest of a list. The token is of the form that a real server's
// has.
func (c *Cluster) keepPage(q *request, p page, last object) string {
	now := time.Now()
	for token, old := range c.pages {
		if now.After(old.until) {
			delete(c.pages, token)
		}
	}
	rv, _ := strconv.ParseUint(p.version, 10, 64)
	start := last.GetName() + "\x00"
	if last.GetNamespace() != "" {
		start = last.GetNamespace() + "/" + start
	}
	text, _ := json.Marshal(struct {
		V     string `json:"v"`
		RV    uint64 `json:"rv"`
		Start string `json:"start"`
		Of    string `json:"of"` // two lists may come to the same place
	}{"meta.k8s.io/v1", rv, start, fmt.Sprint(q.resource, q.namespace, q.query["labelSelector"], q.query["fieldSelector"])})
	token := base64.RawURLEncoding.EncodeToString(text)
	if c.pages == nil {
		c.pages = pages{}
	}
	c.pages[token] = p
	return token
}
