// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, `^source: no URL of a repository$`},
		{Config{URL: "git://host/x.git"}, `scheme "git" is not supported; want http, https, ssh or a path$`},
		{Config{URL: "ftp://ann:secret@host/x.git"}, `scheme "ftp" is not supported`},
		{Config{URL: "https://ann:secret%zz@host/x.git"}, `^source: URL of the repository: malformed$`},
		{Config{URL: "https:///x.git"}, `no host$`},
		{Config{URL: "ssh://ann:secret@host/x.git"}, `a password for ssh is not supported; use a key$`},
		{Config{URL: "ssh://host/x.git"}, `ssh://git@host/x.git: ssh needs a file with a private key and one with known hosts$`},
		{Config{URL: "git@host:x.git", Auth: Auth{SSHKeyFile: "key"}}, `ssh://git@host/x.git: ssh needs`},
		{Config{URL: "https://host/x.git", Branch: "a..b"}, `branch "a..b": not a name that Git allows$`},
		{Config{URL: "https://host/x.git", Branch: "../../x"}, `branch "../../x": not a name`},
		{Config{URL: "file://host/x.git"}, `want an absolute path like file:///srv/repo.git$`},
	} {
		if !strings.HasPrefix(test.want, "^source: no URL") {
			test.cfg.Dir = t.TempDir()
		}
		_, err := Open(test.cfg)
		checkMessage(t, err, test.want)
	}
	_, err := Open(Config{URL: "https://ann:secret@host/x.git?key=secret"})
	checkMessage(t, err, `^source: https://host/x.git: no folder to keep its objects in$`)
}

func TestParseURL(t *testing.T) {
	type parts struct{ Name, Local, Host, Path, User string }
	for url, want := range map[string]parts{
		"https://host/x.git":                {"https://host/x.git", "", "host", "/x.git", ""},
		"https://host:8443/a/b":             {"https://host:8443/a/b", "", "host", "/a/b", ""},
		"https://ann:secret@host/x.git":     {"https://host/x.git", "", "host", "/x.git", ""},
		"https://t0ken@[::1]:8443/x.git":    {"https://[::1]:8443/x.git", "", "[::1]", "/x.git", ""},
		"https://host/x.git?private=secret": {"https://host/x.git", "", "host", "/x.git?private=secret", ""},
		"ssh://host/x.git":                  {"ssh://git@host/x.git", "", "host", "/x.git", "git"},
		"ssh://ann@host:2222/x.git":         {"ssh://ann@host:2222/x.git", "", "host", "/x.git", "ann"},
		"ssh://host/~ann/x.git":             {"ssh://git@host/~ann/x.git", "", "host", "~ann/x.git", "git"},
		"git@host:team/x.git":               {"ssh://git@host/team/x.git", "", "host", "team/x.git", "git"},
		"host:x.git":                        {"ssh://git@host/x.git", "", "host", "x.git", "git"},
		"/srv/x.git":                        {"/srv/x.git", "/srv/x.git", "", "/srv/x.git", ""},
		"file:///srv/x.git":                 {"/srv/x.git", "/srv/x.git", "", "/srv/x.git", ""},
	} {
		at, err := parseURL(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		got := parts{at.name, at.local, at.endpoint.Host, at.endpoint.Path, at.endpoint.User}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", url, diff)
		}
	}
}

func TestInfo(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	git(t, c.dir, "commit", "-q", "--allow-empty", "-m", "subject \x1b[2J of it\n\nbody\n")
	s := local(t, c)
	got, err := s.Info(c.head())
	if err != nil {
		t.Fatal(err)
	}
	want := Info{Author: "Ann <ann@example.com>", When: time.Unix(1700000000, 0), Subject: "subject  [2J of it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, offset := got.When.Zone(); offset != 2*60*60 {
		t.Errorf("zone %s, want the author's, +0200", got.When)
	}
}

// Objects that git would not make are refused, not read in part.
func TestMalformedCommit(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	tree := git(t, c.dir, "rev-parse", "HEAD^{tree}")
	good := commitObject(tree)
	s := local(t, c)
	for name, test := range map[string]struct{ content, want string }{
		"two trees":       {"tree " + tree + "\n" + good, `header "tree" is out of place`},
		"two authors":     {strings.Replace(good, "author", "author X <x@y> 1 +0000\nauthor", 1), `header "author" is out of place`},
		"two committers":  {strings.Replace(good, "\n\n", "\ncommitter X <x@y> 1 +0000\n\n", 1), `header "committer" is out of place`},
		"late tree":       {strings.Replace(good, "\n\n", "\nencoding x\ntree "+tree+"\n\n", 1), `header "tree" is out of place`},
		"late parent":     {strings.Replace(good, "\n\n", "\nparent "+tree+"\n\n", 1), `header "parent" is out of place`},
		"no tree":         {strings.TrimPrefix(good, "tree "+tree+"\n"), `malformed commit: tree header must be first`},
		"short tree":      {strings.Replace(good, tree, tree[:39], 1), `malformed commit: `},
		"nothing":         {"", `malformed commit: missing tree header`},
		"tree is no tree": {commitObject(git(t, c.dir, "rev-parse", "HEAD:a")), `is a blob, not a tree`},
	} {
		hash := config.Commit(gitWith(t, c.dir, test.content, "hash-object", "-t", "commit", "-w", "--literally", "--stdin"))
		_, err := s.Tree(hash)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
		if IsDamage(err) {
			t.Errorf("%s: taken for damage, which cloning anew would heal: %v", name, err)
		}
	}
	// In a continued header, and in the message, the same words are text.
	signed := strings.Replace(good, "\n\n", "\ngpgsig -----BEGIN\n tree x\n -----END\n\ntree x\nauthor y\n", 1)
	hash := config.Commit(gitWith(t, c.dir, signed, "hash-object", "-t", "commit", "-w", "--literally", "--stdin"))
	if _, err := s.Tree(hash); err != nil {
		t.Error(err)
	}
}
