// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/swell-sh/swell/config/smallfile"
)

// sshSession talks to git-upload-pack on a server.
//
// go-git's own ssh transport is not used: it shakes hands without a context,
// so a server that accepts and then is silent holds it for ever, and it reads
// ~/.ssh/config, the agent and the environment of whoever runs swell.
type sshSession struct {
	client *ssh.Client
	*ssh.Session
	in      io.WriteCloser
	out     io.Reader
	said    *firstBytes // what it wrote to stderr
	release func() bool
	asked   bool
}

func (r *remote) openSSH(ctx context.Context, pace *pace) (session, error) {
	config, addr, err := r.sshConfig()
	if err != nil {
		return nil, err
	}
	conn, err := pace.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, cause(ctx, err)
	}
	// The connection is closed when ctx ends, which ends everything below
	// whatever it waits for.
	s := &sshSession{said: &firstBytes{}, release: context.AfterFunc(ctx, func() { conn.Close() })}
	c, channels, requests, err := ssh.NewClientConn(conn, addr, config)
	if err != nil {
		s.release()
		conn.Close()
		return nil, cause(ctx, err)
	}
	s.client = ssh.NewClient(c, channels, requests)
	if err := s.start(r.endpoint.Path); err != nil {
		s.close()
		return nil, cause(ctx, err)
	}
	return s, nil
}

func (r *remote) sshConfig() (*ssh.ClientConfig, string, error) {
	key, err := smallfile.Read(r.auth.SSHKeyFile)
	if err != nil {
		return nil, "", fmt.Errorf("repository.sshKeyFile: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, "", fmt.Errorf("repository.sshKeyFile: %s: %w", r.auth.SSHKeyFile, err)
	}
	if _, err := smallfile.Read(r.auth.KnownHostsFile); err != nil { // the library reads without a bound
		return nil, "", fmt.Errorf("repository.knownHostsFile: %w", err)
	}
	hosts, err := knownhosts.NewDB(r.auth.KnownHostsFile)
	if err != nil {
		return nil, "", fmt.Errorf("repository.knownHostsFile: %s: %w", r.auth.KnownHostsFile, err)
	}
	port := r.endpoint.Port
	if port == 0 {
		port = 22
	}
	addr := net.JoinHostPort(strings.Trim(r.endpoint.Host, "[]"), strconv.Itoa(port))
	check := hosts.HostKeyCallback()
	return &ssh.ClientConfig{
		User: r.endpoint.User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		// Only kinds of keys that are known are asked for: else the server may
		// show one of another kind, which looks like a stranger's.
		HostKeyAlgorithms: hosts.HostKeyAlgorithms(addr),
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			err := check(host, remote, key)
			switch {
			case knownhosts.IsHostKeyChanged(err):
				return fmt.Errorf("host key %s of %s is not the one in %s", ssh.FingerprintSHA256(key), host, r.auth.KnownHostsFile)
			case knownhosts.IsHostUnknown(err):
				return fmt.Errorf("host key %s of %s: no such host in %s", ssh.FingerprintSHA256(key), host, r.auth.KnownHostsFile)
			}
			return err
		},
	}, addr, nil
}

func (s *sshSession) start(path string) error {
	var err error
	if s.Session, err = s.client.NewSession(); err != nil {
		return err
	}
	s.Session.Stderr = s.said
	if s.in, err = s.Session.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.Session.StdoutPipe(); err != nil {
		return err
	}
	return s.Session.Start("git-upload-pack " + quote(path))
}

// quote makes a word of a shell, as Git does for the servers that have none
// and take the quotes off themselves.
func quote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

func (s *sshSession) refs(ctx context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(io.LimitReader(s.out, maxRefs))
	if errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && refs.IsEmpty() {
		return nil, errEmpty
	}
	if err != nil {
		return nil, s.because(ctx, err)
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

func (s *sshSession) pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	s.asked = true
	var message bytes.Buffer
	err := errors.Join(
		req.UploadRequest.Encode(&message),
		req.UploadHaves.Encode(&message, false),
		pktline.NewEncoder(&message).EncodeString("done\n"),
	)
	if err == nil {
		_, err = s.in.Write(message.Bytes())
	}
	if err != nil {
		return nil, s.because(ctx, err)
	}
	response := packp.NewUploadPackResponse(req)
	if err := response.Decode(io.NopCloser(s.out)); err != nil {
		return nil, s.because(ctx, err)
	}
	return response, nil
}

// because says what the server wrote to stderr, when that is why it hung up.
func (s *sshSession) because(ctx context.Context, err error) error {
	if errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.in.Close()
		s.Session.Wait() // until all of stderr is here, or ctx ends
	}
	if said := s.said.line(); said != "" && ctx.Err() == nil {
		return fmt.Errorf("the server says %q", said)
	}
	return cause(ctx, fmt.Errorf("malformed answer: %w", err))
}

func (s *sshSession) close() {
	if s.Session != nil {
		if s.in != nil && !s.asked {
			s.in.Write(pktline.FlushPkt) // a polite end: nothing is wanted
		}
		s.Session.Close()
	}
	s.release()
	s.client.Close()
}

// cause is why ctx ended, if it has: that closed the connection.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct {
	mu   sync.Mutex
	text []byte
}

func (f *firstBytes) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = append(f.text, p[:min(len(p), maxReason-len(f.text))]...)
	return len(p), nil
}

func (f *firstBytes) line() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return oneLine(strings.TrimSpace(string(f.text)))
}
