// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// guarded lets in who has the password, and says to the others what they sent.
func guarded(srv *server, user, password string) {
	srv.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		u, p, ok := r.BasicAuth()
		if ok && u == user && p == password {
			return false
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, "no entry for "+u+" with "+p)
		return true
	})
}

func TestHTTPAuth(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	c.push()
	srv := serve(t, c)
	file := func(content string) string { return write(t, filepath.Join(t.TempDir(), "token"), content) }
	with := func(userinfo string) string { return strings.Replace(srv.url(), "://", "://"+userinfo+"@", 1) }
	for name, test := range map[string]struct {
		cfg            Config
		user, password string
		want           string // of the error; empty is success
	}{
		"token":              {Config{URL: srv.url(), Auth: Auth{TokenFile: file("t0ken\n")}}, "git", "t0ken", ""},
		"token with user":    {Config{URL: srv.url(), Auth: Auth{Username: "ann", TokenFile: file("t0ken")}}, "ann", "t0ken", ""},
		"url":                {Config{URL: with("ann:secret")}, "ann", "secret", ""},
		"url, escaped":       {Config{URL: with("ann:secret%2Fwith%40signs")}, "ann", "secret/with@signs", ""},
		"token in url":       {Config{URL: with("t0ken")}, "t0ken", "", ""},
		"file wins over url": {Config{URL: with("ann:old"), Auth: Auth{TokenFile: file("t0ken")}}, "ann", "t0ken", ""},
		"wrong token":        {Config{URL: srv.url(), Auth: Auth{TokenFile: file("t0ken")}}, "git", "other", `status 401 Unauthorized: "no entry for git with \(hidden\)"$`},
		"wrong in url":       {Config{URL: with("ann:secret%2Fword")}, "ann", "other", `^http://127.0.0.1:\d+/origin.git: fetch: status 401 Unauthorized: "no entry for ann with \(hidden\)"$`},
		"wrong token in url": {Config{URL: with("t0ken")}, "other", "", `"no entry for \(hidden\) with"$`},
		"none":               {Config{URL: srv.url()}, "git", "t0ken", `status 401 Unauthorized`},
		"empty file":         {Config{URL: srv.url(), Auth: Auth{TokenFile: file("\n")}}, "git", "", `token: empty$`},
		"no file":            {Config{URL: srv.url(), Auth: Auth{TokenFile: "/none"}}, "git", "", `open /none: no such file or directory$`},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(srv, test.user, test.password)
			test.cfg.Dir = t.TempDir()
			_, err := follow(t, test.cfg).Fetch(t.Context())
			if test.want != "" {
				checkMessage(t, err, test.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHTTPTokenRotates(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	c.push()
	srv := serve(t, c)
	file := write(t, filepath.Join(t.TempDir(), "token"), "t0ken")
	guarded(srv, "git", "t0ken")
	s := follow(t, Config{URL: srv.url(), Dir: t.TempDir(), Auth: Auth{TokenFile: file}})
	fetch(t, s)
	guarded(srv, "git", "t0ken2")
	if _, err := s.Fetch(t.Context()); err == nil {
		t.Error("the old token works")
	}
	write(t, file, "t0ken2")
	fetch(t, s)
}

// A redirect may move the repository on its server. Another server gets no
// password.
func TestHTTPRedirect(t *testing.T) {
	c := newClone(t)
	want := c.commit("a", "1")
	c.push()
	srv := serve(t, c)
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Header.Get("Authorization"))
		http.NotFound(w, r)
	}))
	defer other.Close()
	cfg := Config{URL: strings.Replace(srv.URL, "://", "://ann:secret@", 1) + "/old.git", Dir: t.TempDir()}
	s := follow(t, cfg)
	to := srv.URL
	srv.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/old.git") {
			http.Redirect(w, r, to+strings.Replace(r.URL.String(), "/old.git", "/origin.git", 1), http.StatusMovedPermanently)
			return true
		}
		return false
	})
	if got := fetch(t, s); got != want {
		t.Errorf("Fetch = %s, want %s", got, want)
	}
	to = strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	_, err := s.Fetch(t.Context())
	checkMessage(t, err, `status 404`)
	if len(leaked) == 0 || leaked[0] != "" {
		t.Errorf("the other server was sent %q", leaked)
	}
}

func TestHTTPS(t *testing.T) {
	c := newClone(t)
	want := c.commit("a", "1")
	c.push()
	plain := serve(t, c)
	tls := httptest.NewUnstartedServer(plain.Config.Handler)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	url := tls.URL + "/origin.git"
	_, err := follow(t, Config{URL: url, Dir: t.TempDir()}).Fetch(t.Context())
	checkMessage(t, err, `certificate`)
	ca := write(t, filepath.Join(t.TempDir(), "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw})))
	if got := fetch(t, follow(t, Config{URL: url, Dir: t.TempDir(), Auth: Auth{CAFile: ca}})); got != want {
		t.Errorf("Fetch = %s, want %s", got, want)
	}
	write(t, ca, "hello")
	_, err = follow(t, Config{URL: url, Dir: t.TempDir(), Auth: Auth{CAFile: ca}}).Fetch(t.Context())
	checkMessage(t, err, `ca.pem: no certificate in PEM$`)
}

func TestSSH(t *testing.T) {
	c := newClone(t)
	want := c.commit("a", "1")
	c.push()
	srv := serveSSH(t)
	url := "ssh://git@" + srv.addr + c.origin
	file := func(content string) string { return write(t, filepath.Join(t.TempDir(), "file"), content) }
	stranger := newKey(t)
	otherKey := serveSSH(t).auth.SSHKeyFile
	known, err := os.ReadFile(srv.auth.KnownHostsFile)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := ssh.ParseRawPrivateKey([]byte(readFile(t, srv.auth.SSHKeyFile)))
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(encrypted, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	endless := strings.Repeat("#\n", 1<<20)
	for name, test := range map[string]struct {
		url  string
		auth Auth
		want string
	}{
		"good":               {url, srv.auth, ""},
		"first kind of key":  {url, Auth{SSHKeyFile: srv.auth.SSHKeyFile, KnownHostsFile: file(srv.knownHost(srv.hosts[0]))}, ""},
		"second kind of key": {url, Auth{SSHKeyFile: srv.auth.SSHKeyFile, KnownHostsFile: file(srv.knownHost(srv.hosts[1]))}, ""},
		"hashed host":        {url, Auth{SSHKeyFile: srv.auth.SSHKeyFile, KnownHostsFile: file(hashedHost(string(known)))}, ""},
		"host key changed":   {url, Auth{SSHKeyFile: srv.auth.SSHKeyFile, KnownHostsFile: file(srv.knownHost(stranger.PublicKey()))}, `^ssh://git@.*: fetch: ssh: handshake failed: host key SHA256:\S+ of 127.0.0.1:\d+ is not the one in \S+$`},
		"host unknown":       {url, Auth{SSHKeyFile: srv.auth.SSHKeyFile, KnownHostsFile: file("")}, `host key SHA256:\S+ of 127.0.0.1:\d+: no such host in \S+$`},
		"no known hosts":     {url, Auth{SSHKeyFile: srv.auth.SSHKeyFile, KnownHostsFile: "/none"}, `/none: no such file or directory$`},
		"key refused":        {url, Auth{SSHKeyFile: otherKey, KnownHostsFile: srv.auth.KnownHostsFile}, `unable to authenticate`},
		"endless hosts":      {url, Auth{SSHKeyFile: srv.auth.SSHKeyFile, KnownHostsFile: file(endless)}, `larger than 1 MiB: `},
		"no key":             {url, Auth{SSHKeyFile: "/none", KnownHostsFile: srv.auth.KnownHostsFile}, `open /none: no such file or directory$`},
		"not a key":          {url, Auth{SSHKeyFile: file("hello"), KnownHostsFile: srv.auth.KnownHostsFile}, `file: ssh: no key found$`},
		"passphrase":         {url, Auth{SSHKeyFile: file(string(pem.EncodeToMemory(block))), KnownHostsFile: srv.auth.KnownHostsFile}, `passphrase protected$`},
		"no repository":      {url + "x", srv.auth, `fetch: the server says "fatal: '/[^"]*x' does not appear to be a git repository"$`},
		"odd path":           {"ssh://git@" + srv.addr + "/a'b;echo!", srv.auth, `the server says "fatal: '/a'b;echo!' does not appear to be a git repository"$`},
	} {
		t.Run(name, func(t *testing.T) {
			s := follow(t, Config{URL: test.url, Dir: t.TempDir(), Auth: test.auth})
			got, err := s.Fetch(t.Context())
			if test.want != "" {
				checkMessage(t, err, test.want)
			} else if err != nil || got != want {
				t.Errorf("Fetch = %s, %v, want %s", got, err, want)
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func hashedHost(line string) string {
	_, key, _ := strings.Cut(line, " ")
	host := strings.Fields(line)[0]
	return knownhosts.HashHostname(host) + " " + key
}

// What the server has to say is in the error, on one line.
func TestSSHServerRefuses(t *testing.T) {
	srv := serveSSH(t)
	srv.stderr = "ERROR: Repository not found.\nPlease make sure you have access.\n\x1b[2J"
	_, err := follow(t, Config{URL: "ssh://" + srv.addr + "/x.git", Dir: t.TempDir(), Auth: srv.auth}).Fetch(t.Context())
	checkMessage(t, err, `fetch: the server says "ERROR: Repository not found. Please make sure you have access. \[2J"$`)
	if errors.Is(err, ErrBranchGone) {
		t.Error("a refusal is taken for a branch that is gone")
	}
	srv.stderr = strings.Repeat("no, ", 10_000)
	_, err = follow(t, Config{URL: "ssh://" + srv.addr + "/x.git", Dir: t.TempDir(), Auth: srv.auth}).Fetch(t.Context())
	checkMessage(t, err, `the server says "no, no, .*\.\.\.$`)
}
