// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package sops knows what sops (https://getsops.io) makes of a file: each encrypted
// value is a text of its own, and a mapping "sops" beside them says how they were
// encrypted and for whom. The package has no keys and decrypts nothing.
package sops

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

// Field is the name of the mapping.
const Field = "sops"

// Prefix begins each encrypted value.
const Prefix = "ENC[AES256_GCM,"

var encrypted = regexp.MustCompile(`^ENC\[AES256_GCM,data:([A-Za-z0-9+/]+=*),iv:([A-Za-z0-9+/]+=*),tag:([A-Za-z0-9+/]+=*),type:([a-z]+)\]$`)

// Value is an encrypted value, taken apart.
type Value struct {
	Data, IV, Tag []byte
	// Type is str, int, float, bool, bytes, time or comment.
	Type string
}

// IsEncrypted says whether a text is an encrypted value.
func IsEncrypted(text string) bool {
	return strings.HasPrefix(text, Prefix) && encrypted.MatchString(text)
}

// TypeOf is the type of an encrypted value; empty for other texts.
func TypeOf(text string) string {
	if m := encrypted.FindStringSubmatch(text); m != nil {
		return m[4]
	}
	return ""
}

// The sizes of AES-GCM's tag, and of what sops takes for a nonce.
const (
	tagSize  = 16
	maxNonce = 64
)

// Parse takes an encrypted value apart.
func Parse(text string) (v Value, err error) {
	m := encrypted.FindStringSubmatch(text)
	if m == nil {
		return v, errors.New("is no value that sops encrypted")
	}
	v.Type = m[4]
	for i, part := range []*[]byte{&v.Data, &v.IV, &v.Tag} {
		if *part, err = base64.StdEncoding.DecodeString(m[i+1]); err != nil {
			return v, errors.New("is encrypted, and damaged")
		}
	}
	if len(v.Tag) != tagSize || len(v.IV) == 0 || len(v.IV) > maxNonce {
		return v, errors.New("is encrypted, and damaged")
	}
	return v, nil
}

// Metadata is what the mapping says. The names are those of sops.
type Metadata struct {
	Age []struct {
		Recipient string `yaml:"recipient"`
		Enc       string `yaml:"enc"` // the data key, encrypted and armored
	} `yaml:"age"`
	PGP []struct {
		Fingerprint string `yaml:"fp"`
	} `yaml:"pgp"`
	KeyGroups []yaml.Node `yaml:"key_groups"`

	LastModified string `yaml:"lastmodified"`
	MAC          string `yaml:"mac"`
	Version      string `yaml:"version"`

	MACOnlyEncrypted        bool   `yaml:"mac_only_encrypted"`
	UnencryptedSuffix       string `yaml:"unencrypted_suffix"`
	EncryptedSuffix         string `yaml:"encrypted_suffix"`
	UnencryptedRegex        string `yaml:"unencrypted_regex"`
	EncryptedRegex          string `yaml:"encrypted_regex"`
	UnencryptedCommentRegex string `yaml:"unencrypted_comment_regex"`
	EncryptedCommentRegex   string `yaml:"encrypted_comment_regex"`

	// At is the time of LastModified.
	At time.Time `yaml:"-"`
	// Node is the mapping.
	Node *yaml.Node `yaml:"-"`
}

// MetadataIn is the node of the mapping in a document; nil where there is none.
func MetadataIn(root *yaml.Node) *yaml.Node {
	n := document.Lookup(root, Field)
	if n == nil || n.Kind != yaml.MappingNode || document.Lookup(n, "mac") == nil || document.Lookup(n, "version") == nil {
		return nil
	}
	return n
}

var version = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)

// defaultSuffix is that of keys that sops leaves as they are where nothing else is said.
const defaultSuffix = "_unencrypted"

// ReadMetadata reads the mapping. No error has a value in it.
func ReadMetadata(n *yaml.Node) (*Metadata, error) {
	m := &Metadata{Node: n}
	if err := n.Decode(m); err != nil {
		return nil, errors.New("is not as sops writes it")
	}
	var err error
	if m.At, err = time.Parse(time.RFC3339, m.LastModified); err != nil {
		return nil, errors.New("lastmodified: want a time, as sops writes it")
	}
	if !version.MatchString(m.Version) {
		return nil, errors.New("version: want the version of sops, like 3.9.0")
	}
	if TypeOf(m.MAC) != "str" {
		return nil, errors.New("mac: want an encrypted value, as sops writes it")
	}
	if len(m.KeyGroups) > 1 && len(m.Age)+len(m.PGP) == 0 {
		return nil, errors.New("key_groups: the key is split over several groups (Shamir), which swell does not put together: use one group")
	}
	if len(m.KeyGroups) == 1 {
		var group Metadata
		if err := m.KeyGroups[0].Decode(&group); err != nil {
			return nil, errors.New("key_groups: is not as sops writes it")
		}
		m.Age, m.PGP = append(m.Age, group.Age...), append(m.PGP, group.PGP...)
	}
	return m, m.checkRules()
}

// checkRules finds more than one rule of what is encrypted, and expressions that do not
// compile.
func (m *Metadata) checkRules() error {
	rules := 0
	for _, rule := range []string{m.UnencryptedSuffix, m.EncryptedSuffix, m.UnencryptedRegex, m.EncryptedRegex, m.UnencryptedCommentRegex, m.EncryptedCommentRegex} {
		if rule != "" {
			rules++
		}
	}
	if rules == 0 {
		m.UnencryptedSuffix = defaultSuffix
	}
	if rules > 1 {
		return errors.New("has more than one rule of what is encrypted")
	}
	for name, rule := range map[string]string{"unencrypted_regex": m.UnencryptedRegex, "encrypted_regex": m.EncryptedRegex,
		"unencrypted_comment_regex": m.UnencryptedCommentRegex, "encrypted_comment_regex": m.EncryptedCommentRegex} {
		if _, err := regexp.Compile(rule); err != nil {
			return fmt.Errorf("%s: is no regular expression", name)
		}
	}
	return nil
}
