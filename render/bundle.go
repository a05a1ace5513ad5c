// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// ObjectID is what makes a hard object the same object over time and over
// units: its identity in one cluster. The version is no part of it.
type ObjectID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // empty for a cluster-scoped object
	Name      string `json:"name"`
}

// String is for people and logs: "Deployment/shop-rz00a/cart", or
// "Certificate.cert-manager.io/shop/cart" outside the built-in groups.
func (id ObjectID) String() string {
	kind := id.Kind
	if id.Group != "" && !builtinGroups[id.Group] {
		kind += "." + id.Group
	}
	if id.Namespace == "" {
		return kind + "/" + id.Name
	}
	return kind + "/" + id.Namespace + "/" + id.Name
}

// IsSecret says whether the object is a Secret: its values are shown to nobody,
// and never asked for.
func (id ObjectID) IsSecret() bool { return id.Group == "" && id.Kind == "Secret" }

// IsNamespace says whether the object is a Namespace.
func (id ObjectID) IsNamespace() bool { return id.Group == "" && id.Kind == "Namespace" }

// IsSystem says whether the object is a namespace that comes with Kubernetes.
// Those are never deleted, whatever anybody says.
func (id ObjectID) IsSystem() bool {
	return id.IsNamespace() && (id.Name == "default" || strings.HasPrefix(id.Name, "kube-"))
}

// IsCustom says whether the object's kind is none of Kubernetes' own.
func (id ObjectID) IsCustom() bool {
	return strings.Contains(id.Group, ".") && !builtinGroups[id.Group]
}

// IsDefinition says whether the object defines a kind.
func (id ObjectID) IsDefinition() bool {
	return id.Group == "apiextensions.k8s.io" && id.Kind == definitionKind
}

// IsContainer says whether other objects end with the object.
func (id ObjectID) IsContainer() bool { return id.IsNamespace() || id.IsDefinition() }

// IsJob says whether the object is a Job, which ends, and may be a hook.
func (id ObjectID) IsJob() bool { return id.Group == "batch" && id.Kind == "Job" }

// Compare orders by namespace, group, kind and name.
func (id ObjectID) Compare(other ObjectID) int {
	return cmp.Or(cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Group, other.Group),
		cmp.Compare(id.Kind, other.Kind), cmp.Compare(id.Name, other.Name))
}

var builtinGroups = map[string]bool{
	"apps": true, "batch": true, "autoscaling": true, "policy": true,
	"networking.k8s.io": true, "rbac.authorization.k8s.io": true, "storage.k8s.io": true,
	"apiextensions.k8s.io": true, "admissionregistration.k8s.io": true, "apiregistration.k8s.io": true,
	"coordination.k8s.io": true, "scheduling.k8s.io": true, "discovery.k8s.io": true,
	"certificates.k8s.io": true, "events.k8s.io": true, "node.k8s.io": true,
	"flowcontrol.apiserver.k8s.io": true, "authentication.k8s.io": true, "authorization.k8s.io": true,
}

// Digest is a content address: the SHA-256 of canonical bytes, in hexadecimal.
// The empty digest means nothing, "not there".
type Digest string

// Short is the abbreviated form for people, 8 digits at most.
func (d Digest) Short() string { return string(d[:min(len(d), 8)]) }

func digest(content []byte) Digest {
	sum := sha256.Sum256(content)
	return Digest(hex.EncodeToString(sum[:]))
}

func digestOf(h hash.Hash) Digest { return Digest(hex.EncodeToString(h.Sum(nil))) }

// Object is one hard object, ready to be applied. It is never changed after
// it was made, and may be shared between bundles and goroutines.
type Object struct {
	ID      ObjectID
	Version string // "v1"
	Phase   int    // see [config.AnnotationPhase]
	// JSON is the canonical form: sorted keys, no spaces, swell's labels and
	// annotations included. It is the body of the apply request as it stands.
	JSON   []byte
	Digest Digest // of JSON
	// Spec is where the document stands that the object was rendered from;
	// Template is where the object stands in the kind. Template is the zero
	// Position for plain Kubernetes YAML.
	Spec, Template document.Position
	// Secrets are texts in it that come from fields which a kind marks as
	// secret. What a Secret holds is not among them.
	Secrets []string
	// Sealed is the file that its encrypted values are from: they stand in JSON as
	// sops wrote them. Empty where there are none.
	Sealed string
}

// APIVersion is "apps/v1", or "v1" in the core group.
func (o *Object) APIVersion() string {
	if o.ID.Group == "" {
		return o.Version
	}
	return o.ID.Group + "/" + o.Version
}

// Bundle is the hard objects of one unit for one target, in apply order: what
// others live in or are defined by, then by phase, and within one by kind order,
// namespace, group, kind and name. It is never empty. The same
// tree and target give the same bundle, whatever the commit.
type Bundle struct {
	Unit    config.UnitPath
	Target  config.TargetName
	Digest  Digest // of the objects' identities and digests, in order; not of unit, target or positions
	Objects []*Object
}

func newBundle(unit config.UnitPath, target config.TargetName, objects []*Object) *Bundle {
	sortObjects(objects)
	return sealBundle(unit, target, objects)
}

// sealBundle makes a bundle of objects that are in apply order.
func sealBundle(unit config.UnitPath, target config.TargetName, objects []*Object) *Bundle {
	sum := sha256.New()
	for _, o := range objects {
		fmt.Fprintf(sum, "%s %s %s\n", o.APIVersion(), o.ID, o.Digest)
	}
	return &Bundle{Unit: unit, Target: target, Digest: digestOf(sum), Objects: objects}
}
