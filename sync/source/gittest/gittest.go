// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package gittest makes repositories for tests that follow one. They are made in the test's
// process: a git program that is started takes longer than many of these tests.
package gittest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Init makes a repository with the branch main in a folder, as git init does, less the samples
// of hooks. The folder need not exist.
func Init(dir string) error { return layOut(filepath.Join(dir, ".git"), "\tbare = false\n") }

// InitBare makes a repository without a working copy.
func InitBare(dir string) error { return layOut(dir, "\tbare = true\n") }

// InitFrom makes a repository whose remote "origin" is another one.
func InitFrom(dir, origin string) error {
	remote := "[remote \"origin\"]\n\turl = " + origin + "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
	return layOut(filepath.Join(dir, ".git"), "\tbare = false\n"+remote)
}

func layOut(dir, more string) error {
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n"+more), 0o644),
	)
}

// Commit commits, as Ada, all that is in a working copy, and also where nothing changed. It
// returns the hash of the commit. A file that became a folder is an error: go-git cannot add that.
func Commit(dir, message string) (string, error) {
	return CommitAs("Ada", "ada@example.com", dir, message)
}

// CommitAs is [Commit] by an author of one's own.
func CommitAs(name, email, dir, message string) (string, error) {
	by := object.Signature{Name: name, Email: email, When: time.Now()}
	return CommitBy(by, by, dir, message)
}

// CommitBy is [Commit] with all that a commit says of its people.
func CommitBy(author, committer object.Signature, dir, message string) (string, error) {
	repo, err := git.PlainOpen(dir)
	if err != nil {
		return "", err
	}
	work, err := repo.Worktree()
	if err != nil {
		return "", err
	}
	if err := work.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		return "", err
	}
	hash, err := work.Commit(message, &git.CommitOptions{Author: &author, Committer: &committer, AllowEmptyCommits: true})
	return hash.String(), err
}

// Push makes main of a repository a commit of a working copy, whatever it was. The objects are
// there as in the working copy, loose or packed.
func Push(dir, hash, origin string) error {
	from, to := filepath.Join(dir, ".git/objects"), filepath.Join(origin, "objects")
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if _, err := os.Stat(target); err == nil {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o444)
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(origin, "refs/heads/main"), []byte(hash+"\n"), 0o644)
}

// Run runs the git program in a folder, apart from what the user has set up for it, and returns
// what it writes.
func Run(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
