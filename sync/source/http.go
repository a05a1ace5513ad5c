// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/smallfile"
)

const (
	maxRefs   = 256 << 20 // bytes of the list of refs, some three million
	maxReason = 1 << 10   // bytes of a refusal that are read
)

type httpSession struct {
	transport.UploadPackSession
	connections *http.Transport
}

func (r *remote) openHTTP(pace *pace) (session, error) {
	auth, err := r.basicAuth()
	if err != nil {
		return nil, err
	}
	// A transport of its own for each session: certificates rotate, and no
	// idle connection is left behind between polls.
	connections := http.DefaultTransport.(*http.Transport).Clone()
	connections.DialContext = pace.dial
	if r.auth.CAFile != "" {
		pem, err := smallfile.Read(r.auth.CAFile)
		if err != nil {
			return nil, err
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in PEM", r.auth.CAFile)
		}
		connections.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	// go-git reads a refusal to its end and puts it into its error as it is,
	// and takes an HTML page for a malformed list of refs.
	client := githttp.NewClient(&http.Client{Transport: gitOnly{connections}})
	endpoint := r.endpoint // redirects change it
	session, err := client.NewUploadPackSession(&endpoint, auth)
	if err != nil {
		return nil, err
	}
	return &httpSession{session, connections}, nil
}

// basicAuth returns nil when there is nothing to log in with.
func (r *remote) basicAuth() (transport.AuthMethod, error) {
	user, password := r.auth.Username, ""
	var secrets config.Redactor
	if r.user != nil {
		password, _ = r.user.Password()
		if user == "" {
			user = r.user.Username()
		}
		secrets.AddLogin(r.user.Username(), password)
	}
	if r.auth.TokenFile != "" {
		token, err := readSecret(r.auth.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("repository.tokenFile: %w", err)
		}
		password = token
	}
	if password != "" {
		secrets.AddLogin(cmp.Or(user, defaultUser), password)
	}
	r.secrets.Store(&secrets)
	if user == "" && password == "" {
		return nil, nil
	}
	return &githttp.BasicAuth{Username: cmp.Or(user, defaultUser), Password: password}, nil
}

// defaultUser is taken with a token that has no user.
const defaultUser = "git"

func (s *httpSession) refs(ctx context.Context) (*packp.AdvRefs, error) {
	refs, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, errEmpty
	}
	return refs, plain(ctx, err)
}

func (s *httpSession) pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	response, err := s.UploadPack(ctx, req)
	if err != nil {
		return nil, plain(ctx, err)
	}
	return response, nil
}

func (s *httpSession) close() { s.connections.CloseIdleConnections() }

// plain drops what go-git and net/http wrap around an error: the repository is
// named already.
func plain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if wrapped, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		err = wrapped.Err // it has no Unwrap
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	} else if _, ok := errors.AsType[net.Error](err); !ok {
		err = fmt.Errorf("malformed answer: %w", err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the server closed the connection: %w", err)
	}
	return cause(ctx, err)
}

// gitOnly lets answers of Git servers through, and redirects.
type gitOnly struct{ http.RoundTripper }

func (g gitOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 3 && res.Header.Get("Location") != "" {
		return res, nil
	}
	want := "application/x-git-upload-pack-advertisement"
	if req.Method == http.MethodPost {
		want = "application/x-git-upload-pack-result"
	}
	got, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && got == want {
		if req.Method != http.MethodPost {
			res.Body = &limited{ReadCloser: res.Body, left: maxRefs}
		}
		return res, nil
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return nil, fmt.Errorf("the server does not speak Git there: status 200 with content type %q", oneLine(got))
	}
	status := fmt.Sprintf("status %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	after := res.Header.Get("Retry-After")
	if after != "" {
		status += fmt.Sprintf(", retry after %q", oneLine(after))
	}
	if got == "text/plain" {
		if reason, err := io.ReadAll(io.LimitReader(res.Body, maxReason)); err == nil && len(reason) > 0 {
			status += fmt.Sprintf(": %q", oneLine(strings.TrimSpace(string(reason))))
		}
	}
	return nil, &Busy{status, afterOf(after, time.Now())}
}

// Busy is an answer of a server that asks to be left alone for a while.
type Busy struct {
	status string
	after  time.Duration
}

func (b *Busy) Error() string { return b.status }

// RetryAfter is for how long; zero: it does not say.
func (b *Busy) RetryAfter() time.Duration { return b.after }

// afterOf is what a header Retry-After means: a number of seconds or a date (RFC 9110, 10.2.3).
// Zero is one that says nothing.
func afterOf(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(max(seconds, 0), int(maxAfter/time.Second))) * time.Second
	}
	end, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return min(max(end.Sub(now), 0), maxAfter)
}

// maxAfter is the longest that a server is left alone because it asks for it.
const maxAfter = time.Hour

// limited fails where io.LimitReader would pretend that the body has ended.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, ErrTooMuch
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// ErrTooMuch means that a server sends more than may be downloaded at a time.
var ErrTooMuch = errors.New("the server sends more than is allowed")
