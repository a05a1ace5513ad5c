// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// TestRules plays the scripts in testdata/rules, one rule each. A script is
// made of lines:
//
//	# a comment; the first one states the rule
//	target NAME [label=value ...]
//	rollout [onFailure=hold]            starts a new list of waves
//	wave NAME [label=value ...] [soak=] [maxConcurrent=] [maxFailures=] [timeout=]
//	commit NAME [held]                  what follows is all that it wants
//	  unit PATH [target=digest ...]     digest "-": placed, renders to nothing
//	  needs PATH TARGET UNIT...
//	  frozen PATH REASON
//	  clusters NAME...                  those of the fleet
//	decide                              the indented lines are all actions
//	  KIND UNIT TARGET [DIGEST] WHY [prune]
//	wake DURATION|never                 of the last plan, from now
//	RESULT UNIT TARGET [pruned] [step=NAME] [REASON]  outcome of the last action there
//	+DURATION, -DURATION                moves the clock
//	restart                             through JSON, as it would be stored
//	event UNIT TARGET DURATION        see Notices: from then on
//	watched UNIT TARGET
//	settle                              all goes well until nothing is left to do
//	status|reason|blocked UNIT REGEXP
//	good UNIT TARGET DIGEST
//	gone UNIT [TARGET]
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := &script{
				t: t, file: file, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
				labels: map[config.TargetName]map[string]string{}, last: map[render.Placed]Action{},
			}
			s.run()
		})
	}
}

type script struct {
	t      *testing.T
	file   string
	line   int
	now    time.Time
	state  State
	spec   *config.Rollout
	labels map[config.TargetName]map[string]string
	want   *Wanted
	plan   Plan
	last   map[render.Placed]Action // the last action planned for a place
}

func (s *script) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s:%d: %s", s.file, s.line, fmt.Sprintf(format, args...))
}

func (s *script) run() {
	content, err := os.Open(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer content.Close()
	var expected []string
	decided := 0 // line of the decide that the expected actions belong to
	compare := func() {
		if decided == 0 {
			return
		}
		var got []string
		for _, a := range s.plan.Actions {
			got = append(got, actionText(a))
		}
		slices.Sort(got)
		slices.Sort(expected)
		if diff := cmp.Diff(expected, got); diff != "" {
			s.t.Fatalf("%s:%d: actions (-want +got):\n%s", s.file, decided, diff)
		}
		expected, decided = nil, 0
	}
	for lines := bufio.NewScanner(content); lines.Scan(); {
		s.line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case decided > 0 && (text[0] == '\t' || text[0] == ' '):
			expected = append(expected, strings.Join(words, " "))
		default:
			compare()
			if words[0] == "decide" {
				decided = s.line
			}
			s.do(words)
		}
	}
	compare()
}

func actionText(a Action) string {
	words := []string{string(a.Kind), string(a.Unit), string(a.Target)}
	if a.Digest != "" {
		words = append(words, string(a.Digest))
	}
	words = append(words, string(a.Why))
	if a.Prune {
		words = append(words, "prune")
	}
	return strings.Join(words, " ")
}

func (s *script) do(words []string) {
	verb, rest := words[0], words[1:]
	switch verb {
	case "target":
		s.labels[config.TargetName(rest[0])] = pairs(rest[1:])
	case "rollout":
		s.spec = &config.Rollout{Name: "default", OnFailure: config.OnFailure(pairs(rest)["onFailure"])}
	case "wave":
		s.spec.Waves = append(s.spec.Waves, s.wave(rest[0], pairs(rest[1:])))
	case "commit":
		s.want = &Wanted{Commit: config.Commit(rest[0]), Units: map[config.UnitPath]*WantedUnit{}}
		if len(rest) > 1 {
			s.want.Held = rest[1]
		}
	case "unit", "needs", "frozen", "clusters", "withheld":
		s.document(verb, rest)
	case "decide":
		s.decide()
	case "wake":
		want := "never"
		if !s.plan.Wake.IsZero() {
			want = s.plan.Wake.Sub(s.now).String()
		}
		if want != rest[0] {
			s.fatalf("wake is %s, want %s", want, rest[0])
		}
	case "restart":
		s.state = reload(s.t, &s.state)
	case "event", "watched":
		s.notice(verb, rest)
	case "settle":
		s.settle()
	case "status", "reason", "blocked", "good", "gone":
		s.look(verb, rest)
	default:
		if verb[0] == '+' || verb[0] == '-' {
			s.now = s.now.Add(s.duration(verb))
			return
		}
		s.outcome(verb, rest)
	}
}

func (s *script) document(verb string, rest []string) {
	if verb == "clusters" {
		s.want.Clusters = map[string]bool{}
		for _, name := range rest {
			s.want.Clusters[name] = true
		}
		return
	}
	path := config.UnitPath(rest[0])
	u := s.want.Units[path]
	if u == nil {
		u = &WantedUnit{Rollout: s.spec, Targets: map[config.TargetName]WantedTarget{}, Needs: map[config.TargetName][]config.UnitPath{}}
		s.want.Units[path] = u
	}
	switch verb {
	case "withheld":
		if s.want.Withheld == nil {
			s.want.Withheld = map[config.UnitPath]string{}
		}
		s.want.Withheld[path] = strings.Join(rest[1:], " ")
	case "frozen":
		u.Frozen = strings.Join(rest[1:], " ")
	case "needs":
		for _, need := range rest[2:] {
			u.Needs[config.TargetName(rest[1])] = append(u.Needs[config.TargetName(rest[1])], config.UnitPath(need))
		}
	default:
		for name, digest := range pairs(rest[1:]) {
			labels, ok := s.labels[config.TargetName(name)]
			if !ok {
				s.fatalf("unknown target %q", name)
			}
			u.Targets[config.TargetName(name)] = WantedTarget{Labels: labels, Digest: render.Digest(strings.Trim(digest, "-"))}
		}
	}
}

func pairs(words []string) map[string]string {
	m := map[string]string{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		m[key] = value
	}
	return m
}

func (s *script) wave(name string, settings map[string]string) config.Wave {
	w := config.Wave{Name: name, Timeout: config.DefaultHealthTimeout}
	for key, value := range settings {
		switch key {
		case "soak":
			w.Soak = s.duration(value)
		case "timeout":
			w.Timeout = s.duration(value)
		case "maxConcurrent":
			w.MaxConcurrent = s.amount(value)
		case "maxFailures":
			w.MaxFailures = s.amount(value)
		default:
			if w.Match.Labels == nil {
				w.Match.Labels = map[string][]string{}
			}
			w.Match.Labels[key] = strings.Split(value, ",")
		}
	}
	return w
}

func (s *script) amount(text string) config.Amount {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil {
		s.fatalf("%v", err)
	}
	if strings.HasSuffix(text, "%") {
		return config.Amount{Percent: n}
	}
	return config.Amount{Count: n}
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.fatalf("%v", err)
	}
	return d
}

func (s *script) decide() {
	s.plan = s.state.Decide(s.want, s.now)
	for _, a := range s.plan.Actions {
		at := render.Placed{Unit: a.Unit, Target: a.Target}
		s.last[at] = a
		delete(s.state.Notices.RequeueAt, at)
	}
}

func (s *script) notice(verb string, rest []string) {
	if s.state.Notices.Watched == nil {
		s.state.Notices = noNotices()
	}
	at := render.Placed{Unit: config.UnitPath(rest[0]), Target: config.TargetName(rest[1])}
	if verb == "watched" {
		s.state.Notices.Watched[at] = true
		return
	}
	s.state.Notices.RequeueAt[at] = s.now.Add(s.duration(rest[2]))
}

func (s *script) outcome(verb string, rest []string) {
	if len(rest) < 2 {
		s.fatalf("unknown line")
	}
	at := render.Placed{Unit: config.UnitPath(rest[0]), Target: config.TargetName(rest[1])}
	o := Outcome{Action: s.last[at], Result: Result(verb)}
	if o.Result == Drifted {
		o.Action = Action{Kind: Sweep, Unit: at.Unit, Target: at.Target}
	}
	if o.Unit == "" {
		s.fatalf("no action was planned for %s on %s", at.Unit, at.Target)
	}
	reason := rest[2:]
	if len(reason) > 0 && reason[0] == "pruned" {
		o.Pruned, reason = true, reason[1:]
	}
	if len(reason) > 0 && strings.HasPrefix(reason[0], "step=") {
		o.Step, reason = strings.TrimPrefix(reason[0], "step="), reason[1:]
	}
	o.Reason = strings.Join(reason, " ")
	s.state.Record(o, s.now)
}

// settle lets everything go well.
func (s *script) settle() {
	for range 1000 {
		s.decide()
		for _, a := range s.plan.Actions {
			s.state.Record(success(a), s.now)
		}
		if len(s.plan.Actions) == 0 {
			if s.plan.Wake.IsZero() {
				return
			}
			s.now = s.plan.Wake
		}
	}
	s.fatalf("does not settle: %+v", s.plan)
}

func success(a Action) Outcome {
	o := Outcome{Action: a, Result: Healthy, Pruned: a.Prune}
	switch a.Kind {
	case Apply:
		o.Result = Applied
	case Remove:
		o.Result = Removed
	}
	return o
}

func (s *script) look(verb string, rest []string) {
	u := s.state.Units[config.UnitPath(rest[0])]
	if verb == "gone" && len(rest) > 1 {
		if u == nil || u.Targets[config.TargetName(rest[1])] != nil {
			s.fatalf("target %s is still there, or the unit is gone", rest[1])
		}
		return
	}
	if verb == "gone" {
		if u != nil {
			s.fatalf("unit is still there: %s", u.Rollout.Status)
		}
		return
	}
	if u == nil {
		s.fatalf("no such unit")
	}
	if verb == "good" {
		if got := u.Targets[config.TargetName(rest[1])].Good; string(got) != rest[2] {
			s.fatalf("good is %q, want %q", got, rest[2])
		}
		return
	}
	got := map[string]string{"status": string(u.Rollout.Status), "reason": u.Rollout.Reason, "blocked": u.Blocked}[verb]
	for obstacle, words := range map[Obstacle]string{ObstacleQuarantine: "is quarantined", ObstacleEmpty: "renders to nothing"} {
		if strings.Contains(u.Blocked, words) != (u.BlockedBy == obstacle) {
			s.fatalf("blocked is %q, by %q", u.Blocked, u.BlockedBy)
		}
	}
	pattern := "^" + strings.Join(rest[1:], " ") + "$"
	if ok, err := regexp.MatchString(pattern, got); err != nil || !ok {
		s.fatalf("%s is %q, want %q (%v)", verb, got, pattern, err)
	}
}

// reload is what a restart sees: what Changed gave at the last time.
func reload(t interface{ Fatal(...any) }, s *State) State {
	loaded := State{Units: map[config.UnitPath]*Unit{}}
	for path, u := range s.Units {
		loaded.Units[path] = unmarshal(t, marshal(t, u))
	}
	return loaded
}

func marshal(t interface{ Fatal(...any) }, u *Unit) []byte {
	row, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func unmarshal(t interface{ Fatal(...any) }, row []byte) *Unit {
	u := &Unit{}
	if err := json.Unmarshal(row, u); err != nil {
		t.Fatal(err)
	}
	return u
}
