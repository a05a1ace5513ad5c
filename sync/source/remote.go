// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/swell-sh/swell/config"
)

// Auth says how to log in and whom to trust. The files are read at each fetch,
// so what is in them can be rotated.
type Auth struct {
	// Username for http. Empty is the one in the URL, or else "git", which
	// GitHub, GitLab and Gitea take with any token.
	Username string

	// TokenFile holds the token or password for http, on its first line. It
	// wins over a password in the URL.
	TokenFile string

	// CAFile holds certificates in PEM that are trusted besides those of the
	// system, for https.
	CAFile string

	// SSHKeyFile holds a private key without a passphrase, for ssh.
	SSHKeyFile string

	// KnownHostsFile holds the keys of servers as OpenSSH writes them, for
	// ssh. A server that is not in it is refused.
	KnownHostsFile string
}

// address is a URL taken apart.
type address struct {
	name     string // for messages: no user of http, no password, no query
	local    string // the path, when it is on this machine
	endpoint transport.Endpoint
	user     *url.Userinfo // of http; endpoint has none, so go-git cannot print it
}

// parseURL never quotes what it was given: it may hold a password.
func parseURL(raw string) (address, error) {
	if raw == "" {
		return address{}, errors.New("no URL of a repository")
	}
	endpoint, err := transport.NewEndpoint(raw)
	if err != nil {
		return address{}, errors.New("URL of the repository: malformed")
	}
	at := address{endpoint: *endpoint}
	switch endpoint.Protocol {
	case "file":
		at.local = filepath.FromSlash(endpoint.Path)
		at.name = at.local
		if endpoint.Host != "" && endpoint.Host != "localhost" {
			return at, fmt.Errorf("file://%s/: want an absolute path like file:///srv/repo.git", endpoint.Host)
		}
		return at, nil
	case "http", "https":
		if endpoint.User != "" || endpoint.Password != "" {
			at.user = url.UserPassword(endpoint.User, endpoint.Password)
		}
		at.endpoint.User, at.endpoint.Password = "", ""
	case "ssh":
		if endpoint.Password != "" {
			return at, errors.New("URL of the repository: a password for ssh is not supported; use a key")
		}
		if endpoint.User == "" {
			at.endpoint.User = "git"
		}
		// ssh://host/~user/path means a path in a home folder.
		if strings.HasPrefix(endpoint.Path, "/~") {
			at.endpoint.Path = endpoint.Path[1:]
		}
	default:
		return at, fmt.Errorf("URL of the repository: scheme %q is not supported; want http, https, ssh or a path", endpoint.Protocol)
	}
	if endpoint.Host == "" {
		return at, errors.New("URL of the repository: no host")
	}
	shown := at.endpoint
	shown.Path, _, _ = strings.Cut(shown.Path, "?")
	at.name = shown.String()
	return at, nil
}

// remote is a repository on a server.
type remote struct {
	address
	auth Auth

	// secrets were read for the session opened last, and are cut out of
	// messages: servers like to repeat what they were sent.
	secrets atomic.Pointer[config.Redactor]
}

func newRemote(at address, auth Auth) (*remote, error) {
	if at.endpoint.Protocol == "ssh" && (auth.SSHKeyFile == "" || auth.KnownHostsFile == "") {
		return nil, errors.New("ssh needs a file with a private key and one with known hosts")
	}
	return &remote{address: at, auth: auth}, nil
}

// session is one conversation with a server: it says what its branches are,
// and then sends one pack, or none.
type session interface {
	refs(context.Context) (*packp.AdvRefs, error)
	pack(context.Context, *packp.UploadPackRequest) (io.ReadCloser, error)
	close()
}

// conversation is a session with the pace that its server is held to.
type conversation struct {
	session
	pace *pace
}

// converse begins a conversation.
func (s *Source) converse(ctx context.Context) (*conversation, error) {
	pace := newPace(patience{s.cfg.Stall, s.cfg.slow, s.cfg.prepare})
	s.talking.Store(pace)
	session, err := s.remote.open(ctx, pace)
	if err != nil {
		return nil, pace.explain(ctx, err)
	}
	return &conversation{session, pace}, nil
}

func (r *remote) open(ctx context.Context, pace *pace) (session, error) {
	if r.endpoint.Protocol == "ssh" {
		return r.openSSH(ctx, pace)
	}
	return r.openHTTP(pace)
}

// readSecret returns the first line of a file.
func readSecret(path string) (string, error) {
	secret, err := readLine(path)
	if err == nil && secret == "" {
		err = fmt.Errorf("%s: empty", path)
	}
	return secret, err
}

// tip returns the commit that a branch is at, and the name of the branch: the
// one that HEAD names when branch is empty.
func tip(refs *packp.AdvRefs, branch string) (plumbing.ReferenceName, plumbing.Hash, error) {
	if len(refs.Shallows) > 0 {
		return "", plumbing.ZeroHash, errors.New("the repository on the server is a shallow clone, which has no full history")
	}
	name := plumbing.NewBranchReferenceName(branch)
	if branch == "" {
		var err error
		if name, err = headBranch(refs); err != nil {
			return "", plumbing.ZeroHash, err
		}
	}
	h, ok := refs.References[name.String()]
	if !ok || h.IsZero() {
		return name, h, fmt.Errorf("branch %q: %w", name.Short(), ErrBranchGone)
	}
	return name, h, nil
}

func headBranch(refs *packp.AdvRefs) (plumbing.ReferenceName, error) {
	for _, symbolic := range refs.Capabilities.Get(capability.SymRef) {
		if target, ok := strings.CutPrefix(symbolic, "HEAD:"); ok {
			name := plumbing.ReferenceName(target)
			if !name.IsBranch() || name.Validate() != nil {
				return "", fmt.Errorf("HEAD is at %q, which is not a branch; name the branch to follow", target)
			}
			return name, nil
		}
	}
	if refs.Head == nil {
		return "", fmt.Errorf("HEAD: %w; name the branch to follow", ErrBranchGone)
	}
	return "", errors.New("HEAD is at a commit and not at a branch; name the branch to follow")
}

// request asks for one commit with its whole history, less what haves have.
func request(refs *packp.AdvRefs, want plumbing.Hash, haves []plumbing.Hash) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	if refs.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	req.Wants = []plumbing.Hash{want}
	req.Haves = haves
	return req, nil
}

// hide hides what the server was sent to let us in.
func (r *remote) hide(text string) string { return r.secrets.Load().RedactAnswer(text) }

// message is an error with a text of its own. What it wraps is for errors.Is.
type message struct {
	text string
	err  error
}

func (m *message) Error() string { return m.text }
func (m *message) Unwrap() error { return m.err }
