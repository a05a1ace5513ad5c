// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
)

// place is where an encrypted value of a Secret stands, with the value as it is
// encrypted.
type place struct{ field, key, text string }

// Values are what a file holds under data and stringData at the top of its documents.
// They are secrets: no message may have one.
type Values map[place]any

// initialization begins the code of a file with mac_only_encrypted, so that it differs
// from that of a file without. It is the SHA-256 of "sops".
var initialization = []byte{0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0xb,
	0xb, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69}

// Open decrypts the file and checks that nobody changed it.
func (f *File) Open(key []byte) (Values, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("%s: the data key has %d bytes, want 32", f.Name, len(key))
	}
	o := opener{metadata: f.Metadata, block: block, mac: sha512.New(), values: Values{}, matchers: map[string]*regexp.Regexp{}}
	if f.Metadata.MACOnlyEncrypted {
		o.mac.Write(initialization)
	}
	for _, root := range f.roots {
		if err := o.branch(root, nil, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	written, err := o.decrypt(f.Metadata.MAC, f.Metadata.At.Format(time.RFC3339))
	text, _ := written.(string)
	if is := fmt.Sprintf("%X", o.mac.Sum(nil)); err != nil || subtle.ConstantTimeCompare([]byte(is), []byte(text)) != 1 {
		return nil, fmt.Errorf("%s: somebody changed it after sops encrypted it: its code (mac) does not fit", f.Name)
	}
	return o.values, nil
}

type opener struct {
	metadata *sops.Metadata
	block    cipher.Block
	mac      hash.Hash
	values   Values
	matchers map[string]*regexp.Regexp
	lists    int // around the value at hand
}

// branch goes through a mapping. above are the comments before each of the values that
// it is in.
func (o *opener) branch(b branch, path []string, above [][]string) error {
	above = append(above[:len(above):len(above)], nil)
	last := &above[len(above)-1]
	for _, i := range b {
		if c, ok := i.value.(comment); ok {
			*last = append(*last, string(c))
			continue
		}
		if err := o.value(i.value, append(path[:len(path):len(path)], i.key), above); err != nil {
			return err
		}
		*last = nil
	}
	return nil
}

func (o *opener) list(list []any, path []string, above [][]string) error {
	above = append(above[:len(above):len(above)], nil)
	last := &above[len(above)-1]
	o.lists++
	defer func() { o.lists-- }()
	for _, v := range list {
		if c, ok := v.(comment); ok {
			*last = append(*last, string(c))
			continue
		}
		if err := o.value(v, path, above); err != nil {
			return err
		}
		*last = nil
	}
	return nil
}

func (o *opener) value(v any, path []string, above [][]string) error {
	switch v := v.(type) {
	case branch:
		return o.branch(v, path, above)
	case []any:
		return o.list(v, path, above)
	case nil:
		return nil
	}
	if err := o.leaf(v, path, above); err != nil {
		return fmt.Errorf("%s: %w", shownPath(path), err)
	}
	return nil
}

func (o *opener) leaf(v any, path []string, above [][]string) (err error) {
	sealed := o.isEncrypted(path, above)
	if sealed {
		text, ok := v.(string)
		if !ok {
			return errors.New("want an encrypted value, by the file's own rules")
		}
		if v, err = o.decrypt(text, strings.Join(path, ":")+":"); err != nil {
			return err
		}
		if len(path) == 2 && o.lists == 0 && (path[0] == "data" || path[0] == "stringData") && text != "" {
			o.values[place{path[0], path[1], text}] = v
		}
	}
	if _, ok := v.(comment); ok || o.metadata.MACOnlyEncrypted && !sealed {
		return nil
	}
	bytes, err := bytesOf(v)
	o.mac.Write(bytes)
	return err
}

// decrypt is the value of an encrypted text; bound is what it was bound to.
func (o *opener) decrypt(text, bound string) (any, error) {
	if text == "" {
		return "", nil
	}
	sealed, err := sops.Parse(text)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithNonceSize(o.block, len(sealed.IV))
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, sealed.IV, append(sealed.Data, sealed.Tag...), []byte(bound))
	if err != nil {
		return nil, errors.New("is not what sops encrypted there with this key")
	}
	v, err := typed(sealed.Type, string(plain))
	if err != nil {
		return nil, fmt.Errorf("is no value of its type %s", sealed.Type)
	}
	return v, nil
}

func typed(kind, text string) (any, error) {
	switch kind {
	case "str", "bytes":
		return text, nil
	case "int":
		return strconv.Atoi(text)
	case "float":
		return strconv.ParseFloat(text, 64)
	case "bool":
		return strconv.ParseBool(text)
	case "time":
		var t time.Time
		err := t.UnmarshalText([]byte(text))
		return t, err
	case "comment":
		return comment(text), nil
	}
	return nil, errors.New("unknown")
}

// bytesOf is what a value adds to the code of the file.
func bytesOf(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return []byte(v), nil
	case int:
		return []byte(strconv.Itoa(v)), nil
	case float64:
		return []byte(strconv.FormatFloat(v, 'f', -1, 64)), nil
	case bool:
		if v {
			return []byte("True"), nil
		}
		return []byte("False"), nil
	case time.Time:
		return v.MarshalText()
	}
	return nil, errors.New("has a type that sops does not encrypt")
}

// isEncrypted says whether the file's rules have the value at the path encrypted.
func (o *opener) isEncrypted(path []string, above [][]string) bool {
	m := o.metadata
	suffix := func(suffix string) bool {
		return anyOf(path, func(key string) bool { return strings.HasSuffix(key, suffix) })
	}
	switch {
	case m.EncryptedSuffix != "":
		return suffix(m.EncryptedSuffix)
	case m.UnencryptedRegex != "":
		return !anyOf(path, o.matching(m.UnencryptedRegex))
	case m.EncryptedRegex != "":
		return anyOf(path, o.matching(m.EncryptedRegex))
	case m.UnencryptedCommentRegex != "":
		return !anyComment(above, o.matching(m.UnencryptedCommentRegex))
	case m.EncryptedCommentRegex != "":
		return anyComment(above, o.matching(m.EncryptedCommentRegex))
	}
	return !suffix(m.UnencryptedSuffix)
}

func (o *opener) matching(expression string) func(string) bool {
	if o.matchers[expression] == nil {
		o.matchers[expression] = regexp.MustCompile(expression) // [sops.ReadMetadata] has tried it
	}
	return o.matchers[expression].MatchString
}

func anyOf(texts []string, is func(string) bool) bool {
	for _, text := range texts {
		if is(text) {
			return true
		}
	}
	return false
}

func anyComment(above [][]string, is func(string) bool) bool {
	for _, texts := range above {
		if anyOf(texts, is) {
			return true
		}
	}
	return false
}

// shownPath is a path in a message. A key may be a value that somebody mistyped.
func shownPath(path []string) string {
	parts := make([]any, len(path))
	for i, key := range path {
		if parts[i] = key; !document.PlainKey(key) {
			parts[i] = document.Redacted
		}
	}
	return document.PathOf(parts...)
}
