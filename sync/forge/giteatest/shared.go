// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package giteatest

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/swell-sh/swell/testdata/built"
)

// variable names a file with the Server that the test runner started for all packages, as
// JSON. Without it, a package starts its own.
const variable = "SWELL_TEST_GITEA"

// Shared is a Gitea that all tests of a package share, and with the test runner all packages.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
	stop   func()
}

// Server is the running server. Where there is no binary to start it, the test is skipped; in
// CI it fails.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	binary := built.Program(t, "gitea")
	s.once.Do(func() { s.server, s.err = s.find(binary) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func (s *Shared) find(binary string) (*Server, error) {
	if file := os.Getenv(variable); file != "" {
		return read(file)
	}
	dir, err := os.MkdirTemp("", "swell-gitea-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	server, done, err := Launch(ctx, binary, dir)
	s.stop = func() {
		cancel()
		if done != nil {
			<-done
		}
		_ = os.RemoveAll(dir) // of a temporary folder
	}
	return server, err
}

func read(file string) (*Server, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var server Server
	return &server, json.Unmarshal(text, &server)
}

// Stop ends the server that this process started, if it did.
func (s *Shared) Stop() {
	if s.stop != nil {
		s.stop()
	}
}
