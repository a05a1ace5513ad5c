// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wantLoopback fails for a listening TCP socket of one of the processes that
// another machine could reach.
func wantLoopback(t *testing.T, pids map[string]int) {
	if !isDir("/proc/self/net") {
		t.Skip("needs /proc, to see who listens where")
	}
	sockets := listening(t)
	found := 0
	for name, pid := range pids {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			target, _ := os.Readlink(link) // closed since then: no matter
			address, ok := sockets[target]
			if !ok {
				continue
			}
			found++
			if address != "0100007F" { // 127.0.0.1, as the kernel writes it on a little-endian machine
				t.Errorf("%s listens on %s", name, address)
			}
		}
	}
	if want := 3; found != want { // etcd for clients and for peers, kube-apiserver
		t.Errorf("%d listening sockets, want %d", found, want)
	}
}

// listening maps "socket:[INODE]" to the local address, in hexadecimal.
func listening(t *testing.T) map[string]string {
	t.Helper()
	sockets := map[string]string{}
	for _, path := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // no IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			// number, local ADDRESS:PORT, remote, state, ..., the tenth is the inode
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" {
				address, _, _ := strings.Cut(f[1], ":")
				sockets["socket:["+f[9]+"]"] = address
			}
		}
	}
	return sockets
}
