// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Digest is a content address: the SHA-256 of canonical bytes, in hexadecimal.
// The empty digest means nothing, "not there".
type Digest string

// Short is the abbreviated form for people, 8 digits at most.
func (d Digest) Short() string { return string(d[:min(len(d), 8)]) }

// DigestOf is the digest of content.
func DigestOf(content []byte) Digest {
	sum := sha256.Sum256(content)
	return Digest(hex.EncodeToString(sum[:]))
}

func sumOf(h hash.Hash) Digest { return Digest(hex.EncodeToString(h.Sum(nil))) }
