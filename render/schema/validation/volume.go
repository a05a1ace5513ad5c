// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
)

// volumeSources are what a volume can be of. Those that a feature gate can take
// away are not counted: image.
var volumeSources = []string{"emptyDir", "hostPath", "configMap", "secret", "persistentVolumeClaim", "projected", "downwardAPI", "csi", "ephemeral", "nfs",
	"iscsi", "fc", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "rbd", "cinder", "cephfs", "quobyte", "flexVolume",
	"azureFile", "azureDisk", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "storageos", "scaleIO"}

var volumeTypes = types{
	core + "Volume":                            {Self: mapping(volume), Fields: map[string]Rule{"name": dnsLabel}},
	core + "EmptyDirVolumeSource":              {Fields: map[string]Rule{"sizeLimit": notNegative}},
	core + "HostPathVolumeSource":              {Fields: map[string]Rule{"path": every(nonEmpty, noBackstep)}},
	core + "ConfigMapVolumeSource":             {Self: mapping(needsText("name")), Fields: map[string]Rule{"defaultMode": mode}},
	core + "SecretVolumeSource":                {Self: mapping(needsText("secretName")), Fields: map[string]Rule{"defaultMode": mode}},
	core + "DownwardAPIVolumeSource":           {Fields: map[string]Rule{"defaultMode": mode}},
	core + "ProjectedVolumeSource":             {Self: mapping(projected), Fields: map[string]Rule{"defaultMode": mode}},
	core + "KeyToPath":                         {Fields: map[string]Rule{"key": nonEmpty, "path": inVolume, "mode": mode}},
	core + "DownwardAPIVolumeFile":             {Self: mapping(downwardFile), Fields: map[string]Rule{"path": inVolume, "mode": mode}},
	core + "PersistentVolumeClaimVolumeSource": {Fields: map[string]Rule{"claimName": nonEmpty}},
	core + "EphemeralVolumeSource":             {Self: mapping(needs("volumeClaimTemplate"))},
	core + "ConfigMapProjection":               {Self: mapping(needsText("name"))},
	core + "SecretProjection":                  {Self: mapping(needsText("name"))},
	core + "ServiceAccountTokenProjection":     {Fields: map[string]Rule{"path": inVolume, "expirationSeconds": tokenSeconds}},
	core + "NFSVolumeSource":                   {Fields: map[string]Rule{"server": nonEmpty, "path": texts(func(s string) string { return unless(strings.HasPrefix(s, "/"), "an absolute path") })}},
	core + "CSIVolumeSource":                   {Fields: map[string]Rule{"driver": driver, "nodePublishSecretRef": nameOf(dnsName)}},
	core + "GitRepoVolumeSource":               {Fields: map[string]Rule{"repository": nonEmpty, "directory": relative}},
	core + "ISCSIVolumeSource":                 {Self: mapping(iscsi), Fields: map[string]Rule{"targetPortal": nonEmpty, "iqn": nonEmpty, "lun": between(0, 255)}},
	core + "ISCSIPersistentVolumeSource":       {Self: mapping(iscsi), Fields: map[string]Rule{"targetPortal": nonEmpty, "iqn": nonEmpty, "lun": between(0, 255)}},
	core + "FCVolumeSource":                    {Self: mapping(fibre)},
	core + "GCEPersistentDiskVolumeSource":     {Fields: map[string]Rule{"pdName": nonEmpty, "partition": between(0, 255)}},
	core + "AWSElasticBlockStoreVolumeSource":  {Fields: map[string]Rule{"volumeID": nonEmpty, "partition": between(0, 255)}},
	core + "CinderVolumeSource":                {Fields: map[string]Rule{"volumeID": nonEmpty}},
	core + "GlusterfsVolumeSource":             {Fields: map[string]Rule{"endpoints": nonEmpty, "path": nonEmpty}},
	core + "RBDVolumeSource":                   {Fields: map[string]Rule{"monitors": some("monitor"), "image": nonEmpty}},
	core + "RBDPersistentVolumeSource":         {Fields: map[string]Rule{"monitors": some("monitor"), "image": nonEmpty}},
	core + "CephFSVolumeSource":                {Fields: map[string]Rule{"monitors": some("monitor")}},
	core + "CephFSPersistentVolumeSource":      {Fields: map[string]Rule{"monitors": some("monitor")}},
	core + "AzureFileVolumeSource":             {Fields: map[string]Rule{"secretName": nonEmpty, "shareName": nonEmpty}},
	core + "AzureFilePersistentVolumeSource":   {Fields: map[string]Rule{"secretName": nonEmpty, "shareName": nonEmpty, "secretNamespace": nonEmpty}},
	core + "AzureDiskVolumeSource":             {Fields: map[string]Rule{"diskName": nonEmpty, "diskURI": nonEmpty}},
	core + "VsphereVirtualDiskVolumeSource":    {Fields: map[string]Rule{"volumePath": nonEmpty}},
	core + "PortworxVolumeSource":              {Fields: map[string]Rule{"volumeID": nonEmpty}},
	core + "FlexVolumeSource":                  {Fields: map[string]Rule{"driver": nonEmpty}},
	core + "FlexPersistentVolumeSource":        {Fields: map[string]Rule{"driver": nonEmpty}},
}

var noBackstep = texts(func(s string) string { return unless(!hasBackstep(s), "a path without ..") })

// mode is the permissions of a file.
var mode = Rule(func(v any) Flaws {
	if n, ok := whole(v); ok && (n < 0 || n > 0o777) {
		return want("permissions from 0 to 0777 in octal, which is 511")
	}
	return nil
})

var tokenSeconds = between(600, 1<<32)

// driver is the name of a CSI driver.
var driver = texts(func(s string) string {
	return unless(len(s) <= 63 && nameOfAnyCase(s), "at most 63 letters, digits, - and .")
})

// needs makes a rule for a field that OpenAPI does not require.
func needs(field string) func(map[string]any) Flaws {
	return func(m map[string]any) Flaws {
		if m[field] == nil {
			return missing(field, "")
		}
		return nil
	}
}

// needsText makes a rule for a text that OpenAPI does not require.
func needsText(field string) func(map[string]any) Flaws {
	return func(m map[string]any) Flaws {
		if m[field] == nil || m[field] == "" {
			return missing(field, "")
		}
		return nil
	}
}

func volume(m map[string]any) Flaws {
	return atMostOne(m, volumeSources, "source for a volume")
}

// projected is about the files of a volume that has them from several places.
func projected(m map[string]any) (found Flaws) {
	taken := map[string]bool{}
	use := func(path string) Flaws {
		if path != "" && taken[path] {
			return say("this path is there already: remove one of them")
		}
		taken[path] = true
		return nil
	}
	for i, item := range list(m, "sources") {
		source, _ := item.(map[string]any)
		// The newer sources are those that a feature gate can take away.
		found = append(found, atMostOne(source, []string{"secret", "configMap", "downwardAPI", "serviceAccountToken"}, "source in an item").item(i).at("sources")...)
		for _, kind := range [...]string{"secret", "configMap", "downwardAPI"} {
			for j, item := range list(object(source, kind), "items") {
				file, _ := item.(map[string]any)
				found = append(found, use(text(file, "path")).at("path").item(j).at("items").at(kind).item(i).at("sources")...)
			}
		}
	}
	return found
}

// podVolumeFields are what a file may have of its pod.
var podVolumeFields = map[string]bool{"metadata.name": true, "metadata.namespace": true, "metadata.labels": true, "metadata.annotations": true, "metadata.uid": true}

func downwardFile(m map[string]any) Flaws {
	if f := oneOf(m, []string{"fieldRef", "resourceFieldRef"}, "source"); f != nil {
		return f
	}
	if ref := object(m, "resourceFieldRef"); ref != nil && text(ref, "containerName") == "" {
		return missing("containerName", "").at("resourceFieldRef")
	}
	return fieldRef(object(m, "fieldRef"), podVolumeFields, "one of metadata.name, metadata.namespace, metadata.uid, metadata.labels, metadata.annotations, "+
		"metadata.labels['KEY'], metadata.annotations['KEY']").at("fieldRef")
}

func iscsi(m map[string]any) (found Flaws) {
	if iqn := text(m, "iqn"); iqn != "" && !strings.HasPrefix(iqn, "iqn") && !strings.HasPrefix(iqn, "eui") && !strings.HasPrefix(iqn, "naa") {
		found = append(found, want("a name that starts with iqn, eui or naa").at("iqn")...)
	}
	if (isTrue(m, "chapAuthDiscovery") || isTrue(m, "chapAuthSession")) && m["secretRef"] == nil {
		found = append(found, missing("secretRef", ", chapAuth needs it")...)
	}
	return found
}

func fibre(m map[string]any) Flaws {
	names, ids := list(m, "targetWWNs"), list(m, "wwids")
	switch {
	case len(names) == 0 && len(ids) == 0:
		return say("want targetWWNs or wwids")
	case len(names) > 0 && len(ids) > 0:
		return say("remove it, or targetWWNs: only one of them").at("wwids")
	case len(names) > 0 && m["lun"] == nil:
		return missing("lun", ", targetWWNs needs it")
	case len(names) > 0:
		return between(0, 255)(m["lun"]).at("lun")
	}
	return nil
}
