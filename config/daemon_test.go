// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
)

func TestReadDaemon(t *testing.T) {
	d, problems := ReadDaemon("/etc/swell/daemon.yaml", []byte(`apiVersion: swell.sh/v1
kind: Daemon
metadata: {name: shop}
spec:
  repository: {url: repo.git, branch: main, poll: 10s, tokenFile: token}
  clusters:
  - {name: sas-1, kubeconfig: kubeconfig}
  - {name: vla-1, kubeconfig: /other/kubeconfig, context: vla}
  - {name: myt-1, kubeconfigEnv: MYT_1_KUBECONFIG}
  - {name: iva-1, context: swell, concurrency: 32}
  - {name: own, inCluster: true}
  kubeconfigDir: kubeconfigs
  allow: [exec, files]
  drift: {schedule: "0 3 * * *", timeZone: Europe/Berlin, jitter: 5m, watch: true, deep: 60}
  health: {listen: ":8080"}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := GitRepository{URL: "/etc/swell/repo.git", Branch: "main", Poll: 10 * time.Second, TokenFile: "/etc/swell/token"}
	if diff := cmp.Diff(want, d.Repository); diff != "" {
		t.Errorf("repository (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]ClusterAccess{
		"sas-1": {Name: "sas-1", Kubeconfig: "/etc/swell/kubeconfig", Context: "sas-1"},
		"vla-1": {Name: "vla-1", Kubeconfig: "/other/kubeconfig", Context: "vla"},
		"myt-1": {Name: "myt-1", KubeconfigEnv: "MYT_1_KUBECONFIG"},
		"iva-1": {Name: "iva-1", Context: "swell", Concurrency: 32},
		"own":   {Name: "own", InCluster: true},
	}, d.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if d.KubeconfigDir != "/etc/swell/kubeconfigs" {
		t.Errorf("folder of kubeconfigs %q", d.KubeconfigDir)
	}
	if diff := cmp.Diff([]Allowance{AllowExec, AllowFiles}, d.Allow); diff != "" {
		t.Errorf("allow (-want +got):\n%s", diff)
	}
	if d.Health.Listen != ":8080" {
		t.Errorf("health %+v", d.Health)
	}
	if d.State != "/etc/swell/state" {
		t.Errorf("state %q", d.State)
	}
	if d.API.Socket != "/etc/swell/state/swell.sock" {
		t.Errorf("socket %q", d.API.Socket)
	}
	if !d.Drift.Watch || d.Drift.Deep != 60 {
		t.Errorf("watch %t, deep %d", d.Drift.Watch, d.Drift.Deep)
	}
	// Berlin puts the clock forward at 2 o'clock on 29 March 2026.
	berlin := d.Drift.Location
	next := d.Drift.Schedule.Next(time.Date(2026, 3, 28, 12, 0, 0, 0, berlin))
	if want := time.Date(2026, 3, 29, 3, 0, 0, 0, berlin); !next.Equal(want) {
		t.Errorf("next %s, want %s", next, want)
	}
}

func TestReadDaemonProblems(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"no repository", `{}`, "d.yaml:4:7: spec.repository.url: missing"},
		{"sandbox", `{repository: {url: x}, sandbox: always}`, `d.yaml:4:39: spec.sandbox: want required, or no such field, got "always"`},
		{"poll", `{repository: {url: x, poll: 1ms}}`, "d.yaml:4:35: spec.repository.poll: want at least 1s, got 1ms"},
		{"typo", `{repo: {url: x}}`, `d.yaml:4:8: spec.repo: unknown field, want one of allow, api, checkers, clusters, drift, endpoints, guard, health, kubeconfigDir, lease, previews, repository, sandbox, secrets, state, web`},
		{"cluster twice", `{repository: {url: x}, clusters: [{name: a, kubeconfig: k}, {name: a, kubeconfig: k}]}`, `spec.clusters[1].name: "a" is there twice`},
		{"no kubeconfig", `{repository: {url: x}, clusters: [{name: a}]}`, "spec.clusters[0].kubeconfig: missing, and so are kubeconfigEnv and spec.kubeconfigDir"},
		{"file and variable", `{repository: {url: x}, clusters: [{name: a, kubeconfig: k, kubeconfigEnv: K}]}`, "spec.clusters[0]: want one of kubeconfig and kubeconfigEnv, got both"},
		{"in the cluster, and elsewhere", `{repository: {url: x}, clusters: [{name: a, inCluster: true, kubeconfig: k}]}`, "d.yaml:4:80: spec.clusters[0].kubeconfig: the cluster is reached with the pod's service account: remove this field, or inCluster"},
		{"in the cluster, by a context", `{repository: {url: x}, clusters: [{name: a, inCluster: true, context: k}]}`, "spec.clusters[0].context: the cluster is reached with the pod's service account"},
		{"health without a port", `{repository: {url: x}, health: {listen: localhost}}`, `d.yaml:4:47: spec.health.listen: "localhost": want an address with a port, like :8080 or 127.0.0.1:8080`},
		{"health at a word", `{repository: {url: x}, health: {listen: "127.0.0.1:http"}}`, `spec.health.listen: "127.0.0.1:http": want an address with a port`},
		{"health at no port", `{repository: {url: x}, health: {listen: ":0"}}`, `spec.health.listen: ":0": want an address with a port`},
		{"health at a bare address", `{repository: {url: x}, health: {listen: "::1:8080"}}`, `spec.health.listen: "::1:8080": want an address with a port`},
		{"content in place of a variable", `{repository: {url: x}, clusters: [{name: a, kubeconfigEnv: "token: s3cr3t"}]}`,
			"d.yaml:4:66: spec.clusters[0].kubeconfigEnv: want the name of an environment variable, like SAS_1_KUBECONFIG"},
		{"concurrency", `{repository: {url: x}, clusters: [{name: a, kubeconfig: k, concurrency: 1000}]}`, "spec.clusters[0].concurrency: want 1 to 400, got 1000"},
		{"allow", `{repository: {url: x}, allow: [exec, file]}`, `d.yaml:4:44: spec.allow[1]: "file": nothing that could be allowed, did you mean "files"?`},
		{"cron zone", `{repository: {url: x}, drift: {schedule: "TZ=0"}}`, `spec.drift.schedule: "TZ=0": want the five fields of a cron line`},
		{"cron zone without a space", `{repository: {url: x}, drift: {schedule: "CRON_TZ=UTC"}}`, "want the five fields of a cron line"},
		{"cron every", `{repository: {url: x}, drift: {schedule: "@every 0s"}}`, "want the five fields of a cron line"},
		{"cron seconds", `{repository: {url: x}, drift: {schedule: "0 0 * * * *"}}`, "want the five fields of a cron line"},
		{"cron fields", `{repository: {url: x}, drift: {schedule: "61 * * * *"}}`, `spec.drift.schedule: "61 * * * *": end of range (61) above maximum (59)`},
		{"cron never", `{repository: {url: x}, drift: {schedule: "0 0 30 2 *"}}`, `spec.drift.schedule: "0 0 30 2 *": a day that never comes`},
		{"lease", `{repository: {url: x}, lease: {namespace: kube_system}}`, `d.yaml:4:49: spec.lease.namespace: "kube_system": want the name of a namespace`},
		{"operator without a name", `{repository: {url: x}, api: {operators: [{emails: [a@b]}]}}`, `spec.api.operators[0]: user "": want the name of a user, each one once`},
		{"operator twice", `{repository: {url: x}, api: {operators: [{user: ann}, {user: ann}]}}`, `spec.api.operators[1]: user "ann": want the name of a user, each one once`},
		{"operator's email", `{repository: {url: x}, api: {operators: [{user: ann, emails: [ann]}]}}`, `spec.api.operators[0]: "ann": want an email address`},
		{"guard objects", `{repository: {url: x}, guard: {unit: {objects: 1001}}}`, "d.yaml:4:54: spec.guard.unit.objects: want 0 to 1000, got 1001"},
		{"guard percent", `{repository: {url: x}, guard: {fleet: {percent: 51}}}`, "d.yaml:4:55: spec.guard.fleet.percent: want 0 to 50, got 51"},
		{"guard below zero", `{repository: {url: x}, guard: {fleet: {objects: -1}}}`, "spec.guard.fleet.objects: want 0 to 1000, got -1"},
		{"zone", `{repository: {url: x}, drift: {timeZone: Mars/Base}}`, `spec.drift.timeZone: "Mars/Base": no such time zone`},
		{"zone of the machine", `{repository: {url: x}, drift: {timeZone: Local}}`, `spec.drift.timeZone: "Local": no such time zone`},
		{"guard floor", `{repository: {url: x}, guard: {fleet: {floor: 1001}}}`, "spec.guard.fleet.floor: want 0 to 1000, got 1001"},
		{"guard units", `{repository: {url: x}, guard: {units: -1}}`, "d.yaml:4:45: spec.guard.units: want 0 to 1000, got -1"},
		{"jitter", `{repository: {url: x}, drift: {jitter: -1s}}`, "spec.drift.jitter: want a duration from 0, got -1s"},
		{"cron macro", `{repository: {url: x}, drift: {schedule: "@daily"}}`, "want the five fields of a cron line"},
		{"cron words", `{repository: {url: x}, drift: {schedule: "a b c d e"}}`, `spec.drift.schedule: "a b c d e": failed to parse int from a`},
		{"cron step", `{repository: {url: x}, drift: {schedule: "*/0 * * * *"}}`, `spec.drift.schedule: "*/0 * * * *": step of range should be a positive number`},
		{"cron empty", `{repository: {url: x}, drift: {schedule: " "}}`, "want the five fields of a cron line"},
		{"cron type", `{repository: {url: x}, drift: {schedule: 5}}`, "spec.drift.schedule: want a string, got the number 5"},
		{"zone by path", `{repository: {url: x}, drift: {timeZone: ../../etc/passwd}}`, "spec.drift.timeZone: "},
		{"poll of days", `{repository: {url: x, poll: 1d}}`, `spec.repository.poll: want a duration like 30s or 1h30m, got "1d"`},
		{"poll below nothing", `{repository: {url: x, poll: -1h}}`, "spec.repository.poll: want at least 1s, got -1h0m0s"},
		{"poll without unit", `{repository: {url: x, poll: 10}}`, "spec.repository.poll: want a duration like 30s or 1h30m, got the number 10"},
		{"huge", `{repository: {url: x}, drift: {jitter: 9999999999h}}`, `spec.drift.jitter: want a duration like 30s or 1h30m, got "9999999999h"`},
		{"cluster without a name", `{repository: {url: x}, clusters: [{kubeconfig: k}]}`, "d.yaml:4:41: spec.clusters[0].name: missing"},
		{"two documents", "{repository: {url: x}}\n---\napiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: z}\nspec: {repository: {url: x}}", "d.yaml:6:1: want exactly one document, of kind Daemon (swell.sh/v1), got another one"},
		{"another kind", "{}\n---\napiVersion: swell.sh/v1\nkind: Deamon", "d.yaml:6:1: want exactly one document, of kind Daemon (swell.sh/v1), got swell.sh/v1 Deamon"},
		{"deep", `{repository: {url: x}, drift: {deep: -1}}`, "spec.drift.deep: want from 0 to 6000 objects a minute, got -1"},
		{"too deep", `{repository: {url: x}, drift: {deep: 6001}}`, "spec.drift.deep: want from 0 to 6000 objects a minute, got 6001"},
		{"helper", `{repository: {url: x}, secrets: {helper: [open-it]}}`, `spec.secrets.helper[0]: "open-it": want the path of a program from the root, like "/usr/local/bin/open-data-key"`},
		{"helper of a tenant", `{repository: {url: x}, secrets: {tenants: [{name: a, helper: [open-it]}]}}`, `spec.secrets.tenants[0].helper[0]: "open-it": want the path of a program`},
		{"tenant twice", `{repository: {url: x}, secrets: {tenants: [{name: a}, {name: a}]}}`, `spec.secrets.tenants[1].name: "a" is there twice`},
		{"tenant without a name", `{repository: {url: x}, secrets: {tenants: [{ageKeyFiles: [""]}]}}`, "spec.secrets.tenants[0].name: missing"},
		{"key file", `{repository: {url: x}, secrets: {tenants: [{name: a, ageKeyFiles: [""]}]}}`, "spec.secrets.tenants[0].ageKeyFiles[0]: want the path of a file"},
		{"duration", `{repository: {url: x}, drift: {jitter: 1d}}`, `spec.drift.jitter: want a duration like 30s or 1h30m, got "1d"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := ReadDaemon("d.yaml", []byte("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: "+c.spec+"\n"))
			if got := problems.String(); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestReadDaemonForm: a mistake of form hid all others of the document.
func TestReadDaemonForm(t *testing.T) {
	_, problems := ReadDaemon("d.yaml", []byte(`apiVersion: swell.sh/v1
kind: Daemon
metadata: {name: x}
spec:
  repository: {ulr: x, poll: 5}
  clusters:
  - {name: 5, kubeconfig: k, concurrency: 1000}
  - {name: a, kubeconfigenv: A}
  - {name: a, kubeconfig: [k]}
  allow: [5, file]
  drift: {jitter: 5, schedule: x}
  guard: {unit: {objects: many}, units: -1}
`))
	want := `d.yaml:5:16: spec.repository.ulr: unknown field, did you mean "url"?
d.yaml:5:30: spec.repository.poll: want a duration like 30s or 1h30m, got the number 5
d.yaml:7:12: spec.clusters[0].name: want a string, got the number 5: write "5"
d.yaml:7:43: spec.clusters[0].concurrency: want 1 to 400, got 1000
d.yaml:8:15: spec.clusters[1].kubeconfigenv: unknown field, did you mean "kubeconfigEnv"?
d.yaml:9:12: spec.clusters[2].name: "a" is there twice
d.yaml:9:27: spec.clusters[2].kubeconfig: want a string, got a list
d.yaml:10:11: spec.allow[0]: want a string, got the number 5: write "5"
d.yaml:10:14: spec.allow[1]: "file": nothing that could be allowed, did you mean "files"?
d.yaml:11:19: spec.drift.jitter: want a duration like 30s or 1h30m, got the number 5
d.yaml:11:32: spec.drift.schedule: "x": want the five fields of a cron line, like "*/10 * * * *"; the time zone has a field of its own
d.yaml:12:27: spec.guard.unit.objects: want a 32-bit integer, got the string "many"
d.yaml:12:41: spec.guard.units: want 0 to 1000, got -1`
	if diff := cmp.Diff(want, problems.String()); diff != "" {
		t.Error(diff)
	}
}

func TestReadGuard(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		want       Guard
	}{
		{"default", ``, DefaultGuard},
		{"empty", `, guard: {}`, DefaultGuard},
		{"some", `, guard: {unit: {objects: 20, floor: 5}, fleet: {percent: 2}, units: 8}`, Guard{Unit: DeletionLimit{20, 10, 5}, Fleet: DeletionLimit{50, 2, 10}, Units: 8}},
		{"zero is no default", `, guard: {unit: {objects: 0, percent: 0, floor: 0}, units: 0}`, Guard{Fleet: DefaultGuard.Fleet}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, problems := ReadDaemon("d.yaml", []byte("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: x}"+c.spec+"}\n"))
			if len(problems) > 0 || d.Guard != c.want {
				t.Errorf("got %+v, %v, want %+v", d, problems, c.want)
			}
		})
	}
}

// TestDeletionLimit: the bounds make sense for a fleet of five objects and for
// one of 500,000. Both had to be exceeded before, so that small fleets, and large
// ones that lost one object of each bundle, never took approval.
func TestDeletionLimit(t *testing.T) {
	unit, fleet := DefaultGuard.Unit, DefaultGuard.Fleet
	for _, c := range []struct {
		limit DeletionLimit
		of    int
		free  int // the most that goes without approval
	}{
		{unit, 1, 3}, {unit, 4, 3}, {unit, 30, 3}, {unit, 40, 4}, {unit, 100, 10}, {unit, 1000, 10}, {unit, 500_000, 10},
		{fleet, 5, 10}, {fleet, 50, 10}, {fleet, 378, 10}, {fleet, 1099, 10}, {fleet, 1100, 11}, {fleet, 5000, 50}, {fleet, 5100, 50}, {fleet, 500_000, 50},
		{DeletionLimit{}, 0, 0}, {DeletionLimit{}, 1_000_000, 0}, {DeletionLimit{Objects: 2, Percent: 50, Floor: 5}, 100, 2},
	} {
		if c.limit.Exceeded(c.free, c.of) || !c.limit.Exceeded(c.free+1, c.of) {
			t.Errorf("%+v of %d objects: %d exceed it: %t, %d: %t", c.limit, c.of, c.free, c.limit.Exceeded(c.free, c.of), c.free+1, c.limit.Exceeded(c.free+1, c.of))
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"replicas", "image", "port", "resources", "config", "image"}
	for got, want := range map[string]string{
		"replicsa":  `, did you mean "replicas"?`,
		"Replicas":  `, did you mean "replicas"?`,
		"imgae":     `, did you mean "image"?`,
		"prot":      `, did you mean "port"?`,
		"something": ", want one of config, image, port, replicas, resources",
	} {
		if text := document.DidYouMean(got, known); text != want {
			t.Errorf("%s: got %q, want %q", got, text, want)
		}
	}
}

func TestDidYouMeanLong(t *testing.T) {
	long := strings.Repeat("x", 8<<20)
	if text := document.DidYouMean(long, []string{long, "x"}) + document.DidYouMean("x", []string{long}); len(text) > 100 {
		t.Errorf("got %d bytes", len(text))
	}
}

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		amount  Amount
		of, get int
	}{
		{Amount{}, 10, 0}, {Amount{Count: 3}, 10, 3}, {Amount{Count: 30}, 10, 10},
		{Amount{Percent: 25}, 10, 2}, {Amount{Percent: 1}, 10, 1}, {Amount{Percent: 100}, 10, 10}, {Amount{Percent: 50}, 0, 0},
	} {
		if got := c.amount.Of(c.of); got != c.get {
			t.Errorf("%+v of %d: got %d, want %d", c.amount, c.of, got, c.get)
		}
	}
}

// TestDaemonChanged: what differs between two configurations is named as in the document.
func TestDaemonChanged(t *testing.T) {
	read := func(spec string) *Daemon {
		t.Helper()
		d, problems := ReadDaemon("d.yaml", []byte("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: a}\nspec: "+spec+"\n"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return d
	}
	before := read(`{repository: {url: x}}`)
	for spec, want := range map[string]string{
		`{repository: {url: x}} # the same`:                                                       "",
		`{repository: {url: x, poll: 30s}, drift: {timeZone: UTC}}`:                               "",
		`{repository: {url: z}, drift: {schedule: "off"}, api: {operators: [{user: a}]}}`:         "repository drift api",
		`{repository: {url: x}, clusters: [{name: a, inCluster: true}], health: {listen: ":80"}}`: "clusters health",
		`{repository: {url: x}, state: elsewhere}`:                                                "state api",
	} {
		if got := strings.Join(before.Changed(read(spec)), " "); got != want {
			t.Errorf("%s: changed %q, want %q", spec, got, want)
		}
	}
}

// TestKeysOfATenant: a tenant that has an entry has its keys and no others, whatever they are.
func TestKeysOfATenant(t *testing.T) {
	common, files := SecretKeys{AgeKeyFiles: []string{"common"}}, SecretKeys{AgeKeyFiles: []string{"own"}}
	helper := SecretKeys{Helper: []string{"open"}}
	secrets := Secrets{SecretKeys: common, Tenants: map[string]SecretKeys{"files": files, "helper": helper, "none": {}}}
	for tenant, want := range map[string]SecretKeys{"": common, "other": common, "files": files, "helper": helper, "none": {}} {
		if diff := cmp.Diff(want, secrets.Of(tenant)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tenant, diff)
		}
	}
}
