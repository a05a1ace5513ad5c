// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// options are those of a POST, PUT or PATCH.
type options struct {
	manager    string
	validation string
	force      *bool
	dryRun     []string
}

// readOptions reads and checks the parameters of a write.
func (q *request) readOptions(patch types.PatchType) (options, error) {
	o := options{manager: q.query.Get("fieldManager"), validation: q.query.Get("fieldValidation"), dryRun: q.query["dryRun"]}
	if err := q.known("fieldManager", "fieldValidation", "dryRun", "force", "pretty", "timeout"); err != nil {
		return o, err
	}
	if text := q.query.Get("force"); text != "" {
		o.force = new(text != "false" && text != "0")
	}
	var errs field.ErrorList
	of := "PatchOptions"
	switch q.method {
	case http.MethodPost:
		of, errs = "CreateOptions", metavalidation.ValidateCreateOptions(&metav1.CreateOptions{DryRun: o.dryRun, FieldManager: o.manager, FieldValidation: o.validation})
	case http.MethodPut:
		of, errs = "UpdateOptions", metavalidation.ValidateUpdateOptions(&metav1.UpdateOptions{DryRun: o.dryRun, FieldManager: o.manager, FieldValidation: o.validation})
	default:
		errs = metavalidation.ValidatePatchOptions(&metav1.PatchOptions{DryRun: o.dryRun, Force: o.force, FieldManager: o.manager, FieldValidation: o.validation}, patch)
	}
	if len(errs) > 0 {
		return o, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind(of).GroupKind(), "", errs)
	}
	q.dryRun = len(o.dryRun) > 0
	if o.manager == "" {
		o.manager, _, _ = strings.Cut(q.http.UserAgent(), "/")
	}
	return o, nil
}

// known refuses parameters that nobody here reads.
func (q *request) known(names ...string) error {
	return onlyKnown(q.query, names...)
}

func onlyKnown(query url.Values, names ...string) error {
next:
	for name := range query {
		for _, known := range names {
			if name == known {
				continue next
			}
		}
		return unmodelled("the parameter %s", name)
	}
	return nil
}

func (q *request) strict(o options) bool { return o.validation == metav1.FieldValidationStrict }

func (q *request) fields() *managedfields.FieldManager { return q.managers[q.subresource] }

func (q *request) missing() error {
	return apierrors.NewNotFound(q.groupResource(), q.name)
}

// post creates an object.
func (c *Cluster) post(q *request) (any, int, error) {
	opt, err := q.readOptions("")
	if err != nil {
		return nil, 0, err
	}
	o, err := q.decode(q.body, opt)
	if err != nil {
		return nil, 0, err
	}
	o.SetCreationTimestamp(metav1.Time{})
	o.SetUID("")
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	if err := q.inNamespace(o); err != nil {
		return nil, 0, err
	}
	o = q.fields().UpdateNoErrors(q.empty(), o, opt.manager).(object)
	if err := c.admitCreate(q, o.GetName()); err != nil {
		return nil, 0, err
	}
	created, err := c.create(q, o, true)
	return created, http.StatusCreated, err
}

// decode reads a whole object of the request's kind.
func (q *request) decode(body []byte, opt options) (object, error) {
	if media, _, _ := strings.Cut(q.http.Header.Get("Content-Type"), ";"); q.method != http.MethodPatch && media != jsonType && media != "" {
		return nil, unmodelled("bodies of the type %q", media)
	}
	o, gvk, err := q.read(body)
	if err != nil && !(runtime.IsStrictDecodingError(err) && !q.strict(opt)) {
		if gvk != nil && gvk.Kind != "" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, q.Kind, err))
		}
		return nil, unmodelled("bodies that are no objects: %v", err)
	}
	return o, nil
}

var serializer = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{Strict: true})

// inNamespace puts an object where the request goes.
func (q *request) inNamespace(o object) error {
	switch o.GetNamespace() {
	case q.namespace:
	case "":
		o.SetNamespace(q.namespace)
	default:
		if q.namespace != "" {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		o.SetNamespace("")
	}
	return nil
}

// admitCreate is the admission plugin NamespaceLifecycle.
func (c *Cluster) admitCreate(q *request, name string) error {
	if !q.namespaced {
		return nil
	}
	ns, _ := c.namespace(q.namespace)
	if ns == nil {
		return apierrors.NewNotFound(resource{"", "namespaces"}.groupResource(), q.namespace)
	}
	if ns.Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	err := apierrors.NewForbidden(q.groupResource(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", q.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", q.namespace), Field: "metadata.namespace",
	})
	return err
}

func (c *Cluster) newUID() types.UID {
	if c.NewUID == nil {
		return uuid.NewUUID()
	}
	return c.NewUID()
}

// create checks and stores a new object. post says that it comes as such, and not as
// the change of one that is not there.
func (c *Cluster) create(q *request, o object, post bool) (object, error) {
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	o.SetUID(c.newUID())
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + rand.String(5))
	}
	if err := q.inNamespace(o); err != nil {
		return nil, err
	}
	if errs := q.prepareCreate(c, o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(q.GroupKind(), o.GetName(), errs)
	}
	if errs := q.checkCreate(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(q.GroupKind(), o.GetName(), errs)
	}
	if err := q.rules.refuse(o); err != nil {
		return nil, err
	}
	q.setDefaults(o) // of Namespaces whose name was made here
	if post {
		if there := c.find(q.kind, keyOf(o)); there != nil {
			err := apierrors.NewAlreadyExists(q.groupResource(), o.GetName())
			if there.GetDeletionTimestamp() != nil {
				err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
			}
			return nil, err
		}
		if !q.dryRun && o.GetResourceVersion() != "" && o.GetResourceVersion() != "0" {
			return nil, errors.New("resourceVersion should not be set on objects to be created")
		}
	}
	if q.dryRun {
		wholeSeconds(o)
		return o, nil
	}
	return c.save(q.kind, o), nil
}

// put replaces an object.
func (c *Cluster) put(q *request) (any, int, error) {
	opt, err := q.readOptions("")
	if err != nil {
		return nil, 0, err
	}
	sent, err := q.decode(q.body, opt)
	if err != nil {
		return nil, 0, err
	}
	if err := q.inNamespace(sent); err != nil {
		return nil, 0, err
	}
	if err := q.checkName(sent); err != nil {
		return nil, 0, err
	}
	uid := sent.GetUID()
	return c.update(q, q.rules.createOnUpdate && q.subresource == "", uid, func(live object) (object, error) {
		return q.fields().UpdateNoErrors(live, sent, opt.manager).(object), nil
	})
}

func (q *request) checkName(o object) error {
	switch {
	case o.GetName() == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", q.name))
	case o.GetName() != q.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), q.name))
	}
	return nil
}

const otherVersion = "the object has been modified; please apply your changes to the latest version and try again"

// update changes an object, or creates it where that may be. make makes the new one
// of a copy of what is there, or of an empty one.
func (c *Cluster) update(q *request, mayCreate bool, uid types.UID, make func(live object) (object, error)) (object, int, error) {
	there := c.find(q.kind, key{q.namespace, q.name})
	live := q.empty()
	switch {
	case there == nil && q.rules.createOnUpdate && q.subresource != "":
		return nil, 0, unmodelled("a write to a subresource of what is not there")
	case there == nil && !mayCreate:
		return nil, 0, q.missing()
	case there != nil && uid != "" && there.GetUID() != uid:
		return nil, 0, apierrors.NewConflict(q.groupResource(), q.name, preconditionFailed("UID", string(uid), string(there.GetUID())))
	case there == nil && uid != "":
		return nil, 0, apierrors.NewConflict(q.groupResource(), q.name, preconditionFailed("UID", string(uid), ""))
	case there != nil:
		live = there.DeepCopyObject().(object)
	}
	o, err := make(live)
	if err != nil {
		return nil, 0, err
	}
	if there == nil {
		if err := c.admitCreate(q, q.name); err != nil {
			return nil, 0, err
		}
		o, err = c.create(q, o, false)
		return o, http.StatusCreated, err
	}
	o, err = c.replace(q, o, there)
	return o, http.StatusOK, err
}

// replace checks a change of what is there and stores it.
func (c *Cluster) replace(q *request, o, there object) (object, error) {
	if err := q.checkVersion(o, there); err != nil {
		return nil, err
	}
	if err := q.inNamespace(o); err != nil {
		return nil, err
	}
	q.prepareUpdate(o, there, q.subresource == "status")
	if o.GetUID() == "" {
		o.SetUID(there.GetUID())
	}
	o.SetCreationTimestamp(there.GetCreationTimestamp())
	if at := there.GetDeletionTimestamp(); at != nil {
		o.SetDeletionTimestamp(at)
	}
	if seconds := there.GetDeletionGracePeriodSeconds(); seconds != nil && o.GetDeletionGracePeriodSeconds() == nil {
		o.SetDeletionGracePeriodSeconds(seconds)
	}
	if unchanged(o, there) && !c.endsWith(q, o, there) {
		return there, nil // and it was checked before
	}
	if errs := q.checkUpdate(o, there, q.subresource == "status"); len(errs) > 0 {
		return nil, apierrors.NewInvalid(q.GroupKind(), q.name, errs)
	}
	if err := q.rules.refuse(o); err != nil {
		return nil, err
	}
	q.setDefaults(o)
	switch {
	case c.endsWith(q, o, there):
		if !q.dryRun {
			c.erase(q.kind, there)
			c.afterDelete(q.kind, there)
		}
		return o, nil
	case unchanged(o, there): // with its defaults
		return there, nil
	case q.dryRun:
		wholeSeconds(o)
		return o, nil
	}
	return c.save(q.kind, o), nil
}

// checkVersion holds the version that a change is of against the newest one.
func (q *request) checkVersion(o, there object) error {
	version := o.GetResourceVersion()
	if _, err := strconv.ParseUint(version, 10, 64); err != nil && version != "" {
		return unmodelled("the resourceVersion %q", version)
	}
	switch {
	case version != "" && version != "0":
		if version != there.GetResourceVersion() {
			return apierrors.NewConflict(q.groupResource(), q.name, errors.New(otherVersion))
		}
	case q.rules.versioned:
		return apierrors.NewInvalid(q.GroupVersion().WithKind(q.plural).GroupKind(), q.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), uint64(0), "must be specified for an update"),
		})
	}
	o.SetResourceVersion(there.GetResourceVersion())
	return nil
}

// unchanged says whether nothing is different, times of managers apart. Those of the
// new object become the old ones then.
func unchanged(o, there object) bool {
	now, before := o.GetManagedFields(), there.GetManagedFields()
	if len(now) != len(before) {
		return false
	}
	old := make([]metav1.ManagedFieldsEntry, len(now))
	for i := range now {
		old[i] = now[i]
		old[i].Time = before[i].Time
	}
	if !equality.Semantic.DeepEqual(old, before) {
		return false
	}
	if len(old) > 0 {
		o.SetManagedFields(old)
	}
	wholeSeconds(o)
	same := false
	if u, ok := o.(*unstructured.Unstructured); ok {
		same = reflect.DeepEqual(u.Object, there.(*unstructured.Unstructured).Object)
	} else {
		same = equality.Semantic.DeepEqual(o, there)
	}
	if !same && len(old) > 0 {
		o.SetManagedFields(now)
	}
	return same
}

// refuse is for values whose consequences are not modelled.
func (r *rules) refuse(o object) error {
	if s, ok := o.(*corev1.Service); ok && s.Spec.Type != corev1.ServiceTypeClusterIP {
		return unmodelled("Services of the type %s", s.Spec.Type)
	}
	return nil
}
