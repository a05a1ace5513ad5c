// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxColumns = 140
	tabColumns = 4
)

// finding is one break of a rule: columns, names or comments.
type finding struct {
	file string
	line int
	rule string
	text string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.rule, f.text) }

// inspect returns the findings in files, in the order of the files and by line. Generated
// files have none.
func inspect(tree fs.FS, files []string, w *words) ([]finding, error) {
	found := make([][]finding, len(files))
	failed := make([]error, len(files))
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range files {
		free <- struct{}{}
		wait.Go(func() {
			found[i], failed[i] = inspectFile(tree, name, w)
			<-free
		})
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(found...), nil
}

func inspectFile(tree fs.FS, name string, w *words) ([]finding, error) {
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var found []finding
	report := func(line int, rule, format string, args ...any) {
		found = append(found, finding{name, line, rule, fmt.Sprintf(format, args...)})
	}
	reportName := func(line int, name string) {
		if word, instead := w.inName(name); word != "" {
			report(line, "names", "%s: not %q but %s", name, word, instead)
		}
	}
	for i, line := range strings.Split(string(source), "\n") {
		if n := columns(line); n > maxColumns {
			report(i+1, "columns", "%d, want at most %d", n, maxColumns)
		}
	}
	reportName(1, strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test"))
	for _, id := range declared(file) {
		reportName(set.Position(id.Pos()).Line, id.Name)
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			first := set.Position(comment.Pos()).Line
			for i, line := range strings.Split(comment.Text, "\n") {
				for _, match := range w.comments.FindAllString(line, -1) {
					report(first+i, "comments", "not %q but %s", match, w.instead[strings.ToLower(match)])
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.line - b.line })
	return found, nil
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
}

// declared returns the names that a file declares, a variable each time that := has it. The
// package's own, and the methods that package errors asks for, are not among them.
func declared(file *ast.File) (names []*ast.Ident) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil || n.Name.Name != "Is" && n.Name.Name != "As" {
				names = append(names, n.Name)
			}
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.LabeledStmt:
			names = append(names, n.Label)
		case *ast.ImportSpec:
			if n.Name != nil {
				names = append(names, n.Name)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				names = append(names, identifiers(n.Lhs...)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				names = append(names, identifiers(n.Key, n.Value)...)
			}
		}
		return true
	})
	return names
}

func identifiers(all ...ast.Expr) (names []*ast.Ident) {
	for _, e := range all {
		if id, ok := e.(*ast.Ident); ok {
			names = append(names, id)
		}
	}
	return names
}
