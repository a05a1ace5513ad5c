// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
)

// asRenderer has the test binary be the process that renders.
const asRenderer = "SWELL_TEST_RENDERER"

func TestMain(m *testing.M) {
	if os.Getenv(asRenderer) != "" {
		os.Exit(renderer())
	}
	os.Exit(m.Run())
}

// renderer does what the ref of a question says.
func renderer() int {
	questions := json.NewDecoder(os.Stdin)
	var first string
	if err := questions.Decode(&first); err != nil {
		return 3
	}
	for asked := 1; ; asked++ {
		var ask Ask
		if err := questions.Decode(&ask); errors.Is(err, io.EOF) {
			return 0
		} else if err != nil {
			return 3
		}
		switch ask.Ref {
		case "hang":
			time.Sleep(time.Hour)
		case "crash":
			panic("oh no\nhere")
		case "eat":
			os.Stderr.WriteString("fatal error: runtime: out of memory\n")
			return 2
		case "nonsense":
			os.Stdout.WriteString("{]\n")
			continue
		case "later":
			os.Stdout.WriteString(`{"Retry": "no network"}` + "\n")
			continue
		case "last":
			os.Stdout.WriteString(`{"Head": "last", "Last": true}` + "\n")
			continue
		case "flood":
			os.Stderr.WriteString(strings.Repeat("far too much\n", 100_000))
			return 2
		case "killed":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "half":
			os.Stdout.WriteString(`{"Text": "ha`)
			return 0
		}
		if err := json.NewEncoder(os.Stdout).Encode(Answer{Head: config.Commit(ask.Ref), Text: strings.Repeat(first, asked)}); err != nil {
			return 3
		}
	}
}

func newRenderer(t *testing.T) *Renderer {
	t.Helper()
	r := &Renderer{First: func(bool) any { return "a" }, Time: time.Minute, ForkTime: time.Minute, Log: slog.New(slog.DiscardHandler), Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asRenderer+"=1")
		return cmd
	}}
	t.Cleanup(r.Close)
	return r
}

// A process answers one question after another. One that ends, says nonsense or nothing is
// replaced, and no answer is taken for that of another question.
func TestRenderer(t *testing.T) {
	r := newRenderer(t)
	good := func(fork bool, want string) {
		t.Helper()
		got, err := r.Render(t.Context(), Ask{Ref: "good", Fork: fork})
		if err != nil || got.Head != "good" || got.Text != want || got.Failed != "" {
			t.Fatalf("%+v, %v; want %q", got, err, want)
		}
	}
	good(false, "a")
	good(false, "aa")
	good(true, "a") // another process
	for _, bad := range []string{"nonsense", "killed", "half"} {
		if got, err := r.Render(t.Context(), Ask{Ref: bad}); err == nil {
			t.Errorf("%s: %+v", bad, got)
		}
		good(false, "a")
		good(false, "aa")
	}
	if got, err := r.Render(t.Context(), Ask{Ref: "crash"}); err != nil || got.Failed != "the program that renders it failed, as the daemon's log says" {
		t.Errorf("%+v, %v", got, err) // what it said is in the log alone
	}
	good(false, "a")
	if got, err := r.Render(t.Context(), Ask{Ref: "later"}); err == nil || err.Error() != "no network" {
		t.Errorf("%+v, %v", got, err)
	}
	good(false, "aaa") // it goes on
	if got, err := r.Render(t.Context(), Ask{Ref: "flood"}); err != nil || got.Failed == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := r.Render(t.Context(), Ask{Ref: "last"}); err != nil || got.Head != "last" {
		t.Errorf("%+v, %v", got, err)
	}
	good(false, "a") // another process
	if got, err := r.Render(t.Context(), Ask{Ref: "eat"}); err != nil || !strings.Contains(got.Failed, "memory") {
		t.Errorf("%+v, %v", got, err)
	}
	r.Time = 200 * time.Millisecond
	if got, err := r.Render(t.Context(), Ask{Ref: "hang"}); err != nil || got.Failed != "rendering it was not done after 200ms" {
		t.Errorf("%+v, %v", got, err)
	}
	r.Time = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Render(ctx, Ask{Ref: "hang"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	good(false, "a")
	good(true, "aa") // none of that was its
	r.Command = func() *exec.Cmd { return exec.Command("/nonexistent") }
	r.Close()
	if _, err := r.Render(t.Context(), Ask{Ref: "good"}); err == nil {
		t.Error("no process, and an answer")
	}
}

// A process for forks ends when there is none for a while.
func TestIdleProcessEnds(t *testing.T) {
	r := newRenderer(t)
	r.Idle = time.Millisecond
	if _, err := r.Render(t.Context(), Ask{Ref: "good", Fork: true}); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.theirs.mu.Lock()
		over := r.theirs.process == nil
		r.theirs.mu.Unlock()
		if over {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("it is still there")
		}
	}
}
