// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/report"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/checker"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/helm"
	"github.com/swell-sh/swell/sync/preview"
	"github.com/swell-sh/swell/sync/source"
)

// previewerCommand is the process that renders previews for a daemon: see
// [preview.Renderer]. Nobody else calls it.
func previewerCommand(in *invocation) *cobra.Command {
	return &cobra.Command{
		Use:    "previewer",
		Short:  "Render previews for the daemon, which starts this by itself",
		Hidden: true,
		Args:   arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			questions := json.NewDecoder(cmd.InOrStdin())
			var is previewerSettings
			if err := questions.Decode(&is); err != nil {
				return fmt.Errorf("the daemon starts this by itself: %w", err)
			}
			parsed, err := parseConfiguration(configPath{in: in, name: is.File}, is.Content)
			if err != nil {
				return err
			}
			p, err := openPreviewer(cmd.Context(), parsed.Daemon, is.Fork)
			if err != nil {
				return err
			}
			defer p.close()
			return p.serve(cmd.Context(), questions, cmd.OutOrStdout())
		},
	}
}

// previewerSettings are the configuration that is in force, whatever its file has by now.
type previewerSettings struct {
	File    string
	Content []byte
	Fork    bool // it renders pull requests of other repositories
}

// previewer renders previews one after another. It remembers what it rendered last, so that
// the next one takes what differs alone.
type previewer struct {
	settings  *config.Daemon
	dir       string // of the commits that it fetches
	src       *source.Source
	kept      *cache.Cache
	runner    *checker.Runner
	compiler  *render.Compiler
	base      *render.Snapshot // of the base that was asked for last; nil: none
	since     config.Commit    // whose rules judged it, too
	differing sync.Differing   // of units that were not released with all of it
}

const (
	// mostMemory is what the process may have in its heap: Go collects harder near it, and the
	// kernel refuses more than twice as much.
	mostMemory = 4 << 30
	// memoryShare is the share of all memory that this is at most: what two such processes
	// are refused leaves a third of it to the daemon, with which they share the bound of a
	// pod.
	memoryShare  = 6
	previewStack = 256 << 20
	// maxCommits is how many bytes the commits of a pull request may have that the branch
	// does not have.
	maxCommits = 256 << 20
)

// previewMemory is what the process may have in its heap, in bytes, where there is so much
// for it and the daemon; 0: that is not known.
func previewMemory(all uint64) uint64 {
	if all == 0 {
		return mostMemory
	}
	return min(all/memoryShare, mostMemory)
}

// previewsDir is the folder of previews in that of the state.
func previewsDir(settings *config.Daemon) string { return filepath.Join(settings.State, "previews") }

func openPreviewer(ctx context.Context, settings *config.Daemon, fork bool) (*previewer, error) {
	all, _ := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)() // 0 with an error
	memory := previewMemory(all)
	debug.SetMemoryLimit(int64(memory))
	debug.SetMaxStack(previewStack)
	if err := boundMemory(2 * memory); err != nil {
		return nil, err
	}
	repo, dir := settings.Repository, filepath.Join(previewsDir(settings), "git")
	if fork { // what forks send cannot fill the other one, or have it made anew
		dir += "-forks"
	}
	src, err := source.OpenBeside(source.Config{
		URL: repo.URL, Branch: repo.Branch, Dir: dir, AllowRewind: true, MaxFetch: maxCommits,
		Auth: source.Auth{Username: repo.Username, TokenFile: repo.TokenFile, SSHKeyFile: repo.SSHKeyFile, KnownHostsFile: repo.KnownHostsFile},
	}, filepath.Join(settings.State, "git"))
	if err != nil {
		return nil, err
	}
	kept, err := cache.Open(filepath.Join(settings.State, "cache"), cacheLimit)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	p := &previewer{settings: settings, dir: dir, src: src, kept: kept}
	p.runner = &checker.Runner{Programs: settings.Checkers, Sandbox: settings.Sandbox, Cache: kept}
	charts := &helm.Renderer{Sandbox: settings.Sandbox}
	p.compiler = &render.Compiler{Cache: kept, Version: buildID(), Checkers: p.runner.Until(ctx), Charts: charts}
	return p, nil
}

func (p *previewer) close() {
	_ = errors.Join(p.kept.Close(), p.src.Close()) // nothing is lost with them
}

// serve answers until nobody asks any more. It ends with the daemon, also in the middle of a
// preview.
func (p *previewer) serve(ctx context.Context, questions *json.Decoder, out io.Writer) error {
	asked := make(chan preview.Ask)
	ended := make(chan error, 1)
	go func() {
		for {
			var ask preview.Ask
			if err := questions.Decode(&ask); err != nil {
				ended <- err
				return
			}
			asked <- ask
		}
	}()
	answered := make(chan error, 1)
	for {
		var err error
		select {
		case ask := <-asked:
			go func() { answered <- p.reply(ctx, ask, out) }()
			continue
		case err = <-answered:
		case err = <-ended:
			if errors.Is(err, io.EOF) {
				return exit(0)
			}
		}
		if err != nil {
			return err
		}
	}
}

// reply answers a question. It is the last answer where the store is to be made anew: the one
// beside which it is may have been replaced, it may be full, or somebody deleted it.
func (p *previewer) reply(ctx context.Context, ask preview.Ask, out io.Writer) error {
	answer, err := p.answer(ctx, ask)
	if err != nil {
		answer = preview.Answer{Retry: err.Error()}
	}
	if source.IsDamage(err) || p.isStoreGone(err) || p.src.IsFull() {
		answer.Last = true
		if err := os.RemoveAll(p.dir); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(answer)
}

// isStoreGone says that an error is about a file that is missing in one of the two stores. A
// credential that is missing for a moment is none.
func (p *previewer) isStoreGone(err error) bool {
	var missing *fs.PathError
	if !errors.As(err, &missing) || !errors.Is(missing, fs.ErrNotExist) {
		return false
	}
	for _, store := range []string{p.dir, filepath.Join(p.settings.State, "git")} {
		if config.Within(filepath.ToSlash(missing.Path), filepath.ToSlash(store)) {
			return true
		}
	}
	return false
}

// answer makes a preview. The error is for reasons that may pass.
func (p *previewer) answer(ctx context.Context, ask preview.Ask) (preview.Answer, error) {
	differing, err := sync.DifferingNow(ask.Now)
	if err != nil {
		return preview.Answer{}, err
	}
	base, err := p.snapshot(ctx, ask.Base, differing)
	if err != nil || ask.Ref == "" {
		return preview.Answer{}, err
	}
	head, err := p.src.FetchRef(ctx, ask.Ref, ask.Base.Commit)
	switch {
	case errors.Is(err, source.ErrTooMuch):
		return preview.Answer{Failed: fmt.Sprintf("its commits have more than %d MiB", maxCommits>>20)}, nil
	case err != nil:
		return preview.Answer{}, err
	}
	c, why, err := p.compare(ctx, ask, base, head)
	switch {
	case err != nil:
		return preview.Answer{}, err
	case why != "":
		return preview.Answer{Head: head, Failed: why, Waits: true}, nil
	}
	if base.Held && c.head.Held {
		return preview.Answer{Head: head, Waits: true, Failed: fmt.Sprintf("the documents of the fleet have problems in %s, so there is nothing to compare with: %s", ask.Branch, base.Problems[0])}, nil
	}
	change := c.change()
	change.Head, change.More, change.Link, change.Aside = head.Short(), "", ask.Link, ask.Base.Aside
	answer := answerOf(change, head)
	answer.Digest = forge.DigestOf(answer.Digest + ask.Link) // a comment whose link is another one is written anew
	answer.Notes = p.notes(c.problems)
	answer.Units = unitsOf(c.report)
	answer.Again = c.head.Retry && !ask.Fork // no program runs for a fork, today or tomorrow
	if ask.Link != "" {
		answer.Page = change.Page(fmt.Sprintf("Pull request %d", ask.Number), ask.URL)
	}
	return answer, nil
}

// answerOf is what is posted of a change.
func answerOf(change *report.Change, head config.Commit) preview.Answer {
	verdict, text := change.Verdict()
	return preview.Answer{Head: head, Bad: verdict == report.Bad, Text: text, Nothing: change.IsNothing(), Comment: change.Markdown(report.MaxBytes),
		Digest: forge.DigestOf(change.Unmoved().Markdown(report.MaxBytes))}
}

// maxUnits is how many units a preview may be about, to be made once more when one of them stands in
// another way.
const maxUnits = 1000

// unitsOf are the units that a report is about, sorted; none where they are more than [maxUnits].
func unitsOf(r *diff.Report) []config.UnitPath {
	if r == nil {
		return nil
	}
	units := r.Units()
	if len(units) > maxUnits {
		return nil
	}
	return units
}

// compare compares the base with what a merge of head into it would give. why says what of
// the change cannot be compared.
func (p *previewer) compare(ctx context.Context, ask preview.Ask, base *render.Snapshot, head config.Commit) (c *comparison, why string, err error) {
	tree, both, why, err := p.merged(ask.Base.Commit, head)
	if err != nil || why != "" {
		return nil, why, err
	}
	p.compiler.Base, p.compiler.Releases = base.Repository, p.differing.From(base, p.compiler, p.tree)
	p.compiler.Checkers = p.checkers(ctx, ask.Fork)
	c = &comparison{states: states{base: base}, from: ask.Branch, to: string(head), both: both, fork: ask.Fork}
	if err := c.with(ctx, &repoFlags{progress: new(checkerProgress)}, p.compiler, tree, head); err != nil {
		return nil, "", err
	}
	if err := c.findProblems(); err != nil || c.head.Held || c.base.Held {
		return c, "", err
	}
	if c.report, c.plan, err = sync.PreviewPlan(c.base, c.head, p.compiler, p.settings.Guard, ask.Now, time.Now()); err != nil {
		return nil, "", err
	}
	return c, "", c.findLater(p.compiler, tree, p.settings.Guard)
}

// noProgramsForForks is why Checkers run no program.
const noProgramsForForks = "no program runs for a pull request of another repository: push its commits to a branch of this one"

func (p *previewer) checkers(ctx context.Context, fork bool) render.Checkers {
	if fork {
		return p.runner.Known(noProgramsForForks)
	}
	return p.runner.Until(ctx)
}

// snapshot is that of the base, which mostly is the one of before. It is judged as the daemon judges it:
// by the rules of the commit before it, too, and by the releases.
func (p *previewer) snapshot(ctx context.Context, base preview.Base, differing sync.Differing) (*render.Snapshot, error) {
	if p.base != nil && p.base.Commit == base.Commit && p.since == base.Since && p.differing.Equal(differing) && !p.base.Retry {
		return p.base, nil
	}
	tree, err := p.tree(base.Commit)
	if err != nil {
		return nil, err
	}
	p.compiler.Base, p.compiler.Checkers = nil, p.checkers(ctx, false)
	if base.Since != "" {
		before, err := p.tree(base.Since)
		if err != nil {
			return nil, err
		}
		if r := config.Load(before, nil); len(r.Problems) == 0 {
			p.compiler.Base = r
		}
	}
	p.compiler.Releases = differing.From(nil, p.compiler, p.tree)
	p.base, p.since, p.differing = p.compiler.Accepted(base.Commit, tree), base.Since, differing
	return p.base, nil
}

// tree is the monorepo's folder in a commit.
func (p *previewer) tree(commit config.Commit) (config.Tree, error) {
	tree, err := p.src.Tree(commit)
	if err != nil {
		return nil, err
	}
	return config.Sub(tree, p.settings.Repository.Path), nil
}

// merged is what a merge of head into base would give, and the paths that changed on both
// sides.
func (p *previewer) merged(base, head config.Commit) (tree config.Tree, both []string, why string, err error) {
	parted, err := p.src.MergeBase(base, head)
	switch {
	case errors.Is(err, source.ErrUnrelated):
		return nil, nil, "its history has no commit in common with the branch", nil
	case err != nil:
		return nil, nil, "", err
	}
	var trees [3]config.Tree
	for i, commit := range []config.Commit{parted, base, head} {
		if trees[i], err = p.tree(commit); err != nil {
			return nil, nil, "", err
		}
	}
	tree, both, err = config.Merge(trees[0], trees[1], trees[2])
	return tree, both, "", err
}

// notes are problems at lines of files, from the root of the repository.
func (p *previewer) notes(problems document.Problems) (notes []forge.Note) {
	for _, problem := range problems {
		if problem.File == "" {
			continue
		}
		notes = append(notes, forge.Note{Path: filepath.ToSlash(filepath.Join(p.settings.Repository.Path, problem.File)), Line: problem.Line, Column: problem.Column, Title: string(problem.Code), Text: problem.Text()})
	}
	return notes[:min(len(notes), maxNotes)]
}

// maxNotes is how many problems are shown beside their lines: four requests of GitHub's fifty.
const maxNotes = 200
