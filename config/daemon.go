// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/swell-sh/swell/config/timezone"

	"github.com/swell-sh/swell/config/document"
)

// Daemon is the configuration of swell run. It is not part of the monorepo:
// it says how to reach what the monorepo only names.
type Daemon struct {
	Repository GitRepository
	// State is the folder of swell's own state.
	State string
	// Clusters by name: those that are named one by one.
	Clusters map[string]ClusterAccess
	// KubeconfigDir is a folder with the kubeconfigs of the other clusters, see
	// [ClusterAccess]. Empty: there are no others.
	KubeconfigDir string
	// Allow is what kubeconfigs may hold although it is refused otherwise.
	Allow []Allowance
	Drift Drift
	Guard Guard
	Lease Lease
	// Endpoints are what gates may ask, by name.
	Endpoints map[string]Endpoint
	API       API
	Secrets   Secrets
	// Checkers are the programs that Checkers of the monorepo name, by that name.
	Checkers map[string]CheckerProgram
	Health   Health
	Web      Web
	Previews Previews
	Sandbox  Sandbox
}

// Health says where the daemon answers whether it is well.
type Health struct {
	Listen string // an address of TCP; empty: nowhere
}

// Secrets is where the keys of encrypted Secrets come from.
type Secrets struct {
	SecretKeys // of units whose tenant has none of its own
	// Tenants are the keys of units of these tenants. No other unit's files are opened
	// with them, and theirs are opened with no others.
	Tenants map[string]SecretKeys
}

// SecretKeys open encrypted Secrets. The zero value opens none.
type SecretKeys struct {
	AgeKeyFiles []string // with identities, read anew each time
	// Helper is a program and its arguments that opens what no identity does; may be
	// empty.
	Helper []string
}

// Of are the keys that open files of a tenant's units.
func (s Secrets) Of(tenant string) SecretKeys {
	if own, ok := s.Tenants[tenant]; ok {
		return own
	}
	return s.SecretKeys
}

// Endpoint is an address that gates may ask.
type Endpoint struct {
	URL       string
	TokenFile string // with a bearer token, read anew for each question; may be empty
}

// API says where operators reach the daemon, and who they are besides its own user and
// root.
type API struct {
	// Socket is the path of a unix socket.
	Socket    string
	Operators []Operator
}

// Operator is a user of the machine.
type Operator struct {
	User   string
	Emails []string // of the same person, in commits
}

// defaultSocket is in the folder of the state.
const defaultSocket = "swell.sock"

// Lease says how other daemons are kept from writing for the same monorepo.
type Lease struct {
	Namespace string // of the Leases; empty: [DefaultLeaseNamespace]
	Off       bool   // none are kept
}

// DefaultLeaseNamespace is there in every cluster.
const DefaultLeaseNamespace = "kube-system"

// GitRepository is where the monorepo is followed. Files are read anew at each
// fetch.
type GitRepository struct {
	URL                                             string
	Branch                                          string // empty: the remote's own default
	Path                                            string // folder of the monorepo inside it; empty: the root
	Poll                                            time.Duration
	Username, TokenFile, SSHKeyFile, KnownHostsFile string
	AllowRewind                                     bool
}

// Drift says when live objects are compared with what was applied.
type Drift struct {
	// Schedule is nil where drift is not looked for.
	Schedule cron.Schedule
	Location *time.Location
	// Jitter is the most that a cluster starts after the schedule; how much it
	// is depends on its name alone.
	Jitter time.Duration
	// Watch says to look for drift all the time, besides the schedule.
	Watch bool
	// Deep is how many objects a minute are compared in full in each cluster;
	// zero is none.
	Deep int
}

// Changed are the fields of the document that differ in next, by their names.
func (d *Daemon) Changed(next *Daemon) (names []string) {
	is, other := reflect.ValueOf(*d), reflect.ValueOf(*next)
	for i := range is.NumField() {
		if !reflect.DeepEqual(is.Field(i).Interface(), other.Field(i).Interface()) {
			name := is.Type().Field(i).Name
			if name = strings.ToLower(name[:1]) + name[1:]; name == "aPI" {
				name = "api"
			}
			names = append(names, name)
		}
	}
	return names
}

const (
	defaultPoll     = 30 * time.Second
	defaultSchedule = "*/10 * * * *"
	defaultJitter   = time.Minute
)

// ReadDaemon reads the daemon's configuration file. Paths in it are relative
// to the file's folder; those returned are not.
func ReadDaemon(file string, content []byte) (*Daemon, document.Problems) {
	docs, problems := document.ReadDocuments(file, content)
	if len(problems) > 0 {
		return nil, problems
	}
	if p := WantOne(file, docs, "Daemon", ""); p != nil {
		return nil, document.Problems{*p}
	}
	doc := docs[0]
	var spec struct {
		Repository struct {
			URL, Branch, Path, Poll, Username, TokenFile, SSHKeyFile, KnownHostsFile string
			AllowRewind                                                              bool
		}
		State         string
		Clusters      []ClusterAccess
		KubeconfigDir string
		Allow         []string
		Drift         driftSpec
		Guard         guardSpec
		Lease         struct {
			Namespace string
			Enabled   *bool
		}
		Endpoints []struct{ Name, URL, TokenFile string }
		API       API `json:"api"`
		Secrets   secretsSpec
		Checkers  []CheckerProgram
		Health    Health
		Web       Web
		Previews  *previewsSpec
		Sandbox   string
	}
	in := readOwn(doc, &spec)
	dir := filepath.Dir(file)
	d := &Daemon{
		State:         inDir(dir, orText(spec.State, "state")),
		Clusters:      map[string]ClusterAccess{},
		KubeconfigDir: inDir(dir, spec.KubeconfigDir),
		Repository: GitRepository{
			URL: spec.Repository.URL, Branch: spec.Repository.Branch, Path: spec.Repository.Path,
			Poll: duration(spec.Repository.Poll), Username: spec.Repository.Username,
			TokenFile: inDir(dir, spec.Repository.TokenFile), SSHKeyFile: inDir(dir, spec.Repository.SSHKeyFile),
			KnownHostsFile: inDir(dir, spec.Repository.KnownHostsFile), AllowRewind: spec.Repository.AllowRewind,
		},
	}
	if isLocalPath(d.Repository.URL) {
		d.Repository.URL = inDir(dir, d.Repository.URL)
	}
	switch {
	case d.Repository.URL == "":
		in.at("spec", "repository", "url").problem(document.CodeReference, "missing")
	case spec.Repository.Poll == "":
		d.Repository.Poll = defaultPoll
	case d.Repository.Poll < time.Second:
		in.at("spec", "repository", "poll").problem(document.CodeType, "want at least 1s, got %s", d.Repository.Poll)
	}
	d.addClusters(in, dir, spec.Clusters)
	d.addAllowances(in, spec.Allow)
	d.Lease = Lease{Namespace: spec.Lease.Namespace, Off: spec.Lease.Enabled != nil && !*spec.Lease.Enabled}
	if name := spec.Lease.Namespace; name != "" && !document.IsLabel(name) {
		in.at("spec", "lease", "namespace").problem(document.CodeType, "%q: want the name of a namespace", name)
	}
	d.Endpoints = map[string]Endpoint{}
	for i, e := range spec.Endpoints {
		at := func(field, format string, args ...any) {
			in.at("spec", "endpoints", i, field).problem(document.CodeType, format, args...)
		}
		switch _, twice := d.Endpoints[e.Name]; {
		case e.Name == "":
			at("name", "missing")
		case twice:
			at("name", "%q is there twice", document.Shorten(e.Name))
		}
		if _, err := document.WebURL(e.URL); err != nil {
			at("url", "%s; one is %q", err, "https://prometheus.example.com")
		}
		d.Endpoints[e.Name] = Endpoint{URL: e.URL, TokenFile: inDir(dir, e.TokenFile)}
	}
	d.readAPI(in, dir, spec.API)
	d.readSecrets(in, dir, spec.Secrets)
	d.Checkers = in.checkerPrograms(dir, spec.Checkers)
	d.Sandbox = in.sandbox(spec.Sandbox)
	d.readHealth(in, spec.Health)
	d.readWeb(in, dir, spec.Web)
	d.readPreviews(in, dir, spec.Previews)
	d.Guard.read(in, spec.Guard)
	d.Drift.read(in, spec.Drift)
	return d, in.problems().Sorted()
}

func (d *Daemon) readAPI(in *reading, dir string, spec API) {
	d.API = API{Socket: filepath.Join(d.State, defaultSocket), Operators: spec.Operators}
	if spec.Socket != "" {
		d.API.Socket = inDir(dir, spec.Socket)
	}
	known := map[string]bool{}
	for i, o := range spec.Operators {
		at := in.at("spec", "api", "operators", i)
		if o.User == "" || known[o.User] {
			at.problem(document.CodeReference, "user %q: want the name of a user, each one once", o.User)
		}
		known[o.User] = true
		for _, email := range o.Emails {
			if !strings.Contains(email, "@") {
				at.problem(document.CodeType, "%q: want an email address", email)
			}
		}
	}
}

func (d *Daemon) readHealth(in *reading, spec Health) {
	d.Health = spec
	in.address(spec.Listen, "spec", "health", "listen")
}

// address checks an address to listen at; empty is none.
func (in *reading) address(text string, place ...any) {
	if text == "" {
		return
	}
	colon := strings.LastIndexByte(text, ':')
	host, port := text[:max(colon, 0)], text[colon+1:]
	isBare := strings.Contains(host, ":") && !strings.HasPrefix(host, "[") // an address of IPv6 stands in brackets
	if number, err := strconv.ParseUint(port, 10, 16); colon < 0 || err != nil || number == 0 || isBare {
		in.at(place...).problem(document.CodeType, "%q: want an address with a port, like :8080 or 127.0.0.1:8080", document.Shorten(text))
	}
}

type secretsSpec struct {
	SecretKeys
	Tenants []struct {
		Name string
		SecretKeys
	}
}

func (d *Daemon) readSecrets(in *reading, dir string, spec secretsSpec) {
	d.Secrets.SecretKeys = in.secretKeys(dir, spec.SecretKeys, "spec", "secrets")
	d.Secrets.Tenants = map[string]SecretKeys{}
	for i, tenant := range spec.Tenants {
		_, twice := d.Secrets.Tenants[tenant.Name]
		switch at := in.at("spec", "secrets", "tenants", i, "name"); {
		case tenant.Name == "":
			at.problem(document.CodeReference, "missing")
		case twice:
			at.problem(document.CodeType, "%q is there twice", document.Shorten(tenant.Name))
		}
		d.Secrets.Tenants[tenant.Name] = in.secretKeys(dir, tenant.SecretKeys, "spec", "secrets", "tenants", i)
	}
}

// secretKeys reads the keys at a place of the document.
func (in *reading) secretKeys(dir string, spec SecretKeys, place ...any) SecretKeys {
	at := func(field string, i int) docPath { return in.at(append(place[:len(place):len(place)], field, i)...) }
	keys := SecretKeys{Helper: spec.Helper}
	for i, file := range spec.AgeKeyFiles {
		if file == "" {
			at("ageKeyFiles", i).problem(document.CodeType, "want the path of a file")
		}
		keys.AgeKeyFiles = append(keys.AgeKeyFiles, inDir(dir, file))
	}
	if len(spec.Helper) > 0 && !filepath.IsAbs(spec.Helper[0]) {
		at("helper", 0).problem(document.CodeType, "%q: want the path of a program from the root, like %q", document.Shorten(spec.Helper[0]), "/usr/local/bin/open-data-key")
	}
	return keys
}

type driftSpec struct {
	Schedule, TimeZone, Jitter string
	Watch                      bool
	Deep                       int
}

// maxDeep is the most objects that a deep sweep may compare in a minute: 100 a
// second is what an API server does not notice much.
const maxDeep = 6000

func (d *Drift) read(in *reading, spec driftSpec) {
	d.Watch, d.Deep = spec.Watch, spec.Deep
	if d.Deep < 0 || d.Deep > maxDeep {
		in.at("spec", "drift", "deep").problem(document.CodeType, "want from 0 to %d objects a minute, got %d", maxDeep, d.Deep)
	}
	d.Jitter = defaultJitter
	if spec.Jitter != "" {
		d.Jitter = duration(spec.Jitter)
	}
	if d.Jitter < 0 {
		in.at("spec", "drift", "jitter").problem(document.CodeType, "want a duration from 0, got %s", d.Jitter)
	}
	var err error
	if d.Location, err = timezone.Load(orText(spec.TimeZone, "UTC")); err != nil {
		in.at("spec", "drift", "timeZone").problem(document.CodeType, "%s", err)
	}
	if spec.Schedule == "off" {
		return
	}
	d.Schedule, err = ParseSchedule(orText(spec.Schedule, defaultSchedule))
	if err != nil {
		in.at("spec", "drift", "schedule").problem(document.CodeType, "%s", err)
	}
}

// ParseSchedule reads the five fields of a cron line. The zone is not part of
// it: cron/v3 panics on some spellings of one, and a schedule that says its
// zone in its own field is clearer.
func ParseSchedule(text string) (cron.Schedule, error) {
	if strings.Contains(text, "TZ=") || strings.HasPrefix(strings.TrimSpace(text), "@") || len(strings.Fields(text)) != 5 {
		return nil, fmt.Errorf("%q: want the five fields of a cron line, like %q; the time zone has a field of its own", text, defaultSchedule)
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	if schedule.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() { // it looks five years ahead
		return nil, fmt.Errorf("%q: a day that never comes", text)
	}
	return schedule, nil
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func isLocalPath(url string) bool {
	return url != "" && !strings.Contains(url, "://") && !strings.Contains(url, ":")
}

func inDir(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
