// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config/document"
)

//go:embed ci.txtar
var ciFiles string

// ciInstall is the step that brings swell into a job of Actions.
const ciInstall = `[[define "install"]]    - name: Install swell
      env: {SWELL_URL: "[[.Binary]]", SWELL_SHA256: "[[.SHA256]]"}
      run: |
        mkdir -p "$HOME/bin"
        curl -fsSL -o "$HOME/bin/swell" "$SWELL_URL"
        test -z "$SWELL_SHA256" || echo "$SWELL_SHA256  $HOME/bin/swell" | sha256sum -c
        chmod +x "$HOME/bin/swell"
        echo "$HOME/bin" >> "$GITHUB_PATH"[[end]]`

// ciSystems are the systems that there are jobs for.
var ciSystems = []string{"github", "gitlab", "gitea"}

// nextSteps are what is left to do, by system.
var nextSteps = map[string]string{
	"github": "commit these files to the default branch; the next pull request has a preview",
	"gitea":  "commit these files to the default branch; the next pull request has a preview",
	"gitlab": "add to .gitlab-ci.yml: include: {local: .gitlab/swell.yaml}; make a project access token with the scope api and the role Developer, and set it as the variable GITLAB_TOKEN, masked and not protected; then commit both files to the default branch",
}

// ciJob is what is filled in.
type ciJob struct {
	Binary, SHA256 string
	// Path is the flag of swell diff for a monorepo that is not the root of its Git
	// repository, with a space; empty for one that is.
	Path string
}

func ciInitCommand(in *invocation) *cobra.Command {
	var job ciJob
	var repo, at string
	cmd := &cobra.Command{
		Use:   "init github|gitlab|gitea",
		Short: "Write the job that shows on a pull request what it changes in the fleet",
		Long: `Write the files of a job that runs swell diff --comment for each pull request, into the
Git repository that the current folder is in. Nothing that is there is changed: where one
of the files is there already, none is written.

  github  GitHub Actions: one workflow for branches, and two for forks, whose token cannot
          comment. The first of the two only reads; the second may write, and takes nothing
          from the first.
  gitlab  GitLab CI: a file to include. It needs a project access token.
  gitea   Gitea Actions and Forgejo Actions: one workflow for branches, and one for forks.

The job downloads swell from --binary: a static program for linux/amd64, as make release
makes it. With --sha256, it takes no other.

A daemon with spec.previews does the same without any job.

Exit codes: 0 written, 2 not.`,
		Example: `  swell ci init github --binary https://artifacts.example.com/swell-linux-amd64
  swell ci init gitlab --binary https://artifacts.example.com/swell-linux-amd64 --sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(ciSystems, args[0]) {
				return fmt.Errorf("%q: no such system%s", args[0], document.DidYouMean(args[0], ciSystems))
			}
			if err := job.check(); err != nil {
				return err
			}
			root := in.gitRoot(repo)
			if _, err := os.Lstat(in.path(filepath.Join(root, ".git"))); errors.Is(err, fs.ErrNotExist) {
				return hinted{fmt.Errorf("%s: no Git repository", repo), "the files are for the root of the repository that the pull requests are in"}
			}
			folder, err := folderOf(in, at, repo)
			if err != nil {
				return err
			}
			if folder != "." {
				job.Path = "--path " + folder + " "
			}
			if _, err := os.Stat(filepath.Join(root, folder, repositoryFile)); errors.Is(err, fs.ErrNotExist) {
				return hinted{fmt.Errorf("%s: no %s in it, so it is no monorepo", filepath.Join(root, folder), repositoryFile), "run it inside the monorepo, or name its folder inside the Git repository with --path; swell init makes one"}
			}
			files, err := job.files(args[0])
			if err != nil {
				return err
			}
			if err := writeMissing(root, files); err != nil {
				return err
			}
			for _, f := range files {
				fmt.Fprintln(cmd.OutOrStdout(), f.Name)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "swell: "+nextSteps[args[0]])
			if job.SHA256 == "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "swell: note: the job runs whatever program stands at --binary then, with its token; --sha256 pins it")
			}
			return nil
		},
	}
	repoFlag(cmd, in, &repo, "Git repository, or a folder in it")
	cmd.Flags().StringVar(&at, "path", "", "folder of the monorepo inside the Git repository (default: the one around the current folder)")
	cmd.Flags().StringVar(&job.Binary, "binary", "", "URL of swell for linux/amd64, which the job downloads (required)")
	cmd.Flags().StringVar(&job.SHA256, "sha256", "", "its SHA-256, in hexadecimal digits")
	return cmd
}

var (
	plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9._~:/?&=%@+,-]+$`)
	isSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// shellPath is one that needs no quotes in a shell nor in YAML.
	shellPath = regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._/-]*$`)
)

func (j *ciJob) check() error {
	switch {
	case j.Binary == "":
		return hinted{errors.New("--binary: missing"), "make release makes the programs; put the one for linux/amd64 where jobs can download it"}
	case strings.Contains(j.Binary, "@"):
		return errors.New("--binary: a URL with a user or a password would stand in the repository: want one without")
	case !plainURL.MatchString(j.Binary):
		return fmt.Errorf("--binary %q: want a URL with http:// or https://, without spaces or quotes", j.Binary)
	case strings.HasPrefix(j.Binary, "http://") && j.SHA256 == "":
		return hinted{errors.New("--binary: http:// lets anybody on the way give the job another program, which gets its token"), "use https://, or name the program's sum with --sha256"}
	case j.SHA256 != "" && !isSHA256.MatchString(strings.ToLower(j.SHA256)):
		return fmt.Errorf("--sha256 %q: want 64 hexadecimal digits", j.SHA256)
	}
	j.SHA256 = strings.ToLower(j.SHA256)
	return nil
}

// folderOf is the monorepo's folder inside the Git repository; "." is its root.
func folderOf(in *invocation, at, repo string) (string, error) {
	if at == "" {
		at = (&repoFlags{in: in, repo: repo}).folder(repo)
	}
	at = filepath.ToSlash(filepath.Clean(at))
	if at != "." && (!filepath.IsLocal(at) || !shellPath.MatchString(at)) {
		return "", fmt.Errorf("--path %q: want a folder inside the repository, of letters, digits, dots, hyphens and underscores", at)
	}
	return at, nil
}

// files are those of a system, by their paths from the root of the Git repository.
func (j *ciJob) files(system string) (files []txtar.File, err error) {
	for _, f := range txtar.Parse([]byte(ciFiles)).Files {
		name, ours := strings.CutPrefix(f.Name, system+"/")
		if !ours {
			continue
		}
		made, err := template.New(name).Delims("[[", "]]").Parse(ciInstall + string(f.Data))
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := made.Execute(&b, j); err != nil {
			return nil, err
		}
		files = append(files, txtar.File{Name: name, Data: b.Bytes()})
	}
	return files, nil
}
