// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

func vendorChartCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var version, folder string
	cmd := &cobra.Command{
		Use:   "chart REFERENCE",
		Short: "Explain how to bring a Helm chart into the monorepo",
		Long: `Print the commands that bring a Helm chart into the monorepo, and the HelmChart to
write. Nothing is fetched, run or written: swell renders charts of the tree alone, so
that a commit says all that it brings to clusters.

REFERENCE is as helm takes it:
  oci://registry.example.com/charts/redis           a chart of an OCI registry
  oci://registry.example.com/charts/redis:1.2.3     the same with its version
  bitnami/redis                                     a repository that helm knows, and a chart
  https://example.com/charts/redis-1.2.3.tgz        an archive

Charts of that name that are in the monorepo already are named first.

Exit codes: 0 printed, 2 not.`,
		Example: `  swell vendor chart oci://registry.example.com/charts/redis --version 1.2.3
  swell vendor chart bitnami/redis --version 1.2.3 --to third-party/charts`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			chart, err := parseChartReference(args[0], version)
			if err != nil {
				return err
			}
			if !fs.ValidPath(folder) {
				return fmt.Errorf("--to %q: want a folder of the monorepo, by its path from the root", folder)
			}
			tree, _, err := where.open(where.argument(nil, 0))
			if err != nil {
				return err
			}
			return chart.explain(cmd.OutOrStdout(), folder, config.Load(tree, nil))
		},
	}
	where.flags(cmd)
	cmd.Flags().StringVar(&version, "version", "", "version of the chart, exactly")
	cmd.Flags().StringVar(&folder, "to", "charts", "folder of the monorepo for charts")
	return cmd
}

// chartReference is a chart that somebody publishes.
type chartReference struct {
	ref           string // as helm pull takes it
	repository    string // that helm has to know; empty for none
	name, version string
	digest        string // sha256:..., in place of a version
	archive       string // the file's name where ref is the address of one
}

var (
	chartName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	chartVersion = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+_-]+)?$`)
	archiveName  = regexp.MustCompile(`^(.+?)-(v?[0-9]+\.[0-9]+\.[0-9]+.*)\.tgz$`)
)

const referenceHint = "want oci://REGISTRY/PATH/CHART, REPOSITORY/CHART or https://.../CHART-VERSION.tgz"

func parseChartReference(ref, version string) (*chartReference, error) {
	if mayHavePassword(ref) {
		return nil, fmt.Errorf("%s: want an address without a password, and give helm --username and --password", document.WithoutUser(ref))
	}
	c := &chartReference{ref: ref, version: version}
	if version != "" && !chartVersion.MatchString(version) {
		return nil, hinted{fmt.Errorf("--version %q: want an exact version, like 1.2.3", version), "a range would bring another chart another day"}
	}
	if strings.ContainsFunc(ref, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`'"$\;&|<>`+"`", r) }) {
		return nil, hinted{fmt.Errorf("%q: no reference of a chart", ref), referenceHint}
	}
	scheme, rest, has := strings.Cut(ref, "://")
	var err error
	switch {
	case has && scheme == "oci":
		err = c.ofRegistry(rest)
	case has && (scheme == "https" || scheme == "http"):
		err = c.ofAddress()
	case has:
		err = hinted{fmt.Errorf("%q: helm pull takes no %s://", ref, scheme), referenceHint}
	default:
		err = c.ofRepository()
	}
	if err != nil {
		return nil, err
	}
	if !chartName.MatchString(c.name) {
		return nil, hinted{fmt.Errorf("%q: %q is no name of a chart", ref, c.name), referenceHint}
	}
	if c.version == "" && c.digest == "" && c.archive == "" {
		return nil, hinted{fmt.Errorf("%s: which version?", ref), fmt.Sprintf("--version says it; `helm show chart %s` prints the newest one", ref)}
	}
	return c, nil
}

// mayHavePassword says that a reference names a user, and so may have a password, which no
// error repeats. What stands behind @ may be the digest of an OCI image, too.
func mayHavePassword(ref string) bool {
	if !strings.Contains(ref, "@") {
		return false
	}
	u, err := url.Parse(ref)
	return err != nil || u.User != nil || strings.Contains(u.Opaque, "@") // user:password@host/path has a scheme for Go
}

// give sets the version that the reference itself has.
func (c *chartReference) give(version string) error {
	if c.version != "" && c.version != version {
		return fmt.Errorf("%s: has the version %s, and --version says %s", c.ref, version, c.version)
	}
	c.version = version
	return nil
}

func (c *chartReference) ofRegistry(rest string) error {
	if !strings.Contains(strings.Trim(rest, "/"), "/") {
		return hinted{fmt.Errorf("%s: names a registry and no chart", c.ref), referenceHint}
	}
	at, digest, _ := strings.Cut(rest, "@")
	c.digest = digest
	c.name = path.Base(at)
	name, tag, tagged := strings.Cut(c.name, ":")
	if !tagged {
		return nil
	}
	c.name = name
	last := strings.LastIndex(c.ref, "/"+name) // before it, a registry may have a port
	c.ref = c.ref[:last] + strings.Replace(c.ref[last:], ":"+tag, "", 1)
	return c.give(strings.ReplaceAll(tag, "_", "+")) // a tag of OCI may have no +
}

func (c *chartReference) ofAddress() error {
	u, err := url.Parse(c.ref)
	if err != nil {
		return hinted{fmt.Errorf("%q: no URL", document.Shorten(c.ref)), referenceHint}
	}
	file := path.Base(u.Path)
	if !strings.HasSuffix(file, ".tgz") {
		return hinted{fmt.Errorf("%s: no .tgz; is it the address of a repository?", c.ref), fmt.Sprintf("`helm repo add NAME %s` makes it known, and the reference is NAME/CHART", c.ref)}
	}
	c.archive, c.name = file, strings.TrimSuffix(file, ".tgz")
	if m := archiveName.FindStringSubmatch(file); m != nil {
		c.name = m[1]
		return c.give(m[2])
	}
	return nil
}

func (c *chartReference) ofRepository() error {
	repository, name, ok := strings.Cut(c.ref, "/")
	if !ok || repository == "" || repository == "." || repository == ".." || strings.Contains(name, "/") {
		return hinted{fmt.Errorf("%q: no reference of a chart", c.ref), referenceHint + "; a chart on this machine is copied into the monorepo"}
	}
	c.repository, c.name = repository, name
	return nil
}

// file is what helm pull calls the archive.
func (c *chartReference) file() string {
	switch {
	case c.archive != "":
		return c.archive
	case c.version == "":
		return c.name + "-VERSION.tgz"
	}
	return c.name + "-" + c.version + ".tgz"
}

func (c *chartReference) pull() string {
	if c.archive != "" || c.digest != "" {
		return "helm pull " + c.ref
	}
	return "helm pull " + c.ref + " --version " + c.version
}

// explain prints how the chart comes into a folder of the monorepo.
func (c *chartReference) explain(w io.Writer, folder string, r *config.Repository) error {
	have, err := chartsNamed(r.Tree, c.name)
	if err != nil {
		return err
	}
	for _, h := range have {
		fmt.Fprintf(w, "%s has %s already.\n", h.path, strings.TrimSpace(c.name+" "+h.version))
	}
	if len(have) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "swell fetches nothing. In the folder of the monorepo, run:")
	fmt.Fprintln(w)
	if c.repository != "" {
		fmt.Fprintf(w, "  helm repo add %s URL    # unless helm knows it: the chart's documentation has the URL\n", c.repository)
	}
	fmt.Fprintf(w, "  mkdir -p %s\n  %s --destination %s\n  git add %s\n", folder, c.pull(), folder, path.Join(folder, c.file()))
	unit := "services"
	for _, f := range r.UnitFolders() {
		if !strings.ContainsAny(f, "*!") && f != "." {
			unit = f
			break
		}
	}
	fmt.Fprintf(w, `
Then write %s, or the like in another unit's folder:

  apiVersion: swell.sh/v1
  kind: HelmChart
  metadata: {name: %s}    # the name of the release, too
  spec:
    chart: /%s
    namespace: %s
    values: {}

To have the chart's files in reviews, unpack it: add --untar --untardir %s in place of
--destination %s, and write chart: /%s. swell check says what the chart lacks.
`, path.Join(unit, strings.ToLower(c.name), "chart.yaml"), strings.ToLower(c.name), path.Join(folder, c.file()), strings.ToLower(c.name), folder, folder, path.Join(folder, c.name))
	return nil
}

// vendored is a chart in the tree.
type vendored struct{ path, version string }

// chartsNamed are the charts of a name in a tree, but those in other charts.
func chartsNamed(tree config.Tree, name string) (found []vendored, err error) {
	var within []string
	err = fs.WalkDir(tree, ".", func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			if e == nil || !e.IsDir() {
				return err
			}
			return nil // an odd name in it, which swell check tells
		}
		if slices.ContainsFunc(within, func(chart string) bool { return strings.HasPrefix(at, chart+"/charts/") }) {
			return nil
		}
		if m := archiveName.FindStringSubmatch(path.Base(at)); m != nil && m[1] == name && !e.IsDir() {
			found = append(found, vendored{at, m[2]})
		}
		if path.Base(at) != "Chart.yaml" || e.IsDir() {
			return nil
		}
		content, err := tree.ReadFile(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		within = append(within, path.Dir(at))
		var metadata struct{ Name, Version string }
		if yaml.Unmarshal(content, &metadata) == nil && metadata.Name == name { // swell check tells what cannot be read
			found = append(found, vendored{path.Dir(at), metadata.Version})
		}
		return nil
	})
	return found, err
}
