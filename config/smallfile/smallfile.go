// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package smallfile reads the files that a configuration names: tokens, keys, certificates,
// kubeconfigs. A name may be wrong, and lead to a file of any size.
package smallfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// How much of a file is read, in bytes. A kubeconfig has some KiB for each of its clusters.
const (
	Most           = 1 << 20
	MostKubeconfig = 16 << 20
)

// Read returns the content of a file of at most Most bytes. An error is a [fs.PathError].
func Read(name string) ([]byte, error) { return ReadUpTo(name, Most) }

// ReadUpTo is [Read] with another bound.
func ReadUpTo(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("larger than %d MiB: it is not what is to be read here", most>>20)}
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}
