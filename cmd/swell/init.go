// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/source"
)

var (
	//go:embed init.txtar
	firstFiles string
	//go:embed initdaemon.tmpl
	firstDaemon string
)

const daemonFile = "daemon.yaml"

func initCommand(in *invocation) *cobra.Command {
	o := initOptions{in: in}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Begin a monorepo",
		Long: `Write the smallest monorepo that works into DIR, the current folder by default: a fleet
of the clusters that --cluster names, a rollout that begins with the first of them, and
a unit apps/hello; and daemon.yaml, the configuration of a daemon for it. What is not
given by flags is asked on a terminal. Clusters are contexts of a kubeconfig; --cluster
NAME=CONTEXT gives one another name. No cluster is asked anything.

With --from, DIR is a repository that was made for Flux, Argo CD, kustomize or Helm. Its
Kustomizations, HelmReleases, Applications, ApplicationSets, overlays and charts become
units, each placed on the clusters that it goes to. Files are added, and none is changed,
so the other tool goes on as before. Then swell says what was carried over, and what was
not: the place, the reason, and what to do by hand. Clusters are those that the repository
names; --cluster names others, or the one that it is for.

Nothing that is there is overwritten, and with --dry-run nothing is written.

Exit codes: 0 written, 2 not written.`,
		Example: `  swell init --cluster staging --cluster production
  swell init shop --cluster eu=admin@eu.example.com --kubeconfig ~/.kube/config
  swell init --from flux --dry-run gitops
  swell init --from argocd --cluster production gitops`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.dir = "."
			if len(args) > 0 {
				o.dir = args[0]
			}
			if o.from != "" {
				if err := o.checkFree(); err != nil {
					return err
				}
				return o.beginFrom(cmd)
			}
			return o.begin(cmd)
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "name of the monorepo (default: that of the folder)")
	cmd.Flags().StringArrayVar(&o.clusters, "cluster", nil, "a cluster, as NAME or NAME=CONTEXT; the first one is the canary")
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig with the contexts (default: $KUBECONFIG, or ~/.kube/config)")
	cmd.Flags().StringVar(&o.url, "url", "", "Git repository that the daemon follows (default: the remote origin, or else the local repository)")
	cmd.Flags().StringVar(&o.from, "from", "", "read a repository of another tool: argocd, flux, helm or kustomize")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "with --from, list every place of what is done in another way")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "print the files in place of writing them")
	return cmd
}

// initOptions are what the flags of swell init say.
type initOptions struct {
	in                               *invocation
	dir, name, kubeconfig, url, from string
	clusters                         []string
	dry, verbose                     bool

	unignored []string // lines that the .gitignore that is there lacks
}

// firstFleet is what the first files are made of.
type firstFleet struct {
	Name       string
	Clusters   []firstCluster // the first one is the canary
	Kubeconfig string         // empty: as the daemon's configuration says
	Allow      []config.Allowance
	URL, Path  string
	Poll       string
}

type firstCluster struct {
	Name    string
	Context string // empty: the name
}

// begin writes a new monorepo.
func (o *initOptions) begin(cmd *cobra.Command) error {
	if err := o.checkFree(); err != nil {
		return err
	}
	f, err := o.firstFleet(cmd)
	if err != nil {
		return err
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	if err := o.write(cmd, files); err != nil {
		return err
	}
	o.next(cmd.OutOrStdout(), "swell check", "swell run      # swell watch, in another terminal, shows the waves")
	return nil
}

// checkFree refuses a folder that has a monorepo, or is in one.
func (o *initOptions) checkFree() error {
	switch info, err := os.Stat(o.in.path(o.dir)); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return o.in.named(err)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s: a file, want a folder", o.dir)
	}
	if root, err := o.in.findMonorepo(o.dir); err == nil {
		return hinted{fmt.Errorf("%s: a monorepo of swell already", filepath.Join(root, repositoryFile)), "swell check says what is wrong with it, if anything"}
	}
	return nil
}

// firstFleet is what the flags say, and what the user answers where they do not.
func (o *initOptions) firstFleet(cmd *cobra.Command) (*firstFleet, error) {
	f := &firstFleet{}
	ask := questionsOn(cmd)
	var err error
	if f.Name, err = o.repositoryName(ask); err != nil {
		return nil, err
	}
	if err := o.findClusters(ask, f); err != nil {
		return nil, err
	}
	return f, o.findGit(f)
}

// repositoryName is the name of the monorepo.
func (o *initOptions) repositoryName(ask *questions) (string, error) {
	name := o.name
	if name == "" {
		dir, err := o.in.realPath(o.dir)
		if err != nil {
			return "", err
		}
		name = ask.text("name of the monorepo", asLabel(filepath.Base(dir)))
	}
	if !document.IsLabel(name) {
		return "", hinted{fmt.Errorf("name %q: want at most 63 lower-case letters, digits and -, like shop", name), "--name gives another one"}
	}
	return name, nil
}

// asLabel is a text as a DNS label; empty where nothing of it can be one.
func asLabel(text string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	for strings.Contains(label, "--") {
		label = strings.ReplaceAll(label, "--", "-")
	}
	return strings.Trim(label[:min(len(label), 63)], "-")
}

// findClusters finds the clusters, and how they are reached.
func (o *initOptions) findClusters(ask *questions, f *firstFleet) error {
	file, contexts, err := o.contexts()
	if len(o.clusters) == 0 {
		if err != nil {
			return hinted{fmt.Errorf("--cluster: which clusters? %w", err), "--kubeconfig names the file with their contexts"}
		}
		var names []string
		for _, c := range contexts {
			names = append(names, c.Name)
		}
		answer := ask.text("clusters, the canary first, from the contexts "+strings.Join(names, ", "), strings.Join(names, " "))
		if !ask.asks {
			return hinted{fmt.Errorf("--cluster: which clusters? The contexts of %s are %s", file, document.Some(names, 10)),
				"like --cluster " + strings.Join(firstWords(names), " --cluster ") + "; the first one is the canary"}
		}
		o.clusters = strings.Fields(strings.ReplaceAll(answer, ",", " "))
	}
	f.Kubeconfig = file
	if err != nil {
		fmt.Fprintf(ask.out, "swell: note: %v: %s names it all the same\n", err, daemonFile)
	}
	return f.add(o.clusters, contexts)
}

// firstWords are clusters to show in an example.
func firstWords(contexts []string) (words []string) {
	for _, name := range contexts[:min(len(contexts), 2)] {
		word := name
		if label := asLabel(name); label != name {
			word = label + "=" + name
		}
		words = append(words, word)
	}
	return words
}

// contexts are those of the kubeconfig.
func (o *initOptions) contexts() (file string, contexts []fleet.Context, err error) {
	file = o.kubeconfig
	if file == "" {
		file, _, _ = strings.Cut(o.in.getenv("KUBECONFIG"), string(filepath.ListSeparator))
	}
	if file == "" {
		home := o.in.getenv("HOME")
		if home == "" {
			return "", nil, errors.New("$HOME is not defined")
		}
		file = filepath.Join(home, ".kube", "config")
	}
	if file, err = o.in.absolute(file); err != nil {
		return "", nil, err
	}
	contexts, err = fleet.Contexts(file)
	return file, contexts, err
}

// add takes clusters, each NAME or NAME=CONTEXT. A NAME that is no label is a context.
func (f *firstFleet) add(words []string, contexts []fleet.Context) error {
	var errs []error
	for _, word := range words {
		c, err := firstClusterOf(word, contexts)
		if err == nil && slices.ContainsFunc(f.Clusters, func(other firstCluster) bool { return other.Name == c.Name }) {
			err = fmt.Errorf("--cluster %s: there are two of this name", word)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f.Clusters = append(f.Clusters, c)
		for _, context := range contexts {
			if context.Name == c.contextName() {
				f.Allow = append(f.Allow, context.Needs...)
			}
		}
	}
	slices.Sort(f.Allow)
	f.Allow = slices.Compact(f.Allow)
	return errors.Join(errs...)
}

func (c firstCluster) contextName() string {
	if c.Context != "" {
		return c.Context
	}
	return c.Name
}

func firstClusterOf(word string, contexts []fleet.Context) (firstCluster, error) {
	var names []string
	for _, context := range contexts {
		names = append(names, context.Name)
	}
	name, context, given := strings.Cut(word, "=")
	c := firstCluster{Name: name}
	if given && context != name {
		c.Context = context
	}
	if !given && !document.IsLabel(name) {
		c = firstCluster{Name: asLabel(name), Context: name}
	}
	switch {
	case !document.IsLabel(c.Name):
		return c, fmt.Errorf("--cluster %s: want a name of lower-case letters, digits and -, like eu=%s", word, word)
	case contexts != nil && !slices.Contains(names, c.contextName()):
		return c, fmt.Errorf("--cluster %s: the kubeconfig has no context %q%s", word, c.contextName(), document.DidYouMean(c.contextName(), names))
	}
	return c, nil
}

// findGit finds what the daemon follows: a local repository is looked at often.
func (o *initOptions) findGit(f *firstFleet) error {
	root := o.in.gitRoot(o.dir)
	below, err := o.in.relative(root, o.dir)
	if err != nil {
		return err
	}
	if below != "." {
		f.Path = filepath.ToSlash(below)
	}
	if f.URL = o.url; f.URL == "" {
		f.URL = source.Origin(o.in.path(o.dir))
	}
	if f.URL == "" {
		up, err := o.in.relative(o.dir, root)
		if err != nil {
			return err
		}
		f.URL, f.Poll = filepath.ToSlash(up), "2s"
	}
	return nil
}

// files are all that are written, by their paths in the folder.
func (f *firstFleet) files() ([]txtar.File, error) {
	text, err := f.fill(firstFiles)
	if err != nil {
		return nil, err
	}
	files := txtar.Parse(text).Files
	for i := range files {
		files[i].Data = append(bytes.TrimSpace(files[i].Data), '\n')
	}
	daemon, err := f.daemon()
	return append(files, daemon...), err
}

// daemon is the configuration of a daemon, and what keeps that out of Git.
func (f *firstFleet) daemon() ([]txtar.File, error) {
	text, err := f.fill(firstDaemon)
	if err != nil {
		return nil, err
	}
	if _, problems := config.ReadDaemon(daemonFile, text); len(problems) > 0 {
		return nil, problems
	}
	return []txtar.File{{Name: daemonFile, Data: text}, {Name: ".gitignore", Data: []byte(ignoredByGit)}}, nil
}

// ignoredByGit are the daemon's configuration, its state, and nothing of the monorepo.
const ignoredByGit = "/daemon.yaml\n/.swell/\n"

func (f *firstFleet) fill(text string) ([]byte, error) {
	t, err := template.New("").Funcs(template.FuncMap{"quote": func(s string) string { return fmt.Sprintf("%q", s) }}).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, f)
	return out.Bytes(), err
}

// write writes files that are not there yet: none of them when one is. A file that
// keeps things out of Git stays, and its lines are printed.
func (o *initOptions) write(cmd *cobra.Command, files []txtar.File) error {
	files = slices.DeleteFunc(files, func(file txtar.File) bool {
		content, err := o.in.readFile(filepath.Join(o.dir, file.Name))
		if err != nil || file.Name != ".gitignore" {
			return false
		}
		for line := range strings.Lines(string(file.Data)) {
			if !slices.Contains(strings.Split(string(content), "\n"), strings.TrimSpace(line)) {
				fmt.Fprintf(cmd.ErrOrStderr(), "swell: .gitignore is there already: add %s to it\n", strings.TrimSpace(line))
				o.unignored = append(o.unignored, strings.TrimSpace(line))
			}
		}
		return true
	})
	if o.dry {
		_, err := cmd.OutOrStdout().Write(txtar.Format(&txtar.Archive{Files: files}))
		return err
	}
	if err := os.MkdirAll(o.in.path(o.dir), 0o755); err != nil {
		return o.in.named(err)
	}
	if err := writeMissing(o.in.path(o.dir), files); err != nil {
		return o.in.named(err)
	}
	for _, file := range files {
		fmt.Fprintln(cmd.OutOrStdout(), path.Join(filepath.ToSlash(o.dir), file.Name))
	}
	return nil
}

// next prints the commands that go on.
func (o *initOptions) next(w io.Writer, commands ...string) {
	if o.dry {
		return
	}
	fmt.Fprint(w, "\nNext:\n")
	if o.dir != "." {
		fmt.Fprintf(w, "  cd %s\n", o.dir)
	}
	if len(o.unignored) > 0 {
		fmt.Fprintf(w, "  printf '%s\\n' >> .gitignore\n", strings.Join(o.unignored, `\n`))
	}
	commit := `git add . && git commit -m "swell"`
	if _, err := os.Lstat(o.in.path(filepath.Join(o.in.gitRoot(o.dir), ".git"))); err != nil {
		commit = "git init -b main && " + commit
	}
	for _, command := range append([]string{commit}, commands...) {
		fmt.Fprintf(w, "  %s\n", command)
	}
}
