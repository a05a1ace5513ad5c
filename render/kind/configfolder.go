// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

//go:embed config_folder.proto
var configFolderProto string

// configFolder is the kind ConfigFolder, see its .proto.
func configFolder() *Go {
	return &Go{
		Kind:    "ConfigFolder",
		Version: 1,
		Message: embeddedMessage("config_folder.proto", configFolderProto),
		IDs:     []string{"configmap"},
		Render:  renderConfigFolder,
		Reads:   readsOfConfigFolder,
	}
}

// configKey is what the API server takes for a key of a ConfigMap.
var configKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

// maxConfigMap is what the API server takes for the values of a ConfigMap.
const maxConfigMap = 1 << 20

func renderConfigFolder(in GoInput) ([]GoObject, error) {
	folder := field(in.Spec, "folder").String()
	if folder == "" {
		return nil, errors.New("spec.folder: missing")
	}
	namespace := field(in.Spec, "namespace").String()
	if namespace == "" {
		namespace = "{tenant}"
	}
	namespace = strings.NewReplacer(
		"{tenant}", field(in.Unit, "tenant").String(), "{unit}", field(in.Unit, "name").String(),
		"{cluster}", field(in.Target, "cluster").String(), "{cell}", field(in.Target, "cell").String(),
	).Replace(namespace)
	files, err := readFolder(in, folder)
	if err != nil {
		return nil, fmt.Errorf("spec.folder: %w", err)
	}
	name := in.Name
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	text, binary := map[string]any{}, map[string]any{}
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%q %d\n%s", f.key, len(f.content), f.content)
		if utf8.Valid(f.content) {
			text[f.key] = string(f.content)
		} else {
			binary[f.key] = base64.StdEncoding.EncodeToString(f.content)
		}
	}
	if field(in.Spec, "hashSuffix").Bool() {
		name += "-" + hex.EncodeToString(sum.Sum(nil))[:hashDigits]
		object["immutable"] = true
	}
	if len(text) > 0 {
		object["data"] = text
	}
	if len(binary) > 0 {
		object["binaryData"] = binary
	}
	metadata := map[string]any{"name": name, "namespace": namespace}
	labels := map[string]any{}
	field(in.Spec, "labels").Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		labels[key.String()] = value.String()
		return true
	})
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	object["metadata"] = metadata
	return []GoObject{{ID: "configmap", Object: object}}, nil
}

func field(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

type configFile struct {
	key     string
	content []byte
}

// readFolder reads the files in the order that they are listed in.
func readFolder(in GoInput, folder string) ([]configFile, error) {
	names, err := in.Files(folder)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%q: there is no file in it", document.Shorten(folder))
	}
	var files []configFile
	taken := map[string]string{}
	total := 0
	for _, name := range names {
		key := strings.ReplaceAll(name, "/", "__")
		switch {
		case !configKey.MatchString(key):
			return nil, fmt.Errorf("file %q: want a name of letters, digits, -, _ and ., as a ConfigMap has them", document.Shorten(name))
		case taken[key] != "":
			return nil, fmt.Errorf("files %q and %q: both would be the key %q", taken[key], name, key)
		}
		taken[key] = name
		content, err := in.File(path.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if total += len(content); total > maxConfigMap {
			return nil, fmt.Errorf("%q: its files are larger than the %d KiB that a ConfigMap holds", document.Shorten(folder), maxConfigMap>>10)
		}
		files = append(files, configFile{key, content})
	}
	return files, nil
}
