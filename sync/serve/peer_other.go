// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package serve

import (
	"errors"
	"net"
)

// peerUID is not known here, so nobody is let in.
func peerUID(*net.UnixConn) (uint32, error) {
	return 0, errors.New("it cannot be told here which user connects to a socket")
}
