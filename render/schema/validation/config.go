// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/base64"
	"encoding/json"
)

var configTypes = types{
	core + "ConfigMap": {Self: mapping(configMap), Fields: map[string]Rule{"data": fileNames, "binaryData": fileNames}},
	core + "Secret":    {Self: mapping(secret), Fields: map[string]Rule{"data": fileNames, "stringData": fileNames}},
}

func fileNames(v any) (found Flaws) {
	m, _ := v.(map[string]any)
	for k := range m {
		if !isFileName(k) {
			found = append(found, Flaw{Path: []any{k}, Want: wantFile})
		}
	}
	return found
}

func configMap(m map[string]any) (found Flaws) {
	data := object(m, "data")
	for k := range object(m, "binaryData") {
		if _, ok := data[k]; ok {
			found = append(found, say("this key is in data as well: remove one of them").at(k).at("binaryData")...)
		}
	}
	return found
}

// secretKeys are the keys that a Secret of a type has to have.
var secretKeys = map[string][]string{
	"kubernetes.io/tls":              {"tls.crt", "tls.key"},
	"kubernetes.io/dockercfg":        {".dockercfg"},
	"kubernetes.io/dockerconfigjson": {".dockerconfigjson"},
	"kubernetes.io/ssh-auth":         {"ssh-privatekey"},
}

// secret is about what the type of a Secret asks for. No message has a value.
func secret(m map[string]any) (found Flaws) {
	kind := text(m, "type")
	if kind == "" || kind == "Opaque" {
		return nil
	}
	data, texts := object(m, "data"), object(m, "stringData")
	has := func(key string) bool {
		_, inData := data[key]
		_, inTexts := texts[key]
		return inData || inTexts
	}
	for _, key := range secretKeys[kind] {
		if !has(key) {
			found = append(found, say("want the key "+key+" in data or stringData, as the type is "+kind)...)
		}
	}
	switch kind {
	case "kubernetes.io/service-account-token":
		if text(object(object(m, "metadata"), "annotations"), "kubernetes.io/service-account.name") == "" {
			found = append(found, say("want the annotation kubernetes.io/service-account.name, as the type is "+kind).at("metadata")...)
		}
	case "kubernetes.io/basic-auth":
		if !has("username") && !has("password") {
			found = append(found, say("want data.username or data.password, or one of them in stringData, as the type is "+kind)...)
		}
	case "kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson":
		found = append(found, registryLogin(data, texts, secretKeys[kind][0])...)
	}
	return found
}

// registryLogin is about a file that is a mapping in JSON.
func registryLogin(data, texts map[string]any, key string) Flaws {
	field, content := "stringData", []byte(nil)
	if s, ok := texts[key].(string); ok {
		content = []byte(s)
	} else if s, ok := data[key].(string); ok {
		field = "data"
		decoded, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return nil // another problem
		}
		content = decoded
	} else {
		return nil
	}
	var login map[string]any
	if json.Unmarshal(content, &login) != nil {
		return say("want a map in JSON").at(key).at(field)
	}
	return nil
}
