// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"io/fs"
	"strings"
)

// Refusal is the error for what a tree holds but does not give out, such as a
// symbolic link. Reading again gives the same, as it does for a missing file;
// any other error may pass.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// IsOddName says whether an error is or wraps an [OddName].
func IsOddName(err error) bool {
	var odd OddName
	return errors.As(err, &odd)
}

// MayPass says whether reading again may go well.
func MayPass(err error) bool {
	var refusal Refusal
	return !errors.As(err, &refusal) && !IsOddName(err) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid)
}

// FileProblem is the problem of a file or folder of a tree of files. Of a folder it is
// at what could not be read below it, where the error names that.
func FileProblem(file string, err error) Problem {
	var pathError *fs.PathError
	if errors.As(err, &pathError) && strings.HasPrefix(pathError.Path, file+"/") {
		file = pathError.Path
	}
	return Problem{Position: Position{File: file}, Code: CodeFile, Message: Cause(err).Error(), Retry: MayPass(err)}
}

// Cause is an error of a tree without the path, for messages that name it
// already.
func Cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// OddName is the error for a folder with an entry that cannot be named in a
// path or in a line of text, and says which. Leaving out only that entry would
// give something else than was written.
type OddName struct {
	What string
	// Listed is set when all such entries of the folder are listed all the same.
	Listed bool
}

func (o OddName) Error() string { return o.What }
