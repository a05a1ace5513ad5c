// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/forge"
)

// posted is what was posted on a pull request. The zero value is nothing.
type posted struct {
	Comment int64  `json:"comment,omitempty"`
	Digest  string `json:"digest,omitempty"` // of what the comment says
	Token   string `json:"token,omitempty"`  // of the page
	// Read is the head at which the comment was last read.
	Read config.Commit `json:"read,omitempty"`
	// The status, and the commit that has it.
	Head  config.Commit `json:"head,omitempty"`
	State forge.State   `json:"state,omitempty"`
	Text  string        `json:"text,omitempty"`
	URL   string        `json:"url,omitempty"`
	// Report is the commit, and the digest, of what a check run shows.
	Report string `json:"report,omitempty"`
	// On is the project that all this is on, see [Options].
	On string `json:"on,omitempty"`
	// Gone says that the pull request was closed, or is into another branch, and that this
	// was told.
	Gone bool `json:"gone,omitempty"`
}

// keptFor is how long the page of a pull request that was closed is shown.
const keptFor = 30 * 24 * time.Hour

// files is the folder of previews of a project.
type files struct{ dir, project string }

func (f files) pull(number int) string {
	return filepath.Join(f.dir, "pulls", strconv.Itoa(number)+".json")
}

func (f files) make() error {
	return errors.Join(os.MkdirAll(filepath.Join(f.dir, "pulls"), 0o700), os.MkdirAll(filepath.Join(f.dir, "pages"), 0o700))
}

// read is what was posted; the zero value where that is not known.
func (f files) read(number int) (is posted) {
	content, err := os.ReadFile(f.pull(number))
	if err != nil || json.Unmarshal(content, &is) != nil || is.Token != "" && !isToken(is.Token) || is.On != f.project {
		return posted{} // comments are found again on the forge
	}
	return is
}

func (f files) write(number int, is posted) error {
	is.On = f.project
	content, err := json.Marshal(is)
	if err != nil {
		return err
	}
	return replace(f.pull(number), content)
}

func (f files) page(token, html string) error {
	return replace(f.pageOf(token), []byte(html))
}

func (f files) pageOf(token string) string {
	return filepath.Join(f.dir, "pages", token+".html")
}

// replace writes a file whole or not at all. Somebody may have deleted the folder.
func replace(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(name, content, 0o600, renameio.WithTempDir(filepath.Dir(name)))
}

// maxPages is how many bytes all pages may have. Where they have more, those go that were
// written first.
const maxPages = 1 << 30

// sweep deletes what was written long ago of pull requests that are not there any more, and
// pages where they are too many. stray are those that are not there, of which that was not told.
func (f files) sweep(now time.Time, there map[int]bool) (stray []int, err error) {
	kept := map[string]bool{}
	err = f.each("pulls", func(path string, info fs.FileInfo) error {
		number, _ := strconv.Atoi(strings.TrimSuffix(info.Name(), ".json"))
		is := f.read(number)
		if is == (posted{}) || is.Gone && !there[number] && now.Sub(info.ModTime()) >= keptFor {
			return old(path, info, now)
		}
		kept[is.Token] = true
		if !is.Gone && !there[number] {
			stray = append(stray, number)
		}
		return nil
	})
	var pages []fs.FileInfo
	size := int64(0)
	err = errors.Join(err, f.each("pages", func(path string, info fs.FileInfo) error {
		if !kept[strings.TrimSuffix(info.Name(), ".html")] {
			return old(path, info, now)
		}
		pages = append(pages, info)
		size += info.Size()
		return nil
	}))
	slices.SortFunc(pages, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range pages {
		if size <= maxPages {
			break
		}
		size -= info.Size()
		err = errors.Join(err, os.Remove(filepath.Join(f.dir, "pages", info.Name())))
	}
	return stray, err
}

// old deletes a file that nobody wrote for an hour.
func old(path string, info fs.FileInfo, now time.Time) error {
	if now.Sub(info.ModTime()) < time.Hour {
		return nil
	}
	return os.Remove(path)
}

func (f files) each(folder string, do func(string, fs.FileInfo) error) error {
	entries, err := os.ReadDir(filepath.Join(f.dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		info, gone := entry.Info()
		if gone == nil {
			err = errors.Join(err, do(filepath.Join(f.dir, folder, entry.Name()), info))
		}
	}
	return err
}

// newToken is 128 random bits.
func newToken() string {
	bits := make([]byte, 16)
	_, _ = rand.Read(bits) // it never fails
	return hex.EncodeToString(bits)
}

var isToken = regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString
