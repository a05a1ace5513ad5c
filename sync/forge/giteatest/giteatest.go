// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package giteatest runs a real Gitea for one test: with users, repositories, forks, pull
// requests and webhooks.
package giteatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Server is a Gitea that listens on loopback. It ends with its test.
type Server struct {
	URL string
	// Admin may do all.
	Admin User

	binary, ini, dir string
}

// User is an account.
type User struct{ Name, Token string }

// startTime is how long a Gitea may take to answer.
const startTime = 2 * time.Minute

// Start runs a Gitea. Where its binary is not there, the test is skipped; in CI it fails.
func Start(t testing.TB) *Server {
	t.Helper()
	binary, source := find(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", port), binary: binary, dir: t.TempDir()}
	s.ini = filepath.Join(s.dir, "app.ini")
	if err := os.WriteFile(s.ini, []byte(s.settings(source, port)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.command(t, "migrate")
	s.Admin = s.user(t, "root-admin", "--admin", "--access-token-scopes", "all")
	s.serve(t)
	return s
}

// find is the binary, and the folder of its sources with templates and locales.
func find(t testing.TB) (binary, source string) {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, none := os.Stat(filepath.Join(dir, "go.mod")); none == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("no go.mod around the test")
		}
		dir = filepath.Dir(dir)
	}
	binary = filepath.Join(dir, "bin", "gitea")
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err == nil {
		source, err = filepath.EvalSymlinks(filepath.Join(dir, "bin", "gitea.src"))
	}
	switch {
	case err == nil:
		return binary, source
	case os.Getenv("CI") != "":
		t.Fatalf("%v: make bin/gitea builds it", err)
	}
	t.Skipf("%v: make bin/gitea builds it", err)
	return "", ""
}

// settings keep the server on this machine: it calls nobody but webhooks on loopback.
func (s *Server) settings(source string, port int) string {
	return fmt.Sprintf(`
APP_NAME = test
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
[repository]
ROOT = %[1]s/repositories
[security]
INSTALL_LOCK = true
SECRET_KEY = for-tests-alone
INTERNAL_TOKEN = eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE3MDAwMDAwMDB9.b-kPVWiUSjZhSW-Tl5N2xSZBrBWcTcUNUpEeJhWL6xY
MIN_PASSWORD_LENGTH = 6
[oauth2]
JWT_SECRET = mDMWJgW2mxAqSHNa-Xb1yH0cCVTD9qVx4LzJtGx1l3Y
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]d
ROOT_URL = http://127.0.0.1:%[2]d/
LOCAL_ROOT_URL = http://127.0.0.1:%[2]d/
STATIC_ROOT_PATH = %[3]s
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false
[queue]
TYPE = channel
[indexer]
ISSUE_INDEXER_TYPE = db
[webhook]
ALLOWED_HOST_LIST = loopback
DELIVER_TIMEOUT = 5
[cron]
ENABLED = false
[cron.update_checker]
ENABLED = false
[service]
DISABLE_REGISTRATION = true
[log]
MODE = file
LEVEL = warn
ROOT_PATH = %[1]s/log
[actions]
ENABLED = false
`, s.dir, port, source)
}

func (s *Server) run(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, append([]string{"--config", s.ini}, args...)...)
	cmd.Env = append(os.Environ(), "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "GITEA_WORK_DIR="+s.dir, "HOME="+s.dir)
	cmd.Dir = s.dir
	return cmd
}

// command runs a command of the binary to its end.
func (s *Server) command(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.run(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("gitea %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *Server) serve(t testing.TB) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "out.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.run(ctx, "web")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	for limit := time.Now().Add(startTime); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(s.URL + "/api/healthz")
		if err == nil {
			if err := answer.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ended:
			limit = time.Time{}
		default:
		}
		if time.Now().After(limit) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("gitea does not answer: %v\n%s", err, text)
		}
	}
}

const password = "for-tests-alone"

// user makes an account with a token.
func (s *Server) user(t testing.TB, name string, more ...string) User {
	t.Helper()
	out := s.command(t, append([]string{"admin", "user", "create", "--username", name, "--password", password, "--email", name + "@example.com",
		"--must-change-password=false", "--access-token"}, more...)...)
	_, token, ok := strings.Cut(out, "Access token was successfully created")
	if i := strings.LastIndexByte(token, ' '); ok && i >= 0 {
		line, _, _ := strings.Cut(token[i+1:], "\n")
		return User{name, line}
	}
	t.Fatalf("no token in %q", out)
	return User{}
}

// User makes an account. Its token may do all, or what scopes say.
func (s *Server) User(t testing.TB, name string, scopes ...string) User {
	t.Helper()
	if len(scopes) == 0 {
		scopes = []string{"all"}
	}
	return s.user(t, name, "--access-token-scopes", strings.Join(scopes, ","))
}

// BotScopes are what the account of swell needs.
var BotScopes = []string{"read:user", "write:issue", "write:repository"}

// Do asks the API. want is the status; out may be nil.
func (s *Server) Do(t testing.TB, as User, method, path string, in, out any) {
	t.Helper()
	if err := s.Try(t.Context(), as, method, path, in, out); err != nil {
		t.Fatal(err)
	}
}

// Try is Do for what may fail.
func (s *Server) Try(ctx context.Context, as User, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		content, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.URL+"/api/v1/"+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "token "+as.Token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, content)
	}
	if out == nil || len(content) == 0 {
		return nil
	}
	return json.Unmarshal(content, out)
}

// Repository makes an empty repository whose branch is main, and returns its path.
func (s *Server) Repository(t testing.TB, owner User, name string) string {
	t.Helper()
	s.Do(t, owner, "POST", "user/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
	return owner.Name + "/" + name
}

// CloneURL is where somebody clones a repository from, with his token.
func (s *Server) CloneURL(as User, project string) string {
	return strings.Replace(s.URL, "://", "://"+as.Name+":"+as.Token+"@", 1) + "/" + project + ".git"
}

// Pull opens a pull request of a branch, or of "user:branch" of a fork, and returns its
// number.
func (s *Server) Pull(t testing.TB, as User, project, head, title string) int {
	t.Helper()
	var made struct{ Number int }
	s.Do(t, as, "POST", "repos/"+project+"/pulls", map[string]any{"head": head, "base": "main", "title": title}, &made)
	return made.Number
}

// Comment is one as the API tells it.
type Comment struct {
	ID   int64
	Body string
	User struct{ Login string }
}

// Comments are those of a pull request.
func (s *Server) Comments(t testing.TB, project string, number int) (all []Comment) {
	t.Helper()
	s.Do(t, s.Admin, "GET", fmt.Sprintf("repos/%s/issues/%d/comments", project, number), nil, &all)
	return all
}

// Status is one as the API tells it.
type Status struct {
	Context, Status, Description string
	TargetURL                    string `json:"target_url"`
}

// Statuses are the newest ones of a commit, by their names.
func (s *Server) Statuses(t testing.TB, project, commit string) map[string]Status {
	t.Helper()
	var all struct{ Statuses []Status }
	s.Do(t, s.Admin, "GET", fmt.Sprintf("repos/%s/commits/%s/status", project, commit), nil, &all)
	by := map[string]Status{}
	for _, one := range all.Statuses {
		by[one.Context] = one
	}
	return by
}
