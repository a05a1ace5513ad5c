// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Of some fields an object may have one alone: value or valueFrom of an environment
// variable, the handler of a probe, the source of a volume, the settings of a strategy. An
// apply adds the one that Git has, and never takes away one that somebody else set, or that
// the server set by default. The server refuses both together. What we send decides, so the
// other one is taken away first, together with setting ours.

// oneOf are the texts by which API servers refuse two members of a one-of (kubernetes,
// pkg/apis/core/validation and pkg/apis/apps/validation). TestOneOfs collects them from a real
// server.
var oneOf = regexp.MustCompile(`may not be specified when |may not specify more than 1 |` + oneField + `|only allowed for `)

// oneField is the text that names the place itself, and not one of the members.
const oneField = "may not have more than one field specified"

// index is the number of an item in a field's path.
var index = regexp.MustCompile(`\[\d+\]`)

// oneOfs are the places at which a refusal says that two members are there, like
// spec.template.spec.containers[].env[]: whatever the number of the item.
func oneOfs(err error) (places []string) {
	var e *Error
	if !errors.As(err, &e) || e.Code != http.StatusUnprocessableEntity || e.status == nil || e.status.Details == nil {
		return nil
	}
	for _, cause := range e.status.Details.Causes {
		dot := strings.LastIndexByte(cause.Field, '.')
		if dot < 0 || !oneOf.MatchString(cause.Message) {
			continue
		}
		parent := cause.Field[:dot] // it names a member
		if strings.Contains(cause.Message, oneField) {
			parent = cause.Field
		}
		if parent = index.ReplaceAllString(parent, "[]"); strings.Contains(parent, ".") && !slices.Contains(places, parent) {
			places = append(places, parent)
		}
	}
	return places
}

// choice has the changes of an object for the members that Git has.
type choice struct {
	removed    []fieldpath.Path // members of others
	operations []any            // of a JSON patch
}

// chooseAll finds the members of the live object that have to go for those of the object
// that is sent, at the places of a refusal.
func chooseAll(places []string, ours, live map[string]any) choice {
	var c choice
	for _, parent := range places {
		c.choose(strings.Split(parent, "."), ours, live, nil, "")
	}
	return c
}

// choose follows the rest of a place down both objects. Items of lists are the same where
// they have the same name.
func (c *choice) choose(rest []string, ours, live any, path fieldpath.Path, pointer string) {
	sent, isMap := ours.(map[string]any)
	existing, exists := live.(map[string]any)
	if !isMap || !exists {
		return
	}
	if len(rest) == 0 {
		c.take(sent, existing, path, pointer)
		return
	}
	name, isList := strings.CutSuffix(rest[0], "[]")
	path, pointer = append(slices.Clip(path), element(name)), pointer+"/"+config.PointerSegment(name)
	if !isList {
		c.choose(rest[1:], sent[name], existing[name], path, pointer)
		return
	}
	items, _ := sent[name].([]any)
	others, _ := existing[name].([]any)
	for _, item := range items {
		named, _ := item.(map[string]any)
		for i, other := range others {
			if o, ok := other.(map[string]any); ok && named["name"] != nil && o["name"] == named["name"] {
				// Whoever changes the list meanwhile has the patch fail.
				number := pointer + "/" + strconv.Itoa(i)
				c.operations = append(c.operations, map[string]any{"op": "test", "path": number + "/name", "value": named["name"]})
				key := fieldpath.PathElement{Key: &value.FieldList{{Name: "name", Value: value.NewValueInterface(named["name"])}}}
				c.choose(rest[1:], item, other, append(slices.Clip(path), key), number)
			}
		}
	}
}

// take removes the members of a one-of that the object has and we do not send, and sets
// ours. Where nothing of ours is new, it is about something else.
func (c *choice) take(sent, existing map[string]any, path fieldpath.Path, pointer string) {
	var set []any
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		before, had := existing[name]
		if !had || !isNested(before) && fmt.Sprint(before) != fmt.Sprint(sent[name]) {
			set = append(set, map[string]any{"op": "add", "path": pointer + "/" + config.PointerSegment(name), "value": sent[name]})
		}
	}
	if len(set) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		if _, sends := sent[name]; !sends && (isNested(existing[name]) || name == "value") {
			c.removed = append(c.removed, append(slices.Clip(path), element(name)))
			c.operations = append(c.operations, map[string]any{"op": "remove", "path": pointer + "/" + config.PointerSegment(name)})
		}
	}
	c.operations = append(c.operations, set...)
}

func isNested(v any) bool {
	_, nested := v.(map[string]any)
	return nested
}

// isChosen says whether members of one-ofs are taken away from an object. Rules of custom
// resources may use the same words, and mean something else.
func isChosen(id object.ID) bool { return !id.IsSecret() && isServedByKubernetes(id) }

// choose takes away the members of one-ofs for which the object was refused; not ok when the
// refusal is about something else.
func (s *sending) choose(ctx context.Context, uid types.UID, refusal error) (ok bool, err error) {
	places := oneOfs(refusal)
	if len(places) == 0 || !isChosen(s.o.ID) {
		return false, nil
	}
	live, _, err := s.readObject(ctx, "apply", s.o.ID, s.o.Version)
	if err != nil || live == nil || live.GetUID() != uid {
		return false, err
	}
	c := chooseAll(places, s.less(s.left), live.Object)
	if len(c.removed) == 0 {
		return false, nil
	}
	c.operations = append(c.operations, map[string]any{"op": "test", "path": "/metadata/uid", "value": uid})
	meta, err := s.patchObject(ctx, s.o, c.operations)
	if isInapplicable(err) {
		return true, nil // somebody was faster: it is sent again and looked at again
	}
	if err != nil {
		return false, err
	}
	if _, err = s.amend(ctx, s.o, uid, meta, forgetUpdates); err != nil {
		return false, afterWrite(err)
	}
	for _, path := range c.removed {
		if by := culpritOf(otherManagers(metaOf(live)), path, entryTime(ownEntry(metaOf(live)))); by != nil {
			change := store.Change{Field: fieldText(path)}
			setAuthor(&change, by)
			s.chosen = append(s.chosen, change)
		}
	}
	return true, nil
}

// forgetUpdates takes our name off fields that we set otherwise than by an apply.
func forgetUpdates(meta *metav1.PartialObjectMetadata) ([]ssa.JSONPatch, error) {
	entries := slices.DeleteFunc(slices.Clone(meta.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
	})
	if len(entries) == len(meta.ManagedFields) {
		return nil, nil
	}
	return []ssa.JSONPatch{ssa.NewPatchReplace("/metadata/managedFields", entries)}, nil
}
