// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/checker"
	"github.com/swell-sh/swell/sync/checker/sandbox"
)

// packages of Debian have the real programs.
var packages = map[string]string{"nginx": "nginx-light", "promtool": "prometheus", "amtool": "prometheus-alertmanager", "haproxy": "haproxy", "named-checkconf": "bind9-utils", "sh": "dash"}

func about(program, name, content string) checker.Request {
	return checker.Request{Program: program, File: checker.File{Name: name, Content: content}}
}

// TestRecipes has the real programs judge texts that are good, and texts with one
// mistake, which is found in their own words, at its line.
func TestRecipes(t *testing.T) {
	for program, pkg := range packages {
		if _, err := exec.LookPath(program); err != nil {
			if _, err := lookInSystem(program); err != nil {
				t.Fatalf("%s is missing: install Debian's package %s", program, pkg)
			}
		}
	}
	for _, c := range []struct{ program, file, good, old, new, want string }{
		{"nginx", "nginx.conf", `user www-data;
error_log /dev/stderr;
events {}
http {
  upstream catalog { server catalog.shop:80; server 10.0.0.1; }
  server { listen [::]:80; listen 10.1.1.1:443; location / { proxy_pass http://catalog; } }
}
`, "proxy_pass", "proxi_pass", `6:0 unknown directive "proxi_pass" in nginx.conf:6`},
		{"promtool-rules", "rules.yaml", `groups:
- name: shop
  rules:
  - alert: Down
    expr: up{job="cart"} == 0
    for: 5m
`, "== 0", "== ==", `5:11 rules.yaml: 5:11: group "shop", rule 1, "Down": could not parse expression: 1:19: parse error: unexpected <op:==>`},
		{"promtool-rules", "rules.yaml", "groups:\n- name: shop\n  rules:\n  - {record: a, expr: b}\n", "expr", "exp", "4:0 rules.yaml: yaml: unmarshal errors:; line 4: field exp not found in type rulefmt.RuleNode"},
		{"promtool-config", "prometheus.yml", "global:\n  scrape_interval: 30s\nscrape_configs:\n- job_name: a\n  tls_config: {ca_file: /none/ca.crt}\n  static_configs: [{targets: [\"a:80\"]}]\n", "30s", "30x", `0:0 FAILED: parsing YAML file prometheus.yml: not a valid duration string: "30x"`},
		{"amtool", "alertmanager.yml", "route:\n  receiver: team\nreceivers:\n- name: team\n", "name: team", "name: tam", `0:0 FAILED: undefined receiver "team" used in route`},
		{"haproxy", "haproxy.cfg", `global
  user haproxy
  group haproxy
  stats socket /run/haproxy/admin.sock mode 660
defaults
  mode http
  timeout connect 1s
  timeout client 1s
  timeout server 1s
frontend web
  bind :80
  default_backend cart
backend cart
  server one cart.shop:80
`, "default_backend", "defalt_backend", `12:0 parsing [haproxy.cfg:12] : unknown keyword 'defalt_backend' in 'frontend' section; did you mean 'default_backend' maybe ?`},
		{"named-checkconf", "named.conf", "options {\n  directory \"/var/cache/bind\";\n  recursion no;\n};\nzone \"example.com\" { type primary; file \"example.com\"; };\n", "recursion", "recurson", "3:0 named.conf:3: unknown option 'recurson'"},
		{"sh", "run.sh", "#!/bin/sh\nif true; then\n  rm -rf /\nfi\n", "fi\n", "", `4:0 run.sh: 4: Syntax error: end of file unexpected (expecting "fi")`},
	} {
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			r := (&Runner{}).Until(t.Context())
			if v := r.Judge(about(c.program, c.file, c.good)); len(v.Findings) > 0 {
				t.Errorf("the good one: %+v", v)
			}
			v := r.Judge(about(c.program, c.file, strings.Replace(c.good, c.old, c.new, 1)))
			var got []string
			for _, f := range v.Findings {
				got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Text))
			}
			if diff := cmp.Diff([]string{c.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// script is a checker of the user's own.
func script(t *testing.T, text string) config.CheckerProgram {
	t.Helper()
	file := filepath.Join(t.TempDir(), "check.sh")
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return config.CheckerProgram{Name: "mine", Command: []string{"/bin/sh", "-c", text, "check", "${file}"}}
}

// TestVerdictsAreKept: a text that was judged starts no program, neither in this process
// nor in one after it, until the text, what stands beside it or the program is another.
func TestVerdictsAreKept(t *testing.T) {
	dir := t.TempDir()
	mine := script(t, `grep -q good "$1" || { echo "$1:1: not good"; exit 1; }`)
	judge := func(mine config.CheckerProgram, request checker.Request) (checker.Verdict, int64) {
		kept, err := cache.Open(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = kept.Close() }()
		r := &Runner{Programs: map[string]config.CheckerProgram{"mine": mine}, Cache: kept}
		first := r.Until(t.Context()).Judge(request)
		if second := r.Until(t.Context()).Judge(request); !cmp.Equal(first, second) {
			t.Errorf("%+v, then %+v", first, second)
		}
		return first, r.Count()
	}
	bad := checker.Verdict{Findings: []checker.Finding{{Line: 1, Text: "a:1: not good"}}}
	another := mine
	another.Version = "2"
	private := about("mine", "a", "private")
	private.Private = true
	beside := about("mine", "a", "good")
	beside.Beside = []checker.File{{Name: "b", Content: "x"}}
	for _, c := range []struct {
		name    string
		mine    config.CheckerProgram
		request checker.Request
		want    checker.Verdict
		started int64
	}{
		{"first", mine, about("mine", "a", "good"), checker.Verdict{}, 1},
		{"again", mine, about("mine", "a", "good"), checker.Verdict{}, 0},
		{"another version", another, about("mine", "a", "good"), checker.Verdict{}, 1},
		{"another file beside", mine, beside, checker.Verdict{}, 1},
		{"refused", mine, about("mine", "a", "bad"), bad, 1},
		{"refused again", mine, about("mine", "a", "bad"), bad, 0},
		{"quotes a secret", mine, private, bad, 2}, // not kept
	} {
		if got, started := judge(c.mine, c.request); !cmp.Equal(got, c.want) || started != c.started {
			t.Errorf("%s: %+v after %d programs, want %+v after %d", c.name, got, started, c.want, c.started)
		}
	}
}

// TestStopped: what had to be stopped is refused, and for a while not tried again. The
// program that hangs says nothing: on a busy machine its time is over before it could.
func TestStopped(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		limits       sandbox.Limits
		retry        bool
	}{
		"hangs":  {"sleep 100", "stopped: it was not done after 200ms", sandbox.Limits{Wall: 200 * time.Millisecond}, true},
		"floods": {"while true; do echo flood; done", "stopped: it wrote more than 1 KiB of output; it said: flood; flood", sandbox.Limits{Output: 1 << 10}, false},
		"fails":  {"exit 3", "refused with exit code 3 and no words", sandbox.Limits{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Runner{Programs: map[string]config.CheckerProgram{"mine": script(t, c.script)}, Limits: c.limits}
			v := r.Until(t.Context()).Judge(about("mine", "a", "text"))
			if len(v.Findings) != 1 || !strings.HasPrefix(v.Findings[0].Text, c.want) || v.Retry() != c.retry {
				t.Errorf("%+v", v)
			}
			if again := r.Until(t.Context()).Judge(about("mine", "a", "text")); c.retry && (!cmp.Equal(v, again) || r.Count() != 1) {
				t.Errorf("%+v after %d programs", again, r.Count())
			}
		})
	}
}

// TestEndedBySignal: a program that crashed was "exit code -1 and no words".
func TestEndedBySignal(t *testing.T) {
	p := &program{recipe: &Recipe{}}
	v := p.verdict(about("mine", "a", "text"), sandbox.Result{Exit: -1, Signal: "signal 11 (segmentation fault)"})
	if want := "ended without words by signal 11 (segmentation fault)"; len(v.Findings) != 1 || v.Findings[0].Text != want || v.Retry() {
		t.Errorf("%+v", v)
	}
}

// TestNameIsNoFlag: a text is judged by its content, although its name looks like a flag
// with which the program does something else.
func TestNameIsNoFlag(t *testing.T) {
	r := &Runner{}
	for program, name := range map[string]string{"named-checkconf": "-v.conf", "promtool-rules": "--help", "sh": "-s"} {
		if v := r.Until(t.Context()).Judge(about(program, name, "zone {{{ `")); len(v.Findings) == 0 {
			t.Errorf("%s took %s", program, name)
		}
	}
}

// TestBesideIsNotJudgedInPlace: where a recipe gives the text a name, no other text takes
// its place under that name.
func TestBesideIsNotJudgedInPlace(t *testing.T) {
	mine := script(t, `grep -q good "$1" || { echo "$1:1: not good"; exit 1; }`)
	r := &Runner{Programs: map[string]config.CheckerProgram{"envoy": mine}}
	request := about("envoy", "other.yaml", "bad")
	request.Beside = []checker.File{{Name: "envoy.yaml", Content: "good"}}
	if v := r.Until(t.Context()).Judge(request); len(v.Findings) == 0 {
		t.Error("the text beside was judged in its place")
	}
}

// TestInterrupted: nothing is kept of what an interruption ended.
func TestInterrupted(t *testing.T) {
	r := &Runner{Programs: map[string]config.CheckerProgram{"mine": script(t, "sleep 100")}, Cache: cache.Memory()}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if v := r.Until(ctx).Judge(about("mine", "a", "text")); !v.Retry() || v.Findings[0].Text != "interrupted" {
		t.Errorf("%+v", v)
	}
	if len(r.stopped) > 0 {
		t.Error("it was kept")
	}
}

// TestPatience: nobody waits longer for a program than the patience, and its verdict is there
// afterwards.
func TestPatience(t *testing.T) {
	r := &Runner{Programs: map[string]config.CheckerProgram{"mine": script(t, "sleep 0.2; exit 3")}}
	b := r.Within(t.Context(), time.Millisecond)
	const aside = "takes longer than 1ms: it goes on aside, and the unit stays as it is until then"
	v := b.Judge(about("mine", "a", "text"))
	if !v.Retry() || v.Findings[0].Text != aside {
		t.Errorf("at once: %+v", v)
	}
	for v.Findings[0].Text == aside {
		time.Sleep(10 * time.Millisecond)
		v = b.Judge(about("mine", "a", "text"))
	}
	if v.Retry() || v.Findings[0].Text != "refused with exit code 3 and no words" || r.Count() != 1 {
		t.Errorf("in the end: %+v after %d programs", v, r.Count())
	}
}

// TestWordsAreFitToBeShown: words of a program may hold anything.
func TestWordsAreFitToBeShown(t *testing.T) {
	r := &Runner{Programs: map[string]config.CheckerProgram{"mine": script(t, `printf '\033[31mred\033[0m \007bell \342\200\256 over in %s/a:7:3\n' "$PWD"; head -c 5000 /dev/zero | tr '\0' x; exit 1`)}}
	v := r.Until(t.Context()).Judge(about("mine", "a", strings.Repeat("text\n", 7)))
	if len(v.Findings) != 1 || v.Findings[0].Line != 7 || v.Findings[0].Column != 3 || len(v.Findings[0].Text) > maxText+100 ||
		!strings.HasPrefix(v.Findings[0].Text, `red \abell \u202e over in a:7:3; xxx`) {
		t.Errorf("%+v", v)
	}
}

// TestLinesOfOthers: a program may name lines of anything, such as its own source.
func TestLinesOfOthers(t *testing.T) {
	for said, want := range map[string]checker.Finding{
		"mylint: line 841: oops":        {Text: "mylint: line 841: oops"},
		"a:9: oops":                     {Text: "a:9: oops"},
		"a:4: end of file":              {Line: 4, Text: "a:4: end of file"},
		"b:5: oops":                     {File: "b", Line: 5, Text: "b:5: oops"},
		"oops; mylint, line 841; a:2:1": {Line: 2, Column: 1, Text: "oops; mylint, line 841; a:2:1"},
	} {
		r := &Runner{Programs: map[string]config.CheckerProgram{"mine": script(t, "echo '"+said+"'; exit 1")}}
		request := about("mine", "a", "1\n2\n3")
		request.Beside = []checker.File{{Name: "b", Content: "1\n2\n3\n4\n5\n"}}
		if v := r.Until(t.Context()).Judge(request); !cmp.Equal(v.Findings, []checker.Finding{want}) {
			t.Errorf("%s: %+v", said, v.Findings)
		}
	}
}

// TestOneForEachCore: no more programs run at a time than there are cores.
func TestOneForEachCore(t *testing.T) {
	r := &Runner{Programs: map[string]config.CheckerProgram{"mine": script(t, "sleep 0.05")}}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { r.Until(t.Context()).Judge(about("mine", "a", fmt.Sprint(i))) })
	}
	group.Wait()
	if r.Count() != 20 {
		t.Errorf("%d programs", r.Count())
	}
}

// TestMissing says what to do about a program that there is not.
func TestMissing(t *testing.T) {
	r := (&Runner{Programs: map[string]config.CheckerProgram{
		"gone": {Command: []string{"/none/gone"}}, "deaf": {Command: []string{"/bin/sh"}},
	}}).Until(t.Context())
	for name, want := range map[string]string{
		"ngins": `no program "ngins": name it under checkers in the daemon's configuration or your own, or use one that swell has a recipe for (amtool, envoy,`,
		"deaf":  "no argument of the program /bin/sh has ${file}, so it would not get the text",
		"gone":  `the program /none/gone is not installed here; install it, or name another one`,
	} {
		if id, missing := r.Identity(name); id != "" || !strings.HasPrefix(missing, want) {
			t.Errorf("%q %q", id, missing)
		}
	}
}

// BenchmarkCold is how long a program takes in the sandbox, on all cores.
func BenchmarkCold(b *testing.B) {
	r := (&Runner{}).Until(b.Context())
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if v := r.Judge(about("nginx", "nginx.conf", fmt.Sprintf("# %d %d\nevents {}\n", i, time.Now().UnixNano()))); len(v.Findings) > 0 {
				b.Errorf("%+v", v)
			}
		}
	})
}

// A configuration that requires the sandbox says so of each program.
func TestProgramsTakeTheSandboxOfTheConfiguration(t *testing.T) {
	for setting, want := range map[config.Sandbox]bool{"": false, config.SandboxRequired: true} {
		sh := config.CheckerProgram{Name: "sh", Command: []string{"/bin/sh", "${file}"}}
		r := &Runner{Sandbox: setting, Programs: map[string]config.CheckerProgram{"sh": sh}}
		p := r.program("sh")
		if got := r.command(p, about("sh", "x", "true"), p.recipe.names(about("sh", "x", "true"))).Required; got != want {
			t.Errorf("sandbox %q: required is %t", setting, got)
		}
	}
}
