// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
)

const (
	benchFiles   = 100_000
	benchCommits = 1_000 // after the first, each changes one file
)

func benchFile(i int) string {
	return fmt.Sprintf("services/team%03d/svc%05d/f%d.yaml", i/1000, i/5, i%5)
}

func benchContent(i, version int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: app-%d}\nspec:\n  image: registry.example.com/app-%d:1.%d.0\n  config:\n", i, i, version)
	for k := range 40 {
		fmt.Fprintf(&b, "    key%d: value%d\n", k, k*i)
	}
	return b.String()
}

// benchRepo is a bare repository with 100,000 files in 20,000 folders, one
// pack, and its commits, oldest first.
func benchRepo(b *testing.B) (string, []config.Commit) {
	b.Helper()
	dir := b.TempDir()
	git(b, dir, "init", "-q", "--bare")
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, gitEnv(), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	commit := func(n int) {
		fmt.Fprintf(in, "commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata 1\nx\n", 1700000000+n)
	}
	file := func(i, version int) {
		content := benchContent(i, version)
		fmt.Fprintf(in, "M 100644 inline %s\ndata %d\n%s\n", benchFile(i), len(content), content)
	}
	commit(0)
	for i := range benchFiles {
		file(i, 0)
	}
	for n := range benchCommits {
		commit(n + 1)
		file(n*97%benchFiles, n+1)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	git(b, dir, "repack", "-adfq")
	var commits []config.Commit
	for _, c := range strings.Fields(git(b, dir, "rev-list", "--reverse", "main")) {
		commits = append(commits, config.Commit(c))
	}
	return dir, commits
}

func openBench(b *testing.B, dir string) *Source {
	b.Helper()
	s, err := OpenLocal(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// walkBench lists and hashes everything, as a compiler does to find what it has
// seen before, and reads files when read is set.
func walkBench(b *testing.B, s *Source, commit config.Commit, read bool) {
	b.Helper()
	tree, err := s.Tree(commit)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			n++
			if read {
				if _, err := tree.ReadFile(name); err != nil {
					return err
				}
			}
		}
		_, err = tree.Hash(name)
		return err
	})
	if err != nil || n != benchFiles {
		b.Fatalf("%d files, %v", n, err)
	}
}

// reportHeap says how much memory is held, in MiB.
func reportHeap(b *testing.B) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MiB")
}

// BenchmarkSource is about a monorepo of 100,000 files.
func BenchmarkSource(b *testing.B) {
	dir, commits := benchRepo(b)
	first := commits[0]

	b.Run("walk/cold", func(b *testing.B) {
		for b.Loop() {
			s := openBench(b, dir)
			walkBench(b, s, first, false)
			s.Close()
		}
	})
	b.Run("walk/warm", func(b *testing.B) {
		s := openBench(b, dir)
		walkBench(b, s, first, false)
		for b.Loop() {
			walkBench(b, s, first, false)
		}
		reportHeap(b)
	})
	b.Run("read/cold", func(b *testing.B) {
		var s *Source
		for b.Loop() {
			if s != nil {
				s.Close() // the last one's caches are what is measured below
			}
			s = openBench(b, dir)
			walkBench(b, s, first, true)
		}
		reportHeap(b)
	})

	// eachCommit runs do on one commit after the other, with everything of
	// the first one known.
	eachCommit := func(b *testing.B, do func(s *Source, i int) error) {
		var s *Source
		i := 0
		for b.Loop() {
			if i%benchCommits == 0 {
				b.StopTimer()
				s = openBench(b, dir)
				walkBench(b, s, first, false)
				b.StartTimer()
			}
			if err := do(s, i%benchCommits); err != nil {
				b.Fatal(err)
			}
			i++
		}
	}
	b.Run("new commit/read one file", func(b *testing.B) {
		eachCommit(b, func(s *Source, i int) error {
			tree, err := s.Tree(commits[i+1])
			if err == nil {
				_, err = tree.ReadFile(benchFile(i * 97 % benchFiles))
			}
			return err
		})
	})
	b.Run("new commit/changed", func(b *testing.B) {
		eachCommit(b, func(s *Source, i int) error {
			paths, err := s.Changed(commits[i], commits[i+1])
			if err == nil && (len(paths) != 1 || paths[0] != benchFile(i*97%benchFiles)) {
				err = fmt.Errorf("changed %v", paths)
			}
			return err
		})
	})
	b.Run("new commit/walk", func(b *testing.B) {
		eachCommit(b, func(s *Source, i int) error {
			walkBench(b, s, commits[i+1], false)
			return nil
		})
	})

	b.Run("clone over http", func(b *testing.B) {
		srv := serve(b, &clone{b, dir, dir})
		for b.Loop() {
			s, err := Open(Config{URL: srv.URL + "/" + dir[strings.LastIndex(dir, "/")+1:], Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			fetch(b, s)
			s.Close()
		}
	})
	b.Run("fetch of one file over http", func(b *testing.B) {
		srv := serve(b, &clone{b, dir, dir})
		git(b, dir, "update-ref", "refs/heads/main", string(first))
		s, err := Open(Config{URL: srv.URL + "/" + dir[strings.LastIndex(dir, "/")+1:], Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		fetch(b, s)
		i := 0
		for b.Loop() {
			b.StopTimer()
			if i++; i > benchCommits {
				b.Fatal("too few commits; use a smaller -benchtime")
			}
			git(b, dir, "update-ref", "refs/heads/main", string(commits[i]))
			b.StartTimer()
			fetch(b, s)
		}
	})
	b.Run("fetch of nothing over http", func(b *testing.B) {
		srv := serve(b, &clone{b, dir, dir})
		s, err := Open(Config{URL: srv.URL + "/" + dir[strings.LastIndex(dir, "/")+1:], Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		fetch(b, s)
		for b.Loop() {
			fetch(b, s)
		}
	})
}
