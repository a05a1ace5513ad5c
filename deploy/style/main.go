// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command style looks for long lines and for words that the code does not have (words.txt)
// in the Go files that Git knows, and compares their numbers with baseline.txt. More than
// there: it prints them. Fewer: the baseline has to be lowered, which -lower does. It never
// raises the baseline, and it changes no other file.
//
// Numbers are compared by rule over all files, so code may move between files. After a new
// line of words.txt, or a merge of two baselines, remove baseline.txt and run with -lower:
// without the file, all numbers are taken.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// baselineFile is relative to the root of the repository, where the command runs.
const baselineFile = "deploy/style/baseline.txt"

//go:embed words.txt
var wordsText string

func main() {
	lower := flag.Bool("lower", false, "write the numbers of now to the baseline, when none has risen")
	flag.Parse()
	ok, err := run(*lower, os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "style: error: %v\n", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run reports whether there is nothing to do.
func run(lower bool, out io.Writer) (bool, error) {
	words, err := parseWords(wordsText)
	if err != nil {
		return false, fmt.Errorf("words.txt: %w", err)
	}
	files, err := trackedFiles()
	if err != nil {
		return false, err
	}
	findings, err := inspect(os.DirFS("."), files, words)
	if err != nil {
		return false, err
	}
	base, err := readBaseline()
	if lower && errors.Is(err, fs.ErrNotExist) {
		base, err = count(findings), nil
	}
	if err != nil {
		return false, err
	}
	above, risen, fallen := compare(base, findings)
	for _, f := range above {
		fmt.Fprintln(out, f)
	}
	switch {
	case len(risen) > 0:
		fmt.Fprintf(out, "style: %s more than in %s, in the files above\n", strings.Join(risen, ", "), baselineFile)
		return false, nil
	case lower:
		return true, os.WriteFile(baselineFile, []byte(count(findings).text()), 0o644)
	case len(fallen) > 0:
		fmt.Fprintf(out, "style: %s fewer than in %s: run go run ./deploy/style -lower\n", strings.Join(fallen, ", "), baselineFile)
		return false, nil
	}
	return true, nil
}

func readBaseline() (baseline, error) {
	text, err := os.ReadFile(baselineFile)
	if err != nil {
		return nil, err
	}
	base, err := parseBaseline(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", baselineFile, err)
	}
	return base, nil
}

// trackedFiles returns the Go files that Git knows and that exist, new ones included.
func trackedFiles() ([]string, error) {
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []string
	for name := range bytes.SplitSeq(bytes.TrimSuffix(list, []byte{0}), []byte{0}) {
		if _, err := fs.Stat(os.DirFS("."), string(name)); err == nil {
			files = append(files, string(name))
		}
	}
	return files, nil
}
