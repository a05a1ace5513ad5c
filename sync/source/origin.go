// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"

	gitconfig "github.com/go-git/go-git/v5/plumbing/format/config"
)

// Origin is the URL of the remote called origin of the Git repository that a folder is
// in, without a user's password; empty where there is none.
func Origin(dir string) string {
	repo, err := findRepository(dir, true)
	if err != nil {
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(repo.commonDir, "config"))
	cfg := gitconfig.New()
	if err != nil || gitconfig.NewDecoder(bytes.NewReader(raw)).Decode(cfg) != nil {
		return ""
	}
	origin := cfg.Section("remote").Subsection("origin").Option("url")
	if parsed, err := url.Parse(origin); err == nil && parsed.Scheme != "" && parsed.User != nil {
		if parsed.Scheme == "http" || parsed.Scheme == "https" { // the user may be a token
			parsed.User = nil
		} else {
			parsed.User = url.User(parsed.User.Username())
		}
		return parsed.String()
	}
	return origin
}
