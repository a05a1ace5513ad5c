// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package smallfile reads the files that a configuration names: tokens, keys, certificates,
// kubeconfigs. A name may be wrong, and lead to a file of any size.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// How much of a file is read, in bytes. A kubeconfig has some KiB for each of its clusters.
const (
	Most           = 1 << 20
	MostKubeconfig = 16 << 20
)

// Read returns the content of a file of at most Most bytes. An error is a [fs.PathError]; one
// that wraps [fs.ErrPermission] says who may not read what.
func Read(name string) ([]byte, error) { return ReadUpTo(name, Most) }

// ReadUpTo is [Read] with another bound.
func ReadUpTo(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: denied(name)}
	}
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

// denied says which file, or folder on the way to it, this process may not read.
func denied(name string) error {
	missing := "read"
	for {
		info, err := os.Stat(name)
		if err == nil {
			return fmt.Errorf("%w: the user of swell may not %s %s with the mode %s: chown or chmod it; in a pod, set fsGroup",
				fs.ErrPermission, missing, name, info.Mode())
		}
		parent := filepath.Dir(name)
		if parent == name {
			return err
		}
		name, missing = parent, "search"
	}
}
