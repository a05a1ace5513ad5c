// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Busy means that another process answers at the socket.
type Busy struct{ Path string }

func (e *Busy) Error() string {
	return fmt.Sprintf("spec.api.socket: %s: another process answers there: give each daemon a socket of its own", e.Path)
}

// makeSocket makes the socket, which everybody may reach whom its folder lets in when shared is
// set. Who asks is told by the other end's user. A socket that nobody answers at is one of
// a process that was killed, and is replaced: the lock of the state says that it was not
// this one.
func makeSocket(path string, shared bool) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("spec.api.socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("spec.api.socket: %s: %w", path, cause(err))
	}
	l.SetUnlinkOnClose(false) // under this name it may be another one by then
	mode := fs.FileMode(0o600)
	if shared {
		mode = 0o666
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("spec.api.socket: %w", err), l.Close())
	}
	return peerListener{l}, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("spec.api.socket: %w", err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("spec.api.socket: %s: there is something that is no socket", path)
	}
	conn, err := dial(context.Background(), path)
	if err == nil {
		conn.Close()
		return &Busy{path}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("spec.api.socket: %s: %w", path, err)
	}
	return os.Remove(path)
}

// dialPatience is how long a process may take to accept a connection.
const dialPatience = 5 * time.Second

func dial(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	conn, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "unix", short)
	if err != nil {
		return nil, cause(err)
	}
	return conn, nil
}

// cause is an error of a socket without its address, which may be a short form of it.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// longestPath is how long the path of a socket may be: 104 bytes with the zero at the end
// on the systems that have the least.
const longestPath = 103

// tooLong is the error where no short form is to be had.
func tooLong(path string) error {
	return fmt.Errorf("spec.api.socket: %s: the path of a socket has at most %d bytes here, got %d: set a shorter one", path, longestPath, len(path))
}

// peer is the address of the other end: its user.
type peer struct{ uid uint32 }

func (p peer) Network() string { return "unix" }
func (p peer) String() string  { return peerPrefix + strconv.FormatUint(uint64(p.uid), 10) }

const peerPrefix = "uid "

// uidOf reads what [peer.String] wrote.
func uidOf(address string) (uint32, bool) {
	text, is := strings.CutPrefix(address, peerPrefix)
	uid, err := strconv.ParseUint(text, 10, 32)
	return uint32(uid), is && err == nil
}

// peerListener gives connections whose remote address is the user of the other end.
type peerListener struct{ *net.UnixListener }

type peerConn struct {
	net.Conn
	peer net.Addr
}

func (c peerConn) RemoteAddr() net.Addr { return c.peer }

// Accept implements [net.Listener]. A connection whose user cannot be told is closed.
func (l peerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(conn)
		if err != nil {
			conn.Close()
			continue
		}
		return peerConn{conn, peer{uid}}, nil
	}
}
