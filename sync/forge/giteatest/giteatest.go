// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package giteatest gives tests a real Gitea: with users, repositories, forks, pull requests
// and webhooks. All tests of a run share one, and keep apart by their users.
package giteatest

import (
	"bytes"
	"context"
	"crypto/rand"
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

// Server is a Gitea that listens on loopback.
type Server struct {
	URL string
	// Admin may do all.
	Admin User
}

// User is an account.
type User struct{ Name, Token string }

// startTime is how long a Gitea may take to answer.
const startTime = 2 * time.Minute

// process is a Gitea that this process runs, with all its files in a folder.
type process struct {
	binary, dir, url string
}

// Launch runs a Gitea until ctx ends, and returns when it answers. done is closed when it
// has ended. All that it writes is in dir.
func Launch(ctx context.Context, binary, dir string) (s *Server, done <-chan struct{}, err error) {
	source, err := filepath.EvalSymlinks(binary + ".src") // with templates and locales
	if err != nil {
		return nil, nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	p := &process{binary: binary, dir: dir, url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	if err := os.WriteFile(p.ini(), []byte(p.settings(source, port)), 0o600); err != nil {
		return nil, nil, err
	}
	if _, err := p.command(ctx, "migrate"); err != nil {
		return nil, nil, err
	}
	s = &Server{URL: p.url}
	if s.Admin, err = p.administrator(ctx); err != nil {
		return nil, nil, err
	}
	done, err = p.serve(ctx)
	return s, done, err
}

// freePort is a port that nobody listens on now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// settings keep the server on this machine: it calls nobody but webhooks on loopback.
func (p *process) settings(source string, port int) string {
	return fmt.Sprintf(`
APP_NAME = test
RUN_MODE = prod
WORK_PATH = %[1]s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
SQLITE_JOURNAL_MODE = WAL
SQLITE_TIMEOUT = 60000
[repository]
ROOT = %[1]s/repositories
[repository.pull-request]
DELAY_CHECK_FOR_INACTIVE_DAYS = 0
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
[git.config]
gc.auto = 0
maintenance.auto = false
`, p.dir, port, source)
}

func (p *process) ini() string { return filepath.Join(p.dir, "app.ini") }

func (p *process) run(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binary, append([]string{"--config", p.ini()}, args...)...)
	cmd.Env = append(os.Environ(), "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "GITEA_WORK_DIR="+p.dir, "HOME="+p.dir)
	cmd.Dir = p.dir
	return cmd
}

// command runs a command of the binary to its end.
func (p *process) command(ctx context.Context, args ...string) (string, error) {
	out, err := p.run(ctx, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gitea %v: %w: %s", args, err, out)
	}
	return string(out), nil
}

const password = "for-tests-alone"

// administrator makes the first account, with a token.
func (p *process) administrator(ctx context.Context) (User, error) {
	const name = "root-admin"
	out, err := p.command(ctx, "admin", "user", "create", "--username", name, "--password", password, "--email", name+"@example.com",
		"--must-change-password=false", "--admin", "--access-token", "--access-token-scopes", "all")
	if err != nil {
		return User{}, err
	}
	_, token, ok := strings.Cut(out, "Access token was successfully created")
	if i := strings.LastIndexByte(token, ' '); ok && i >= 0 {
		line, _, _ := strings.Cut(token[i+1:], "\n")
		return User{name, line}, nil
	}
	return User{}, fmt.Errorf("no token in %q", out)
}

// serve starts the server, and waits until it answers.
func (p *process) serve(ctx context.Context) (done <-chan struct{}, err error) {
	log, err := os.Create(filepath.Join(p.dir, "out.log"))
	if err != nil {
		return nil, err
	}
	cmd := p.run(ctx, "web")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ends is of no interest
		_ = log.Close()
	}()
	for limit := time.Now().Add(startTime); ; time.Sleep(50 * time.Millisecond) {
		err := p.answers(ctx)
		if err == nil {
			return ended, nil
		}
		select {
		case <-ended:
			limit = time.Time{}
		default:
		}
		if time.Now().After(limit) {
			text, _ := os.ReadFile(log.Name())
			return ended, fmt.Errorf("gitea does not answer: %w: %s", err, text)
		}
	}
}

func (p *process) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// User makes an account whose name begins with that, and is that of no other test. Its
// token may do all, or what scopes say.
func (s *Server) User(t testing.TB, name string, scopes ...string) User {
	t.Helper()
	if len(scopes) == 0 {
		scopes = []string{"all"}
	}
	user := User{Name: fmt.Sprintf("%s-%.6s", name, strings.ToLower(rand.Text()))}
	account := map[string]any{"username": user.Name, "email": user.Name + "@example.com", "password": password, "must_change_password": false}
	s.Do(t, s.Admin, "POST", "admin/users", account, nil)
	var token struct{ SHA1 string }
	identify := func(r *http.Request) { r.SetBasicAuth(user.Name, password) }
	wanted := map[string]any{"name": "test", "scopes": scopes}
	if err := s.send(t.Context(), identify, "POST", "users/"+user.Name+"/tokens", wanted, &token); err != nil {
		t.Fatal(err)
	}
	user.Token = token.SHA1
	return user
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
	return s.send(ctx, func(r *http.Request) { r.Header.Set("Authorization", "token "+as.Token) }, method, path, in, out)
}

// send asks the API as whoever identify says.
func (s *Server) send(ctx context.Context, identify func(*http.Request), method, path string, in, out any) error {
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
	identify(request)
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
// number. Gitea takes in what was pushed after the push is over: until then, it knows neither
// branch.
func (s *Server) Pull(t testing.TB, as User, project, head, title string) int {
	t.Helper()
	var made struct{ Number int }
	wanted := map[string]any{"head": head, "base": "main", "title": title}
	for limit := time.Now().Add(startTime); ; time.Sleep(100 * time.Millisecond) {
		err := s.Try(t.Context(), as, "POST", "repos/"+project+"/pulls", wanted, &made)
		if err == nil {
			return made.Number
		}
		if !strings.Contains(err.Error(), ": 404 ") || time.Now().After(limit) {
			t.Fatal(err)
		}
	}
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
