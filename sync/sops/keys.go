// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Keys is where the data keys of files come from. It is safe for concurrent use. Files with identities are read anew
// for each encrypted file, so that keys may come and go while the daemon runs.
type Keys struct {
	config.Secrets
	patience time.Duration // with the helper program; zero is [helperTime]

	mu      sync.Mutex
	answers map[[sha256.Size]byte]*answer // of the helper program, by what it was asked
}

// dataKeySize is that of every data key of sops, AES-256.
const dataKeySize = 32

// maxKeyFile is the most of a file with identities that is read.
const maxKeyFile = 1 << 20

// DataKey is the key that the values of the file are encrypted with, when keys of the
// tenant open it. The file is one of a unit of that tenant.
func (k *Keys) DataKey(ctx context.Context, f *File, tenant string) ([]byte, error) {
	keys, whose, place := k.Of(tenant), "", "secrets"
	if _, own := k.Tenants[tenant]; own {
		whose, place = " of tenant "+tenant, "secrets.tenants"
	}
	key, tried, err := byAge(f, keys.AgeKeyFiles, place)
	if key != nil || err != nil {
		return key, err
	}
	if len(keys.Helper) > 0 {
		return k.ask(ctx, f, keys.Helper)
	}
	return nil, fmt.Errorf("%s: no key%s opens it: it is encrypted for %s%s", f.Name, whose, recipients(f), tried)
}

// byAge looks for an identity in the files that opens the key. tried says why there is
// none; place is where the daemon's configuration names the files.
func byAge(f *File, files []string, place string) (key []byte, tried string, err error) {
	if len(f.Metadata.Age) == 0 {
		return nil, fmt.Sprintf(", and none of these is an age recipient: name a program in %s.helper of the daemon's configuration", place), nil
	}
	if len(files) == 0 {
		return nil, fmt.Sprintf(", and %s.ageKeyFiles of the daemon's configuration names no file", place), nil
	}
	var identities []age.Identity
	for _, file := range files {
		found, err := readIdentities(file)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", f.Name, err)
		}
		identities = append(identities, found...)
	}
	for _, to := range f.Metadata.Age {
		r, err := age.Decrypt(armor.NewReader(strings.NewReader(to.Enc)), identities...)
		if err != nil {
			continue // it is for another one
		}
		key, err = io.ReadAll(io.LimitReader(r, dataKeySize+1))
		if err != nil || len(key) != dataKeySize {
			return nil, "", fmt.Errorf("%s: the data key for %s is damaged", f.Name, to.Recipient)
		}
		return key, "", nil
	}
	return nil, ", and " + strings.Join(files, ", ") + " has none of these keys", nil
}

// readIdentities reads a file of age-keygen, or a private key of SSH. No error has
// anything of it.
func readIdentities(file string) ([]age.Identity, error) {
	r, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("age identities: %w", err)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("age identities: %w", err)
	}
	if bytes.HasPrefix(content, []byte("-----BEGIN")) {
		identity, err := agessh.ParseIdentity(content)
		if err != nil {
			return nil, fmt.Errorf("age identities: %s: is no private key of SSH without a passphrase", file)
		}
		return []age.Identity{identity}, nil
	}
	identities, err := age.ParseIdentities(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("age identities: %s: want lines like AGE-SECRET-KEY-1..., as age-keygen writes them", file)
	}
	return identities, nil
}

const maxNamed = 5

// recipients names who can open the file.
func recipients(f *File) string {
	var names []string
	for _, to := range f.Metadata.Age {
		names = append(names, shortened(to.Recipient))
	}
	for _, to := range f.Metadata.PGP {
		names = append(names, "PGP "+document.Shorten(to.Fingerprint))
	}
	if len(names) == 0 {
		return "keys that are neither age's nor PGP's"
	}
	return document.Some(names, maxNamed)
}

// shortened is a recipient: as a whole, unless it is of a post-quantum key.
func shortened(recipient string) string {
	const longest = 70
	if len(recipient) > longest {
		return document.Shorten(recipient)
	}
	return recipient
}
