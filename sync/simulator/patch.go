// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// patch is a PATCH of any type; that of server-side apply may create.
func (c *Cluster) patch(q *request) (any, int, error) {
	media, _, _ := strings.Cut(q.http.Header.Get("Content-Type"), ";")
	kind := types.PatchType(media)
	var change func(live object, opt options) (object, error)
	switch {
	case kind == types.ApplyYAMLPatchType:
		change = q.apply
	case kind == types.JSONPatchType, kind == types.MergePatchType, kind == types.StrategicMergePatchType && q.typed:
		change = func(live object, opt options) (object, error) { return q.patched(live, kind, opt) }
	default:
		return nil, 0, q.unsupported(media)
	}
	opt, err := q.readOptions(kind)
	if err != nil {
		return nil, 0, err
	}
	create := kind == types.ApplyYAMLPatchType && q.subresource == ""
	o, code, err := c.update(q, create || q.rules.createOnUpdate && q.subresource == "", "", func(live object) (object, error) {
		existed := live.GetUID() != ""
		if !existed && !create {
			return nil, q.missing()
		}
		o, err := change(live, opt)
		if err != nil {
			return nil, err
		}
		if o.GetUID() != "" && !existed {
			return nil, apierrors.NewConflict(q.groupResource(), q.name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", o.GetUID()))
		}
		if err := q.inNamespace(o); err != nil {
			return nil, err
		}
		return o, q.checkName(o)
	})
	return o, code, err
}

func (q *request) unsupported(media string) error {
	accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if q.typed {
		accepted = append(accepted, string(types.StrategicMergePatchType))
	}
	accepted = append(accepted, string(types.ApplyYAMLPatchType))
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

// apply is server-side apply.
func (q *request) apply(live object, opt options) (object, error) {
	sent := &unstructured.Unstructured{Object: map[string]any{}}
	plain := bytes.HasPrefix(bytes.TrimSpace(q.body), []byte("{")) && utiljson.Unmarshal(q.body, &sent.Object) == nil
	if !plain {
		if err := yaml.Unmarshal(q.body, &sent.Object); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
		}
	}
	applied, err := q.fields().Apply(live, sent, opt.manager, opt.force != nil && *opt.force)
	if err != nil {
		return nil, inOrder(err)
	}
	if q.strict(opt) && !(plain && once(q.body)) {
		if err := yaml.UnmarshalStrict(q.body, &map[string]any{}); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
		}
	}
	return applied.(object), nil
}

// inOrder sorts the conflicts of an error: the library finds them in any order.
func inOrder(err error) error {
	if conflict, ok := err.(*apierrors.StatusError); ok && conflict.ErrStatus.Details != nil {
		slices.SortFunc(conflict.ErrStatus.Details.Causes, func(a, b metav1.StatusCause) int {
			return cmp.Or(strings.Compare(a.Message, b.Message), strings.Compare(a.Field, b.Field))
		})
	}
	return err
}

// once says whether no key of a JSON document is there twice.
func once(body []byte) bool {
	var into map[string]any
	twice, err := kjson.UnmarshalStrict(body, &into)
	return err == nil && len(twice) == 0
}

// patched is an object after a patch of another type.
func (q *request) patched(live object, kind types.PatchType, opt options) (object, error) {
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	after, twice, err := q.patchText(before, kind, opt.validation != metav1.FieldValidationIgnore)
	if err != nil {
		return nil, err
	}
	o, _, err := q.read(after)
	if q.strict(opt) {
		if strict, ok := runtime.AsStrictDecodingError(err); ok {
			twice, err = append(twice, strict.Errors()...), nil
		}
		if err == nil && len(twice) > 0 {
			err = runtime.NewStrictDecodingError(twice)
		}
	}
	if err != nil && (q.strict(opt) || !runtime.IsStrictDecodingError(err)) {
		if kind == types.StrategicMergePatchType {
			return nil, unmodelled("a strategic merge patch that does not fit: %v", err)
		}
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(after), err.Error())})
	}
	return q.fields().UpdateNoErrors(live, o, opt.manager).(object), nil
}

// patchText applies a patch to a JSON document. It also says what was there twice, if
// anybody wants to know.
func (q *request) patchText(before []byte, kind types.PatchType, strict bool) (after []byte, twice []error, err error) {
	switch kind {
	case types.JSONPatchType:
		var operations []struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			From  string `json:"from"`
			Value any    `json:"value"`
		}
		if twice, err = kjson.UnmarshalStrict(q.body, &operations); err != nil && strict {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		for i := range twice {
			twice[i] = fmt.Errorf("json patch %w", twice[i])
		}
		patch, err := jsonpatch.DecodePatch(q.body)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
		if after, err = patch.Apply(before); err != nil {
			return nil, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return after, twice, nil
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, q.body, q.empty())
		if err != nil {
			return nil, nil, unmodelled("a strategic merge patch that does not fit: %v", err)
		}
		return after, nil, nil
	}
	var into map[string]any
	if twice, err = kjson.UnmarshalStrict(q.body, &into); err != nil && strict {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	after, err = jsonpatch.MergePatch(before, q.body)
	if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return after, twice, err
}

// read reads a whole object with its defaults. A strict error comes with the object.
func (k *kind) read(text []byte) (object, *schema.GroupVersionKind, error) {
	if !k.typed {
		return k.readUntyped(text)
	}
	o := k.empty()
	_, gvk, err := serializer.Decode(text, &k.GroupVersionKind, o)
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return nil, gvk, err
	}
	if got := o.GetObjectKind().GroupVersionKind(); got != k.GroupVersionKind {
		return nil, gvk, unmodelled("an object of the kind %s at the address of %s", got, k.GroupVersionKind)
	}
	k.setDefaults(o)
	if d, ok := o.(*appsv1.DaemonSet); ok && d.Annotations[appsv1.DeprecatedTemplateGeneration] == "" {
		setAnnotation(d, appsv1.DeprecatedTemplateGeneration, "0") // a field of the internal type
	}
	return o, gvk, err
}

// readUntyped does the same for what has no Go type.
func (k *kind) readUntyped(text []byte) (object, *schema.GroupVersionKind, error) {
	u := &unstructured.Unstructured{}
	twice, err := kjson.UnmarshalStrict(text, &u.Object)
	if err != nil {
		return nil, nil, unmodelled("bodies that are no objects: %v", err)
	}
	gvk := u.GroupVersionKind()
	if gvk != k.GroupVersionKind {
		return nil, &gvk, unmodelled("an object of the kind %s at the address of %s", gvk, k.GroupVersionKind)
	}
	if k.custom != nil {
		twice = append(twice, k.custom.prune(u)...)
	}
	k.setDefaults(u)
	if len(twice) > 0 {
		return u, &gvk, runtime.NewStrictDecodingError(twice)
	}
	return u, &gvk, nil
}
