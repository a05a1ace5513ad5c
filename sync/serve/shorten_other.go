// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package serve

// shorten is the path of a socket where it is short enough.
func shorten(path string) (short string, done func(), err error) {
	if len(path) > longestPath {
		return "", nil, tooLong(path)
	}
	return path, func() {}, nil
}
