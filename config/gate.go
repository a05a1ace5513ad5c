// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"time"
)

// Gate is something that a wave waits for besides the health of its targets. Exactly one
// of its fields is set.
type Gate struct {
	Approval   *ApprovalGate   `json:",omitempty"`
	Prometheus *PrometheusGate `json:",omitempty"`
	Job        *JobGate        `json:",omitempty"`
	HTTP       *HTTPGate       `json:",omitempty"`
	After      *AfterGate      `json:",omitempty"`
	Window     *Timetable      `json:",omitempty"`
}

// ApprovalGate has the wave start when somebody approved its bundles.
type ApprovalGate struct {
	By      []string      // who may; empty is everybody but the authors of the commit
	Expires time.Duration // how long an approval is good for a start
}

// PrometheusGate has a query stay in bounds while the wave soaks.
type PrometheusGate struct {
	Endpoint, Query string
	AtMost, AtLeast *float64
	Every, Tolerate time.Duration
}

// JobGate has a Job of the unit succeed on each target after the soak.
type JobGate struct{ Name string }

// HTTPGate has a URL say yes.
type HTTPGate struct {
	Endpoint, Path string
	Start          bool // before the wave starts, and not after its soak
	Every          time.Duration
	Timeout        time.Duration // zero is never
}

// AfterGate has a target wait for another unit there.
type AfterGate struct{ Unit UnitPath }

// Values of gates where nothing is written.
const (
	defaultApproval = 24 * time.Hour
	defaultEvery    = 30 * time.Second
)

// AtStart says whether the gate is about the start of the wave; else about its end.
func (g *Gate) AtStart() bool {
	return g.Approval != nil || g.After != nil || g.Window != nil || g.HTTP != nil && g.HTTP.Start
}

// Every is how often the gate is asked; zero for one that nobody asks.
func (g *Gate) Every() time.Duration {
	switch {
	case g.Prometheus != nil:
		return g.Prometheus.Every
	case g.HTTP != nil:
		return g.HTTP.Every
	}
	return 0
}

// Word is what the gate is called.
func (g *Gate) Word() string {
	switch {
	case g.Approval != nil:
		return "approval"
	case g.Prometheus != nil:
		return "prometheus"
	case g.Job != nil:
		return "job"
	case g.HTTP != nil:
		return "http"
	case g.After != nil:
		return "after"
	}
	return "window"
}

// placeholders are the names that texts of gates may have as ${name}.
var placeholders = []string{"unit", "name", "tenant", "wave", "clusters", "targets"}

// Expand puts the values in the place of ${name} in the text of a gate.
func Expand(text string, values map[string]string) string {
	var pairs []string
	for _, name := range placeholders {
		pairs = append(pairs, "${"+name+"}", values[name])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// PlaceholderAt is the name of the ${name} that a text begins with; empty when it begins with none.
func PlaceholderAt(text string) string {
	for _, name := range placeholders {
		if strings.HasPrefix(text, "${"+name+"}") {
			return name
		}
	}
	return ""
}

// unknownPlaceholder is the first ${name} in a text that stands for nothing; empty when
// there is none.
func unknownPlaceholder(text string) string {
	_, after, found := strings.Cut(Expand(text, nil), "${")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(after, "}")
	return "${" + name + "}"
}
