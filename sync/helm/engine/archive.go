// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Bounds of the archives of one chart, all of them together.
const (
	maxArchive  = 64 << 20 // bytes, unpacked
	maxFiles    = 10_000
	maxMetadata = 1 << 20 // bytes of a Chart.yaml
	maxDepth    = 8       // archives in each other
)

var errTooLarge = fmt.Errorf("unpacks to more than %d MiB", maxArchive>>20)

// budget is what the archives of a chart may still unpack to. Helm reads each archive
// whole, and bounds each alone.
type budget struct {
	bytes int64
	files int
}

func newBudget() *budget { return &budget{maxArchive, maxFiles} }

// within reads from an archive as long as the budget lasts.
type within struct {
	io.Reader
	*budget
}

func (w within) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if w.bytes -= int64(n); w.bytes < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// isCharts says whether Helm takes a file of a chart for an archive of another one.
func isCharts(name string) bool {
	inside, ok := strings.CutPrefix(name, "charts/")
	return ok && !strings.Contains(inside, "/") && strings.HasSuffix(inside, ".tgz") && !strings.HasPrefix(inside, "_") && !strings.HasPrefix(inside, ".")
}

// check reads an archive, and those in it, before Helm does. It refuses what Helm takes for
// something else: links for empty files, the second of two files of a name in addition. at
// is where it stands; empty for the chart itself.
func (b *budget) check(content []byte, at string, depth int) error {
	if err := b.read(content, at, depth); err != nil {
		if at != "" && !strings.HasPrefix(err.Error(), at) {
			return fmt.Errorf("%s: %w", at, err)
		}
		return err
	}
	return nil
}

func (b *budget) read(content []byte, at string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("stands in more than %d archives in each other", maxDepth)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("no .tgz: %w", damage(err))
	}
	bounded := within{unzipped, b}
	in := tar.NewReader(bounded)
	seen := map[string]string{} // by the name in the chart
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = b.file(in, head, seen, at, depth)
		}
		if err != nil {
			return damage(err)
		}
	}
	if _, err := io.Copy(io.Discard, bounded); err != nil { // the checksum is at the end
		return damage(err)
	}
	if len(seen) == 0 {
		return errors.New("has no files")
	}
	return nil
}

// damage says what an error of the readers means.
func damage(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return errors.New("the archive is cut short")
	case errors.Is(err, gzip.ErrChecksum):
		return errors.New("the archive is damaged: its checksum is another one")
	case errors.Is(err, gzip.ErrHeader):
		return errors.New("it is not compressed with gzip")
	case errors.Is(err, tar.ErrHeader):
		return errors.New("the archive is damaged, or holds no tar")
	}
	return err
}

// file looks at one file of an archive.
func (b *budget) file(in io.Reader, head *tar.Header, seen map[string]string, at string, depth int) error {
	name := strings.ReplaceAll(head.Name, "\\", "/") // of an archive made on Windows
	switch head.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		return nil
	case tar.TypeReg:
	case tar.TypeSymlink, tar.TypeLink:
		return fmt.Errorf("%s is a link to %s: want plain files only in the archive", head.Name, head.Linkname)
	default:
		return fmt.Errorf("%s is a device or a pipe: want plain files only in the archive", head.Name)
	}
	if b.files--; b.files < 0 {
		return fmt.Errorf("has more than %d files", maxFiles)
	}
	_, inside, below := strings.Cut(name, "/")
	switch clean := path.Clean(name); {
	case path.IsAbs(name) || path.IsAbs(inside):
		return fmt.Errorf("%s: an absolute name, want files in a folder of the archive", head.Name)
	case clean == ".." || strings.HasPrefix(clean, "../") || strings.HasPrefix(path.Clean(inside), "../"):
		return fmt.Errorf("%s leads out of the archive", head.Name)
	case !below:
		return fmt.Errorf("%s stands in no folder: want the chart in a folder of the archive, as `helm package` makes it", head.Name)
	}
	inside = path.Clean(inside)
	if first, twice := seen[inside]; twice {
		return fmt.Errorf("%s stands twice in the archive, as %s and %s", inside, first, head.Name)
	}
	seen[inside] = head.Name
	if inside == "Chart.yaml" && head.Size > maxMetadata {
		return fmt.Errorf("%s is larger than %d MiB", inside, maxMetadata>>20)
	}
	if !isCharts(inside) {
		return nil
	}
	if head.Size > b.bytes { // holes of a sparse file take no bytes of the archive
		return fmt.Errorf("has more than %d MiB", maxArchive>>20)
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return b.check(content, path.Join(at, inside), depth+1)
}
