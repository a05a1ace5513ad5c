// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	gitconfig "github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/swell-sh/swell/config/smallfile"
)

// repository is a Git repository on this machine. Both folders are the same
// but in a linked work tree, which has a HEAD of its own and shares the rest.
//
// It is not opened with go-git's PlainOpen: that refuses a clone with
// extensions.worktreeConfig or extensions.partialClone, which git sets for
// sparse checkouts, though neither matters to a reader of objects.
type repository struct{ gitDir, commonDir string }

var errNoRepository = errors.New("not a Git repository")

// findRepository looks in dir, and with upward set in the folders above it.
func findRepository(dir string, upward bool) (*repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		if !upward && filepath.Base(dir) != ".git" {
			return nil, fmt.Errorf("%s: %w", dir, errNoRepository)
		}
		dir = filepath.Dir(dir)
	}
	for at := dir; ; at = filepath.Dir(at) {
		for _, candidate := range []string{filepath.Join(at, ".git"), at} {
			repo, err := openRepository(candidate)
			if err == nil {
				return repo, nil
			}
			if !errors.Is(err, errNoRepository) {
				return nil, err
			}
		}
		if !upward || at == filepath.Dir(at) {
			return nil, fmt.Errorf("%s: %w", dir, errNoRepository)
		}
	}
}

// openRepository reads what is at path: a Git folder, or a file that says
// where one is.
func openRepository(path string) (*repository, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoRepository
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		line, err := readLine(path)
		if err != nil {
			return nil, err
		}
		gitDir, ok := strings.CutPrefix(line, "gitdir: ")
		if !ok {
			return nil, fmt.Errorf("%s: want \"gitdir: ...\", got %q", path, line)
		}
		path = absolute(filepath.Dir(path), gitDir)
	}
	repo := &repository{gitDir: path, commonDir: path}
	switch line, err := readLine(filepath.Join(path, "commondir")); {
	case err == nil:
		repo.commonDir = absolute(path, line)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	for _, name := range []string{
		filepath.Join(repo.gitDir, "HEAD"),
		filepath.Join(repo.commonDir, "objects"),
		filepath.Join(repo.commonDir, "refs"),
	} {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, errNoRepository
		} else if err != nil {
			return nil, err
		}
	}
	return repo, repo.checkFormat()
}

// checkFormat refuses what go-git cannot read, and would take for an empty
// repository or for garbage.
func (r *repository) checkFormat() error {
	raw, err := os.ReadFile(filepath.Join(r.commonDir, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	cfg := gitconfig.New()
	if gitconfig.NewDecoder(bytes.NewReader(raw)).Decode(cfg) != nil {
		return nil // git may read more than go-git does, and nothing else in it matters here
	}
	extensions := cfg.Section("extensions")
	for key, readable := range map[string]string{"objectFormat": "sha1", "refStorage": "files"} {
		if is := extensions.Option(key); is != "" && !strings.EqualFold(is, readable) {
			return fmt.Errorf("%s: repository with extensions.%s %q: only %q can be read", r.gitDir, key, is, readable)
		}
	}
	return nil
}

// maxAlternates is how far Git follows them.
const maxAlternates = 5

// objectDirs are the folders that objects are in: the repository's own, and
// those it borrows from.
func (r *repository) objectDirs() ([]string, error) {
	dirs := []string{filepath.Join(r.commonDir, "objects")}
	for i, depth := 0, 0; i < len(dirs) && depth <= maxAlternates; depth++ {
		for end := len(dirs); i < end; i++ {
			raw, err := os.ReadFile(filepath.Join(dirs[i], "info", "alternates"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for line := range strings.Lines(string(raw)) {
				line = strings.TrimRight(line, "\n")
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if dir := absolute(dirs[i], line); !slices.Contains(dirs, dir) {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	return dirs, nil
}

// maxSymbolic is how many refs in a row may name another one.
const maxSymbolic = 5

// errNoRef is a ref that does not exist, where the repository can be read.
var errNoRef = errors.New("no such ref")

// ref follows a full name, "HEAD" or "refs/heads/main", to a hash, and returns
// the last name on the way.
func (r *repository) ref(name plumbing.ReferenceName) (plumbing.ReferenceName, plumbing.Hash, error) {
	if r == nil { // it was never found
		return name, plumbing.ZeroHash, errNoRef
	}
	for range maxSymbolic {
		text, err := r.readRef(name)
		if err != nil {
			return name, plumbing.ZeroHash, err
		}
		if target, ok := strings.CutPrefix(text, "ref:"); ok {
			name = plumbing.ReferenceName(strings.TrimSpace(target))
			continue
		}
		hash, _, _ := strings.Cut(text, "\t") // FETCH_HEAD has more
		if len(hash) != 40 || !plumbing.IsHash(hash) {
			return name, plumbing.ZeroHash, fmt.Errorf("%s: malformed: %q", name, text)
		}
		return name, plumbing.NewHash(hash), nil
	}
	return name, plumbing.ZeroHash, fmt.Errorf("%s: more than %d symbolic refs in a row", name, maxSymbolic)
}

func (r *repository) readRef(name plumbing.ReferenceName) (string, error) {
	if !name.IsSafe() {
		return "", fmt.Errorf("%q: %w", name, errNoRef)
	}
	dir := r.commonDir
	if !strings.HasPrefix(name.String(), "refs/") || strings.HasPrefix(name.String(), "refs/worktree/") {
		dir = r.gitDir
	}
	text, err := readLine(filepath.Join(dir, filepath.FromSlash(name.String())))
	switch {
	case err == nil:
		return text, nil
	// A name may be the folder of others, and the other way round.
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.ENOTDIR):
		return "", err
	}
	refs, err := readPackedRefs(r.commonDir)
	if err != nil {
		return "", err
	}
	h, ok := refs[name]
	if !ok {
		return "", fmt.Errorf("%s: %w", name, errNoRef)
	}
	return h.String(), nil
}

// readPackedRefs returns the refs that are kept in one file. A line that
// cannot be read is an error: what it hides would be taken for missing.
func readPackedRefs(dir string) (map[plumbing.ReferenceName]plumbing.Hash, error) {
	refs := map[plumbing.ReferenceName]plumbing.Hash{}
	path := filepath.Join(dir, "packed-refs")
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' || line[0] == '^' {
			continue
		}
		hash, name, _ := strings.Cut(line, " ")
		if len(hash) != 40 || !plumbing.IsHash(hash) || !plumbing.ReferenceName(name).IsSafe() {
			return nil, fmt.Errorf("%s:%d: malformed: %q", path, n, line)
		}
		refs[plumbing.ReferenceName(name)] = plumbing.NewHash(hash)
	}
	return refs, nil
}

// isShallow says whether the parents of a commit were left out of the clone.
func (r *repository) isShallow(h plumbing.Hash) bool {
	if r == nil {
		return false
	}
	raw, err := os.ReadFile(filepath.Join(r.commonDir, "shallow"))
	return err == nil && slices.Contains(strings.Fields(string(raw)), h.String())
}

// readLine returns the first line of a small file.
func readLine(path string) (string, error) {
	raw, err := smallfile.Read(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return strings.TrimSpace(line), nil
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
