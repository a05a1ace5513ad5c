// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/source/gittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gitEnv keeps the git binary away from the configuration of whoever runs the
// tests. Commits of one content and time have one hash.
func gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_AUTHOR_DATE=1700000000 +0200",
		"GIT_COMMITTER_NAME=Con", "GIT_COMMITTER_EMAIL=con@example.com", "GIT_COMMITTER_DATE=1700000100 +0000",
	}
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return gitWith(t, dir, "", args...)
}

func gitWith(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	return strings.TrimSuffix(gitOutput(t, dir, stdin, args...), "\n")
}

// gitOutput returns every byte that git wrote: the last one of a pack may well
// be a line feed.
func gitOutput(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{
		"-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, gitEnv(), strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// clone is a work tree to commit in. Its origin, a bare repository, is what
// sources follow.
type clone struct {
	testing.TB
	dir, origin string
}

func newClone(t testing.TB) *clone {
	t.Helper()
	root := t.TempDir()
	c := &clone{t, filepath.Join(root, "work"), filepath.Join(root, "origin.git")}
	if err := errors.Join(gittest.InitBare(c.origin), gittest.InitFrom(c.dir, c.origin)); err != nil {
		t.Fatal(err)
	}
	return c
}

// writer and committer are those of each commit, at the times that gitEnv has.
var (
	writer    = object.Signature{Name: "Ann", Email: "ann@example.com", When: time.Unix(1700000000, 0).In(time.FixedZone("", 2*60*60))}
	committer = object.Signature{Name: "Con", Email: "con@example.com", When: time.Unix(1700000100, 0).UTC()}
)

// commit writes files, name and content in turn, and commits what is there. An
// empty content removes the file.
func (c *clone) commit(files ...string) config.Commit {
	c.Helper()
	c.change(files)
	hash, err := gittest.CommitBy(writer, committer, c.dir, messageOf(files))
	if err != nil {
		c.Fatal(err)
	}
	return config.Commit(hash)
}

// commitByGit is the same by the git program.
func (c *clone) commitByGit(files ...string) config.Commit {
	c.Helper()
	c.change(files)
	git(c, c.dir, "add", "-A")
	git(c, c.dir, "commit", "-q", "--allow-empty", "-m", messageOf(files))
	return c.head()
}

func messageOf(files []string) string { return "write " + strings.Join(files[:min(1, len(files))], "") }

func (c *clone) change(files []string) {
	c.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(c.dir, files[i])
		if files[i+1] == "" {
			os.Remove(path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			c.Fatal(err)
		}
	}
}

// push makes main of the origin what HEAD is here.
func (c *clone) push() config.Commit {
	c.Helper()
	head := c.head()
	if err := gittest.Push(c.dir, string(head), c.origin); err != nil {
		c.Fatal(err)
	}
	return head
}

// head is the commit of HEAD, read from its file where that says it.
func (c *clone) head() config.Commit {
	c.Helper()
	head, err := os.ReadFile(filepath.Join(c.dir, ".git/HEAD"))
	if branch, ok := strings.CutPrefix(string(head), "ref: "); err == nil && ok {
		head, err = os.ReadFile(filepath.Join(c.dir, ".git", strings.TrimSpace(branch)))
	}
	if commit := strings.TrimSpace(string(head)); err == nil && len(commit) == 40 {
		return config.Commit(commit)
	}
	return config.Commit(git(c, c.dir, "rev-parse", "HEAD"))
}

// server serves the origin over http, with the git binary behind it.
type server struct {
	*httptest.Server
	mu sync.Mutex
	// before sees each request; it answers it itself when it returns true.
	before func(http.ResponseWriter, *http.Request) bool
	seen   []string
}

// execPath is where the programs of git are.
var execPath = sync.OnceValue(func() string {
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(path))
})

func serve(t testing.TB, c *clone) *server {
	t.Helper()
	backend := &cgi.Handler{
		Path:   filepath.Join(execPath(), "git-http-backend"),
		Env:    append(gitEnv(), "GIT_PROJECT_ROOT="+filepath.Dir(c.origin), "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: io.Discard,
	}
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method)
		before := s.before
		s.mu.Unlock()
		if before == nil || !before(w, r) {
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) url() string { return s.URL + "/origin.git" }

// intercept sets what sees requests first; nil is nothing.
func (s *server) intercept(before func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// requests returns the methods of the requests since it was called last: GET
// asks for refs, POST downloads.
func (s *server) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := strings.Join(s.seen, " ")
	s.seen = nil
	return seen
}

// sshServer runs git-upload-pack for whoever has the right key.
type sshServer struct {
	addr   string
	hosts  []ssh.PublicKey // its keys, of two kinds
	auth   Auth
	stderr string // written instead of running anything, when not empty
}

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func serveSSH(t testing.TB) *sshServer {
	t.Helper()
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	private2, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host2, err := ssh.NewSignerFromKey(private2)
	if err != nil {
		t.Fatal(err)
	}
	host := newKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sshServer{addr: listener.Addr().String(), hosts: []ssh.PublicKey{host.PublicKey(), host2.PublicKey()}}
	s.auth = Auth{
		SSHKeyFile:     write(t, filepath.Join(dir, "key"), string(pem.EncodeToMemory(block))),
		KnownHostsFile: write(t, filepath.Join(dir, "known_hosts"), s.knownHost(host.PublicKey())),
	}
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return nil, nil
	}}
	cfg.AddHostKey(host)
	cfg.AddHostKey(host2)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.talk(conn, cfg) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return s
}

func (s *sshServer) knownHost(key ssh.PublicKey) string {
	host, port, _ := net.SplitHostPort(s.addr)
	return fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(key))
}

func (s *sshServer) talk(conn net.Conn, cfg *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		channel, requests, err := ch.Accept()
		if err != nil {
			return
		}
		for req := range requests {
			if req.Type != "exec" {
				req.Reply(false, nil)
				continue
			}
			req.Reply(true, nil)
			var command struct{ Line string }
			ssh.Unmarshal(req.Payload, &command)
			status := struct{ Code uint32 }{0}
			if s.stderr != "" {
				io.WriteString(channel.Stderr(), s.stderr)
				status.Code = 1
			} else {
				cmd := exec.Command("sh", "-c", command.Line) // as sshd does
				cmd.Env = gitEnv()
				cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
				in, _ := cmd.StdinPipe()
				go func() { io.Copy(in, channel); in.Close() }()
				if err := cmd.Run(); err != nil {
					status.Code = 128
				}
			}
			channel.SendRequest("exit-status", false, ssh.Marshal(status))
			channel.Close()
		}
	}
}

func write(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func follow(t testing.TB, cfg Config) *Source {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func fetch(t testing.TB, s *Source) config.Commit {
	t.Helper()
	c, err := s.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// files reads all regular files of a commit.
func files(t testing.TB, s *Source, commit config.Commit) map[string]string {
	t.Helper()
	got, err := readAll(s, commit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func readAll(s *Source, commit config.Commit) (map[string]string, error) {
	tree, err := s.Tree(commit)
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	return got, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := tree.ReadFile(name)
		got[name] = string(content)
		return err
	})
}
