// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
	"github.com/swell-sh/swell/render/object"
)

// Opener decrypts the objects of one job. It keeps the values that it has read, and is
// to be dropped with the job.
type Opener struct {
	Keys *Keys
	Tree config.Tree // of the commit that the objects are from
	// Tenant is that of the unit; empty where the monorepo names none.
	Tenant string

	mu    sync.Mutex
	files map[string]Values
}

// Open is the object with its values decrypted. Its digest stays that of what Git has.
func (o *Opener) Open(ctx context.Context, obj *object.Object) (*object.Object, error) {
	if obj.Sealed == "" {
		return obj, nil
	}
	values, err := o.values(ctx, obj.Sealed)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(obj.JSON)))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("%s: %w", obj.ID, err)
	}
	for _, field := range []string{"data", "stringData"} {
		if err := values.put(field, content[field]); err != nil {
			return nil, fmt.Errorf("%s: %w", obj.Sealed, err)
		}
	}
	opened := *obj
	opened.Sealed = ""
	if opened.JSON, err = json.Marshal(content); err != nil {
		return nil, fmt.Errorf("%s: a value is none of JSON", obj.ID)
	}
	return &opened, nil
}

// values are those of a file, decrypted once.
func (o *Opener) values(ctx context.Context, name string) (Values, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.files[name]; ok {
		return known, nil
	}
	content, err := o.Tree.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, document.Cause(err))
	}
	f, err := Read(name, content)
	if err != nil {
		return nil, err
	}
	key, err := o.Keys.DataKey(ctx, f, o.Tenant)
	if err != nil {
		return nil, err
	}
	values, err := f.Open(key)
	if err != nil {
		return nil, err
	}
	if o.files == nil {
		o.files = map[string]Values{}
	}
	o.files[name] = values
	return values, nil
}

// put puts values in the place of what they are encrypted as.
func (v Values) put(field string, content any) error {
	entries, _ := content.(map[string]any)
	for key, value := range entries {
		text, ok := value.(string)
		if !ok || !sops.IsEncrypted(text) {
			continue
		}
		plain, known := v[place{field, key, text}]
		shown := shownPath([]string{field, key})
		if !known {
			return fmt.Errorf("%s: this encrypted value does not stand there any more", shown)
		}
		if encoded, isText := plain.(string); isText && field == "data" {
			if _, err := base64.StdEncoding.DecodeString(encoded); err != nil {
				return fmt.Errorf("%s: is not in base64 once it is decrypted: encrypt it in base64, or under stringData", shown)
			}
		}
		entries[key] = plain
	}
	return nil
}
