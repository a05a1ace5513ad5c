// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/render/checker"
)

// Recipe is how a known program judges a text without doing anything else.
type Recipe struct {
	// Program is looked up in the PATH of who runs swell.
	Program string
	Flags   []Flag
	// FileName is what the text is called for programs that go by a name's ending. Empty:
	// as it is called in the object.
	FileName string
	// Folders are those that the program wants to be there.
	Folders []string
	// Lookups says that the program looks up names of hosts and users. Which of them
	// there are in a cluster nobody knows here, so it is to find those that the text has.
	Lookups bool
	// Noise are lines of output that say nothing of the text, and Stamp is what a line
	// begins with that is another one at each run.
	Noise, Stamp *regexp.Regexp
	// Version is raised when a recipe judges in another way.
	Version string
}

// Flag is arguments, ${file} for the name of the text, and why they are given.
type Flag struct{ Text, Why string }

func (r *Recipe) args() (args []string) {
	for _, f := range r.Flags {
		args = append(args, strings.Fields(f.Text)...)
	}
	return args
}

func recipeNames() []string { return slices.Sorted(maps.Keys(recipes)) }

// recipes by the name that a Checker has. The programs' own manuals say what the flags
// do; Why says what goes wrong without them.
var recipes = map[string]*Recipe{
	"amtool": {Program: "amtool", Flags: []Flag{{"check-config ${file}", "judge the configuration of an Alertmanager, without asking one"}},
		Noise: regexp.MustCompile(`^amtool: error: failed to validate`), Stamp: regexp.MustCompile(`^Checking '[^']*' *`)},
	"envoy": {Program: "envoy", Flags: []Flag{
		{"--mode validate", "judge and end; else it serves"},
		{"-l error", "else a page of news about itself comes first"},
		{"-c ${file}", "the configuration"},
	}, FileName: "envoy.yaml", Lookups: true, Stamp: regexp.MustCompile(`^\[[^\]]*\](\[[^\]]*\])* (\[[^\]]*\] )?`)},
	"fluent-bit": {Program: "fluent-bit", Flags: []Flag{
		{"--dry-run", "judge and end; else it collects"},
		{"--quiet", "else its banner comes first"},
		{"-c ${file}", "the configuration"},
	}, Noise: regexp.MustCompile(`^Fluent Bit v|^\* |configuration test is successful`), Stamp: regexp.MustCompile(`^\[[0-9/]+ [0-9:.]+\] `)},
	"haproxy": {Program: "haproxy", Flags: []Flag{
		{"-c", "judge and end; else it serves"},
		{"-f ${file}", "the configuration"},
	}, Folders: []string{"/run/haproxy", "/var/lib/haproxy"}, Lookups: true,
		Noise: regexp.MustCompile(`^\[(NOTICE|WARNING)\]|Fatal errors found in configuration|Error\(s\) found in configuration file`), Stamp: regexp.MustCompile(`^\[ALERT\] +\([0-9]+\) : (config : )?`)},
	"named-checkconf": {Program: "named-checkconf", Flags: []Flag{{"${file}", "not the machine's own configuration; zones are not loaded, since their files stand elsewhere"}},
		Folders: []string{"/var/cache/bind", "/var/lib/bind", "/etc/bind"}},
	"nginx": {Program: "nginx", Flags: []Flag{
		{"-t", "judge the configuration and end"},
		{"-q", "say nothing when it is good"},
		{"-e stderr", "else it complains about the error log that was compiled in"},
		{"-p .", "relative paths begin at the folder of the text"},
		{"-c ${file}", "not the machine's own configuration"},
	}, Folders: []string{"/var/log/nginx", "/var/lib/nginx", "/var/cache/nginx", "/run/nginx"}, Lookups: true,
		Noise: regexp.MustCompile(`^nginx: configuration file .* test (failed|is successful)$|\[(warn|notice|info)\] `),
		Stamp: regexp.MustCompile(`^[0-9/]+ [0-9:]+ \[[a-z]+\] [0-9#]+: (\*[0-9]+ )?|^nginx: \[[a-z]+\] `)},
	"otelcol": {Program: "otelcol", Flags: []Flag{
		{"validate", "judge and end; else it collects"},
		{"--config=file:${file}", "the configuration, and nothing of the environment"},
	}, FileName: "otelcol.yaml", Lookups: true},
	"promtool-config": {Program: "promtool", Flags: []Flag{
		{"check config", "the configuration of a Prometheus"},
		{"--syntax-only", "the files that it names, such as keys, stand elsewhere"},
		{"${file}", ""},
	}, Noise: promtoolNoise},
	"promtool-rules": {Program: "promtool", Flags: []Flag{{"check rules ${file}", "groups of rules with their expressions"}}, Noise: promtoolNoise},
	"sh":             {Program: "sh", Flags: []Flag{{"-n ${file}", "read the script and run nothing of it"}}},
	"vector": {Program: "vector", Flags: []Flag{
		{"validate", "judge and end; else it collects"},
		{"--no-environment", "else it touches the disk and connects to where logs go, and a configuration can name a program to run"},
		{"${file}", "the configuration; its ending says which language it is in"},
	}, Noise: regexp.MustCompile(`^-+$|^√ `), Lookups: true},
}

var promtoolNoise = regexp.MustCompile(`^Checking |^ *(FAILED|SUCCESS):? *[0-9a-z ]*$`)

var (
	hostName = regexp.MustCompile(`[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*`)
	userName = regexp.MustCompile(`(?m)\b(?:user|group|uid|gid)\s+["']?([a-z_][a-z0-9_-]{0,31})["']?(?:\s+["']?([a-z_][a-z0-9_-]{0,31})\b)?`)
)

const maxNames = 5000

// names are the words of the texts that can be the names of hosts and of users.
func (r *Recipe) names(request checker.Request) names {
	if !r.Lookups {
		return names{}
	}
	hosts, users := map[string]bool{}, map[string]bool{}
	for _, f := range append([]checker.File{request.File}, request.Beside...) {
		for _, name := range hostName.FindAllString(f.Content, maxNames) {
			if len(name) < 254 && strings.ContainsFunc(name, func(c rune) bool { return c < '0' || c > '9' && c != '.' }) {
				hosts[name] = true
			}
		}
		for _, m := range userName.FindAllStringSubmatch(f.Content, maxNames) {
			users[m[1]] = true
			if m[2] != "" {
				users[m[2]] = true
			}
		}
	}
	for _, name := range []string{"root", "nobody", "check"} {
		delete(users, name)
	}
	return names{slices.Sorted(maps.Keys(hosts)), slices.Sorted(maps.Keys(users))}
}
