// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"path"
	"strings"
)

var claimTypes = types{
	core + "PersistentVolumeClaim":     {Self: mapping(needs("spec"))},
	core + "PersistentVolumeClaimSpec": {Self: mapping(claim), Fields: map[string]Rule{"accessModes": accessModes, "storageClassName": except("", dnsName), "volumeAttributesClassName": except("", dnsName)}},
	core + "TypedLocalObjectReference": {Optional: []string{"kind", "name"}}, // a claim's source that is not good is ignored
	core + "TypedObjectReference":      {Self: mapping(dataSourceRef), Optional: []string{"kind", "name"}},
	core + "PersistentVolume":          {Self: mapping(needs("spec"))},
	core + "PersistentVolumeSpec": {Self: mapping(persistentVolume), Fields: map[string]Rule{"accessModes": accessModes, "storageClassName": except("", dnsName),
		"volumeAttributesClassName": dnsName, "nodeAffinity": mapping(func(m map[string]any) Flaws {
			return nodeLabelValues(object(m, "required")).at("required")
		})}},
	core + "VolumeNodeAffinity": {Self: mapping(needs("required"))},
	core + "CSIPersistentVolumeSource": {Fields: map[string]Rule{"driver": driver, "volumeHandle": nonEmpty,
		"controllerPublishSecretRef": mapping(secretReference), "controllerExpandSecretRef": mapping(secretReference),
		"nodePublishSecretRef": mapping(secretReference), "nodeExpandSecretRef": mapping(secretReference)}},
	core + "LocalVolumeSource":               {Fields: map[string]Rule{"path": every(nonEmpty, noBackstep)}},
	core + "CinderPersistentVolumeSource":    {Fields: map[string]Rule{"volumeID": nonEmpty}},
	core + "GlusterfsPersistentVolumeSource": {Fields: map[string]Rule{"endpoints": nonEmpty, "path": nonEmpty, "endpointsNamespace": dnsLabel}},
}

// volumeKinds are what a persistent volume can be of.
var volumeKinds = []string{"csi", "local", "nfs", "hostPath", "iscsi", "fc", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "rbd",
	"quobyte", "cephfs", "cinder", "flexVolume", "azureFile", "azureDisk", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "scaleIO", "storageos"}

func accessModes(v any) Flaws {
	l, ok := v.([]any)
	if !ok {
		return nil
	}
	if len(l) == 0 {
		return say("want at least one of ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod")
	}
	alone, other := false, false
	for i, item := range l {
		switch item {
		case "ReadWriteOncePod":
			alone = true
		case "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany":
			other = true
		default:
			if _, isText := item.(string); isText {
				return want("one of ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod").item(i)
			}
		}
	}
	if alone && other {
		return say("ReadWriteOncePod does not go with other modes")
	}
	return nil
}

// claim is about what a claim has to say.
func claim(m map[string]any) (found Flaws) {
	if m["accessModes"] == nil {
		found = append(found, missing("accessModes", "")...)
	}
	requests := object(object(m, "resources"), "requests")
	if storage := requests["storage"]; storage == nil {
		if m["resources"] == nil || object(m, "resources") != nil {
			found = append(found, say("resources.requests.storage: missing")...)
			found[len(found)-1].Missing = "resources"
		}
	} else if q, ok := quantity(storage); ok && q.Sign() <= 0 {
		found = append(found, want("more than 0").at("storage").at("requests").at("resources")...)
	}
	source, ref := object(m, "dataSource"), object(m, "dataSourceRef")
	if isDropped(ref) {
		ref = nil
	}
	kind, group := text(source, "kind"), text(source, "apiGroup")
	if known := kind == "PersistentVolumeClaim" && group == "" || kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io"; known && (source["name"] == nil || source["name"] == "") {
		found = append(found, missing("name", "").at("dataSource")...)
	}
	if source != nil && ref != nil && (text(source, "apiGroup") != text(ref, "apiGroup") || text(source, "kind") != text(ref, "kind") || text(source, "name") != text(ref, "name")) {
		found = append(found, say("want the same as in dataSourceRef, or only one of them").at("dataSource")...)
	}
	return found
}

// isDropped tells a dataSourceRef that API servers drop from a claim before they look at it:
// one with a namespace, unless the feature gate CrossNamespaceVolumeDataSource is on. It is
// alpha in Kubernetes 1.36.
func isDropped(ref map[string]any) bool {
	namespace := ref["namespace"]
	return namespace != nil && namespace != ""
}

func dataSourceRef(m map[string]any) (found Flaws) {
	if isDropped(m) {
		return nil
	}
	for _, field := range [...]string{"kind", "name"} {
		found = append(found, needsText(field)(m)...)
	}
	if kind := text(m, "kind"); text(m, "apiGroup") == "" && kind != "" && kind != "PersistentVolumeClaim" {
		found = append(found, say("want the apiGroup of the kind: only a PersistentVolumeClaim has none").at("kind")...)
	}
	return append(found, except("", dnsName)(m["apiGroup"]).at("apiGroup")...)
}

func secretReference(m map[string]any) (found Flaws) {
	for _, field := range [...]string{"name", "namespace"} {
		if m[field] == nil || m[field] == "" {
			found = append(found, missing(field, "")...)
		}
	}
	return append(append(found, except("", dnsName)(m["name"]).at("name")...), except("", dnsLabel)(m["namespace"]).at("namespace")...)
}

func persistentVolume(m map[string]any) (found Flaws) {
	if m["accessModes"] == nil {
		found = append(found, missing("accessModes", "")...)
	}
	capacity := object(m, "capacity")
	switch storage := capacity["storage"]; {
	case m["capacity"] == nil || capacity != nil && storage == nil:
		found = append(found, say("capacity.storage: missing")...)
		found[len(found)-1].Missing = "capacity"
	case len(capacity) > 1:
		found = append(found, say("want storage and nothing else").at("capacity")...)
	default:
		if q, ok := quantity(storage); ok && q.Sign() <= 0 {
			found = append(found, want("more than 0").at("storage").at("capacity")...)
		}
	}
	found = append(found, oneOf(m, volumeKinds, "source for a volume")...)
	if m["local"] != nil && m["nodeAffinity"] == nil {
		found = append(found, missing("nodeAffinity", ", a local volume is on one node")...)
	}
	if p, ok := object(m, "hostPath")["path"].(string); ok && p != "" && path.Clean(p) == "/" && m["persistentVolumeReclaimPolicy"] == "Recycle" {
		found = append(found, say("not Recycle for the path /").at("persistentVolumeReclaimPolicy")...)
	}
	return found
}

// nameOfAnyCase says whether s is a DNS name but for the case of its letters.
func nameOfAnyCase(s string) bool { return isDNSName(strings.ToLower(s)) }
