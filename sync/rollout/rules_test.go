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
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
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
//	  adopt PATH ADOPTION
//	  clusters NAME...                  those of the fleet
//	mask NAME [KEY=VALUE...]            see where; "mask NAME gone" ends it
//	window NAME deny|allow SCHEDULE DURATION [KEY=VALUE...]  cron fields with "_" between
//	gate WAVE KIND [VALUE]              approval, after PATH, window SCHEDULE/DURATION, http [start|patient], job NAME,
//	                                    prometheus
//	silent POLICY [limit=] [after=], revert
//	tiers TIER..., tier PATH NUMBER, budget [failedUnits=] [units=] [unitsPerTarget=]
//	order VERB [by=] [reason=] [to=COMMIT] [unit=] [target=] [tenant=] [wave=] [until=DURATION] [digest=UNIT]  digest: of what the unit asks for
//	authors NAME...                     who wrote what the commit brings
//	renamed PATH PATH TARGET...         the second unit has the objects of the first there
//	lift VERB                           ends the standing orders
//	answer UNIT yes|no|none [REASON]    to the last question of the unit
//	asked UNIT [NAME=VALUE ...]         the last plan has a question of it, with such values
//	asks NUMBER                         gates that wait for approval
//	decide                              the indented lines are all actions
//	  KIND UNIT TARGET [DIGEST] WHY [prune]
//	wake DURATION|never                 of the last plan, from now
//	RESULT UNIT TARGET [pruned] [step=NAME] [overwrote] [REASON]  outcome of the last action there
//	                                    vanished: Git does not have its commit any more
//	+DURATION                           lets time pass
//	clock +DURATION, clock -DURATION    sets the clock
//	restart                             through JSON, as it would be stored
//	found UNIT TARGET                   see State.SetFound
//	event UNIT TARGET DURATION        see State.Requeue: from then on
//	watched UNIT TARGET
//	doubt UNIT TARGET                 see State.Doubt
//	dips|ails UNIT TARGET             see Unit.Dips and Unit.Ails
//	proves UNIT TARGET yes|no         see State.Proves
//	told KIND NUMBER [COMMIT]         transitions so far, and the commit of the last one
//	settle                              all goes well until nothing is left to do
//	status|reason|blocked UNIT REGEXP
//	good UNIT TARGET DIGEST
//	left UNIT TARGET [TEXT]             the text about leftovers there
//	gone UNIT [TARGET]
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := &script{
				t: t, file: file, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), tiers: map[config.UnitPath]int{}, asked: map[config.UnitPath]Question{}, reported: map[string][]Transition{},
				labels: map[config.TargetName]map[string]string{}, last: map[object.UnitTarget]Action{},
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
	agenda Agenda
	plan   Plan                         // with what is due of all units
	last   map[object.UnitTarget]Action // the last action planned for a place
	// What goes into each commit's Wanted:
	bounds   Bounds
	standing order.Standing
	tiers    map[config.UnitPath]int
	asked    map[config.UnitPath]Question
	reported map[string][]Transition
	found    []object.UnitTarget
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
	if a.Job != "" {
		words = append(words, a.Job)
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
	case "unit", "needs", "frozen", "clusters", "withheld", "adopt":
		s.document(verb, rest)
	case "authors":
		s.want.Authors = rest
	case "unreleased":
		s.want.Unreleased = map[config.UnitPath][]string{config.UnitPath(rest[0]): rest[1:]}
	case "renamed":
		if s.want.Renamed == nil {
			s.want.Renamed = map[object.UnitTarget]config.UnitPath{}
		}
		for _, name := range rest[2:] {
			s.want.Renamed[object.UnitTarget{Unit: config.UnitPath(rest[1]), Target: config.TargetName(name)}] = config.UnitPath(rest[0])
		}
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
	case "mask", "window", "gate", "silent", "revert", "tiers", "tier", "budget", "order", "lift", "answer", "asked":
		s.bound(verb, rest)
	case "restart":
		s.state, s.agenda = reload(s.t, &s.state), Agenda{}
	case "dips", "ails":
		u, name := s.state.Units[config.UnitPath(rest[0])], config.TargetName(rest[1])
		if u.Dips(name) != (verb == "dips") || u.Ails(name) != (verb == "ails") {
			s.fatalf("dips: %t, ails: %t", u.Dips(name), u.Ails(name))
		}
	case "proves":
		_, proves := s.state.Proves(object.UnitTarget{Unit: config.UnitPath(rest[0]), Target: config.TargetName(rest[1])})
		if proves != (rest[2] == "yes") {
			s.fatalf("proves: %t", proves)
		}
	case "told":
		got := s.reported[rest[0]]
		if len(got) != s.number(rest[1]) {
			s.fatalf("%d times %s, want %s", len(got), rest[0], rest[1])
		}
		if len(rest) > 2 && string(got[len(got)-1].Commit) != rest[2] {
			s.fatalf("%s of commit %s, want %s", rest[0], got[len(got)-1].Commit, rest[2])
		}
	case "asks":
		if got := len(s.state.Asks()); got != s.number(rest[0]) {
			s.fatalf("%d gates wait for approval, want %s", got, rest[0])
		}
	case "found":
		s.found = append(s.found, object.UnitTarget{Unit: config.UnitPath(rest[0]), Target: config.TargetName(rest[1])})
		s.state.SetFound(s.found)
	case "event", "watched", "doubt":
		s.notice(verb, rest)
	case "settle":
		s.settle()
	case "clock":
		s.now = s.now.Add(s.duration(rest[0]))
		s.state.Shift(s.duration(rest[0]))
	case "status", "reason", "blocked", "good", "left", "gone":
		s.look(verb, rest)
	default:
		if verb[0] == '+' {
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
	case "adopt":
		u.Adopt = config.Adoption(rest[1])
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
			u.Targets[config.TargetName(name)] = WantedTarget{Labels: labels, Objects: 10, Digest: object.Digest(strings.Trim(digest, "-"))}
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
		case "maxObjects":
			w.MaxObjects = s.number(value)
		case "share":
			w.Share = s.number(value)
		case "targets":
			w.Targets = targetNames(value)
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
	s.want.Bounds = s.bounds
	s.want.Order(s.standing)
	for path, tier := range s.tiers {
		if u := s.want.Units[path]; u != nil {
			u.Tier = tier
		}
	}
	defer func() {
		for _, q := range s.plan.Questions {
			s.asked[q.Unit] = q
		}
	}()
	s.plan = s.agenda.all(s.state.Decide(s.want, s.now))
	for _, tr := range s.plan.Transitions {
		s.reported[tr.Kind] = append(s.reported[tr.Kind], tr)
	}
	for _, a := range s.plan.Actions {
		at := object.UnitTarget{Unit: a.Unit, Target: a.Target}
		s.last[at] = a
		s.state.Begins(at)
	}
}

func (s *script) notice(verb string, rest []string) {
	at := object.UnitTarget{Unit: config.UnitPath(rest[0]), Target: config.TargetName(rest[1])}
	if verb == "doubt" {
		s.state.Doubt(at)
		return
	}
	if verb == "watched" {
		s.state.Watch(map[object.UnitTarget]bool{at: true})
		return
	}
	s.state.Requeue(at, s.now.Add(s.duration(rest[2])))
}

func (s *script) outcome(verb string, rest []string) {
	if len(rest) < 2 {
		s.fatalf("unknown line")
	}
	at := object.UnitTarget{Unit: config.UnitPath(rest[0]), Target: config.TargetName(rest[1])}
	o := Outcome{Action: s.last[at], Result: Result(verb)}
	if verb == "vanished" { // "gone" asks whether a unit is
		o.Result = Gone
	}
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
	if len(reason) > 0 && reason[0] == "overwrote" {
		o.Overwrote, reason = true, reason[1:]
	}
	o.Reason = strings.Join(reason, " ")
	for _, tr := range s.state.Record(o, s.now) {
		s.reported[tr.Kind] = append(s.reported[tr.Kind], tr)
	}
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
	if verb == "left" {
		if got, want := u.Targets[config.TargetName(rest[1])].Left, strings.Join(rest[2:], " "); got != want {
			s.fatalf("left is %q, want %q", got, want)
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

// bound is a line about what keeps releases from writing.
func (s *script) bound(verb string, rest []string) {
	switch verb {
	case "mask":
		s.bounds.Masks = slices.DeleteFunc(slices.Clone(s.bounds.Masks), func(m Mask) bool { return m.Name == rest[0] })
		if len(rest) == 1 || rest[1] != "gone" {
			s.bounds.Masks = append(s.bounds.Masks, Mask{Name: rest[0], Where: where(rest[1:])})
		}
	case "window":
		s.bounds.Windows = append(s.bounds.Windows, Window{Name: rest[0], Deny: rest[1] == "deny", Time: s.timetable(rest[2], rest[3]), Where: where(rest[4:])})
	case "gate":
		i := slices.IndexFunc(s.spec.Waves, func(w config.Wave) bool { return w.Name == rest[0] })
		s.spec.Waves[i].Gates = append(s.spec.Waves[i].Gates, s.gate(rest[1], strings.Join(rest[2:], " ")))
	case "silent":
		p := pairs(rest[1:])
		s.spec.Unreachable = config.Unreachable{Policy: config.UnreachablePolicy(rest[0]), After: time.Minute}
		if p["limit"] != "" {
			s.spec.Unreachable.Limit = s.amount(p["limit"])
		}
		if p["after"] != "" {
			s.spec.Unreachable.After = s.duration(p["after"])
		}
	case "revert":
		s.spec.FastRevert = true
	case "tiers":
		s.bounds.Release.Tiers = rest
	case "tier":
		s.tiers[config.UnitPath(rest[0])] = s.number(rest[1])
	case "budget":
		p := pairs(rest)
		if text, ok := p["failedUnits"]; ok {
			n := s.number(text)
			s.bounds.Release.Budget.FailedUnits = &n
		}
		if text, ok := p["units"]; ok {
			s.bounds.Release.Budget.Units = s.number(text)
		}
		if text, ok := p["unitsPerTarget"]; ok {
			s.bounds.Release.Budget.UnitsPerTarget = s.number(text)
		}
	case "order":
		s.order(rest)
	case "lift":
		s.standing = slices.DeleteFunc(slices.Clone(s.standing), func(o order.Order) bool { return o.Verb == order.Verb(rest[0]) })
	case "answer":
		kind := map[string]AnswerKind{"yes": Yes, "no": No, "none": NoAnswer}[rest[1]]
		s.state.Answer(Answer{Question: s.asked[config.UnitPath(rest[0])], Kind: kind, Reason: strings.Join(rest[2:], " ")}, s.now)
	case "asked":
		if !slices.ContainsFunc(s.plan.Questions, func(q Question) bool { return q.Unit == config.UnitPath(rest[0]) }) {
			s.fatalf("the plan has no question of %s", rest[0])
		}
		for name, want := range pairs(rest[1:]) {
			if got := s.asked[config.UnitPath(rest[0])].Values[name]; got != want {
				s.fatalf("%s is %q, want %q", name, got, want)
			}
		}
	}
}

func (s *script) order(rest []string) {
	p := pairs(rest[1:])
	o := order.Order{Seq: int64(s.line), At: s.now, By: "ann", Verb: order.Verb(rest[0]), Reason: p["reason"], To: p["to"],
		Scope: order.Scope{Unit: config.UnitPath(p["unit"]), Target: config.TargetName(p["target"]), Tenant: p["tenant"], Wave: p["wave"]}}
	if p["by"] != "" {
		o.By = p["by"]
	}
	if p["until"] != "" {
		o.Until = s.now.Add(s.duration(p["until"]))
	}
	if p["digest"] != "" {
		for _, ask := range s.state.Asks() {
			if string(ask.Unit) == p["digest"] {
				o.Digest = ask.Digest
			}
		}
		if o.Digest == "" {
			s.fatalf("%s asks for nothing", p["digest"])
		}
	}
	if o.Verb.Stands() {
		s.standing = append(slices.Clip(s.standing), o)
		return
	}
	s.state.Obey(o, s.want, s.now)
}

func where(words []string) (w config.Where) {
	for key, value := range pairs(words) {
		values := strings.Split(value, ",")
		switch key {
		case "targets":
			w.Targets = targetNames(value)
		case "units":
			for _, path := range values {
				w.Units = append(w.Units, config.UnitPath(path))
			}
		case "waves":
			w.Waves = values
		case "tenants":
			w.Tenants = values
		default:
			w.Match.Labels = map[string][]string{key: values}
		}
	}
	return w
}

func targetNames(text string) (names []config.TargetName) {
	for _, name := range strings.Split(text, ",") {
		names = append(names, config.TargetName(name))
	}
	return names
}

func (s *script) gate(kind, value string) config.Gate {
	switch kind {
	case "approval":
		gate := &config.ApprovalGate{Expires: 24 * time.Hour}
		if value != "" {
			gate.By = strings.Split(value, ",")
		}
		return config.Gate{Approval: gate}
	case "after":
		return config.Gate{After: &config.AfterGate{Unit: config.UnitPath(value)}}
	case "window":
		schedule, duration, _ := strings.Cut(value, "/")
		table := s.timetable(schedule, duration)
		return config.Gate{Window: &table}
	case "http":
		gate := &config.HTTPGate{Endpoint: "ci", Start: value == "start", Every: 30 * time.Second, Timeout: 10 * time.Minute}
		if value == "patient" {
			gate.Timeout = 0
		}
		return config.Gate{HTTP: gate}
	case "job":
		return config.Gate{Job: &config.JobGate{Name: value}}
	case "prometheus":
		return config.Gate{Prometheus: &config.PrometheusGate{Endpoint: "prom", Query: "errors", Every: 30 * time.Second, Tolerate: time.Minute}}
	}
	s.fatalf("no such gate")
	return config.Gate{}
}

func (s *script) timetable(schedule, duration string) config.Timetable {
	return config.Timetable{Schedule: strings.ReplaceAll(schedule, "_", " "), Duration: s.duration(duration)}
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
	if err != nil {
		s.fatalf("%v", err)
	}
	return n
}
