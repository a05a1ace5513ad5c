// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/checker"
	"github.com/swell-sh/swell/sync/checker/sandbox"
)

// program is what a name runs on this machine.
type program struct {
	path     string
	args     []string
	read     []string
	recipe   *Recipe // never nil
	identity string
	missing  string // why there is none
}

// program finds a program by its name, once.
func (r *Runner) program(name string) *program {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.programs[name]; p != nil {
		return p
	}
	if r.programs == nil {
		r.programs = map[string]*program{}
	}
	p := r.find(name)
	r.programs[name] = p
	return p
}

// find looks for the program of the configuration, or else of a recipe.
func (r *Runner) find(name string) *program {
	recipe, configured := recipes[name], r.Programs[name]
	p := &program{recipe: recipe, read: configured.Read}
	command := configured.Command
	switch {
	case len(command) == 0 && recipe == nil:
		p.recipe, p.missing = &Recipe{}, fmt.Sprintf("no program %q: name it under checkers in the daemon's configuration or your own, or use one that swell has a recipe for (%s)", document.Shorten(name), strings.Join(recipeNames(), ", "))
		return p
	case len(command) == 0:
		command = []string{recipe.Program}
	case recipe == nil:
		p.recipe = &Recipe{}
	}
	p.args = command[1:]
	if len(p.args) == 0 {
		p.args = p.recipe.args()
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		if path, err = lookInSystem(command[0]); err != nil {
			p.missing = fmt.Sprintf("the program %s is not installed here; install it, or name another one under checkers in the daemon's configuration or your own", command[0])
			return p
		}
	}
	if !config.GivesText(p.args) {
		const text = "no argument of the program %s has ${file}, so it would not get the text: " +
			"write its arguments under checkers in the daemon's configuration or your own"
		p.missing = fmt.Sprintf(text, command[0])
		return p
	}
	if p.path, err = filepath.Abs(path); err != nil {
		p.missing = err.Error()
		return p
	}
	hash, err := r.hashOf(p.path)
	if err != nil {
		p.missing = fmt.Sprintf("the program %s cannot be read: %v", command[0], document.Cause(err))
		return p
	}
	p.identity = fmt.Sprintf("%s %q %q %q", hash, p.args, configured.Version, p.recipe.Version)
	return p
}

// lookInSystem finds programs for administrators, which are not in everybody's PATH.
func lookInSystem(name string) (path string, err error) {
	if filepath.Base(name) != name {
		return "", exec.ErrNotFound
	}
	for _, folder := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if path, err = exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", err
}

// hashOf is the address of a program's content. A program that was read before, and
// whose file is as it was, is not read again.
func (r *Runner) hashOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	key := cache.Key(sha256.Sum256(fmt.Appendf(nil, "program %q %d %d %d", path, info.Size(), info.ModTime().UnixNano(), inode)))
	if r.Cache != nil {
		if known, ok := r.Cache.Get(key); ok {
			return string(known), nil
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	if r.Cache != nil {
		r.Cache.Put(key, []byte(hash))
	}
	return hash, nil
}

// names are the hosts and users that a program is to find when it looks them up.
type names struct{ hosts, users []string }

// command is the program on one text.
func (p *program) command(request checker.Request, known names, limits sandbox.Limits) sandbox.Command {
	file := p.fileName(request)
	c := sandbox.Command{Program: p.path, Read: p.read, Folders: p.recipe.Folders, Hosts: known.hosts, Users: known.users, Limits: limits}
	c.Files = []sandbox.File{{Name: file, Content: []byte(request.File.Content)}}
	for _, f := range request.Beside {
		if f.Name != file { // else it would be judged in place of the text
			c.Files = append(c.Files, sandbox.File{Name: f.Name, Content: []byte(f.Content)})
		}
	}
	if strings.HasPrefix(file, "-") {
		file = "./" + file // else it would be taken for a flag
	}
	for _, arg := range p.args {
		c.Args = append(c.Args, strings.NewReplacer("${file}", file, "${dir}", ".").Replace(arg))
	}
	return c
}
