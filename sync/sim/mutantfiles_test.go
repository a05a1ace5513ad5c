// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// overlayOf writes the files that mutants break so that each function that one breaks
// stands there in its own form and in each broken one, behind a switch. It returns the
// name of the list of what stands for which file.
func overlayOf(dir string, mutants []*mutant) (list string, err error) {
	broken := map[string][]*mutant{} // by path
	for _, m := range mutants {
		for name := range m.patched {
			broken[name] = append(broken[name], m)
		}
	}
	replace := map[string]string{}
	put := func(name, content string) error {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		original, err := filepath.Abs(filepath.Join(root, name))
		replace[original] = file
		return errors.Join(err, os.WriteFile(file, []byte(content), 0o600))
	}
	for _, name := range sorted(broken) {
		original, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		content, pkg, err := switched(name, string(original), broken[name])
		if err != nil {
			return "", err
		}
		awake := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar simMutant = os.Getenv(\"SWELL_SIM_MUTANT\")\n", pkg)
		if err := errors.Join(put(name, content), put(filepath.Join(filepath.Dir(name), "simmutant.go"), awake)); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}

// goFile is a source file, and its functions by receiver and name.
type goFile struct {
	text      string
	pkg       string
	functions map[string]*ast.FuncDecl
	base      token.Pos
}

func parse(name, text string) (*goFile, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &goFile{text: text, pkg: file.Name.Name, functions: map[string]*ast.FuncDecl{}, base: file.FileStart}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			s.functions[s.header(f)] = f
		}
	}
	return s, nil
}

// of is the text between two positions.
func (s *goFile) of(from, to token.Pos) string { return s.text[from-s.base : to-s.base] }

// header is what a function is declared as.
func (s *goFile) header(f *ast.FuncDecl) string { return s.of(f.Pos(), f.Body.Pos()) }

// named is the text of a function with another name.
func (s *goFile) named(f *ast.FuncDecl, name string) string {
	return s.of(f.Pos(), f.Name.Pos()) + name + s.of(f.Name.End(), f.End()) + "\n\n"
}

// switched is a file with its broken functions beside its own, and the name of its package.
func switched(name, original string, mutants []*mutant) (content, pkg string, err error) {
	own, err := parse(name, original)
	if err != nil {
		return "", "", err
	}
	cases, bodies := map[string]string{}, map[string]string{} // by header
	for i, m := range mutants {
		broken, err := parse(name, m.patched[name])
		if err != nil {
			return "", "", err
		}
		changed := false
		for header, f := range broken.functions {
			was := own.functions[header]
			if was == nil {
				return "", "", fmt.Errorf("%s: %s: a mutant changes bodies of functions alone, not %s", m.name, name, header)
			}
			if broken.of(f.Pos(), f.End()) == own.of(was.Pos(), was.End()) {
				continue
			}
			other := fmt.Sprintf("%sMutant%d", f.Name.Name, i)
			cases[header] += fmt.Sprintf("\tcase %q:\n\t\t%s\n", m.name, own.call(was, other))
			bodies[header] += broken.named(f, other)
			changed = true
		}
		if !changed {
			return "", "", fmt.Errorf("%s: %s: no function is changed", m.name, name)
		}
	}
	content = original
	for _, f := range slices.Backward(slices.SortedFunc(maps.Values(own.functions), func(a, b *ast.FuncDecl) int { return cmp.Compare(a.Pos(), b.Pos()) })) {
		header := own.header(f)
		if cases[header] == "" {
			continue
		}
		itself := f.Name.Name + "Original"
		text := own.signature(f) + " {\n\tswitch simMutant {\n" + cases[header] + "\tdefault:\n\t\t" + own.call(f, itself) + "\n\t}\n}\n\n"
		content = content[:f.Pos()-own.base] + text + own.named(f, itself) + bodies[header] + content[f.End()-own.base:]
	}
	return content, own.pkg, nil
}

// signature declares a function with names of our own for what it is given.
func (s *goFile) signature(f *ast.FuncDecl) string {
	text := "func "
	if f.Recv != nil {
		t := f.Recv.List[0].Type
		text += "(receiver " + s.of(t.Pos(), t.End()) + ") "
	}
	params, _ := s.params(f)
	text += f.Name.Name + "(" + params + ")"
	if f.Type.Results != nil {
		text += " " + s.of(f.Type.Results.Pos(), f.Type.Results.End())
	}
	return text
}

// call hands all that [goFile.signature] is given to another function.
func (s *goFile) call(f *ast.FuncDecl, name string) string {
	text := ""
	if f.Type.Results != nil {
		text = "return "
	}
	if f.Recv != nil {
		text += "receiver."
	}
	_, args := s.params(f)
	return text + name + "(" + args + ")"
}

func (s *goFile) params(f *ast.FuncDecl) (params, args string) {
	n := 0
	for _, field := range f.Type.Params.List {
		for range max(1, len(field.Names)) {
			params += fmt.Sprintf("param%d %s, ", n, s.of(field.Type.Pos(), field.Type.End()))
			args += fmt.Sprintf("param%d", n)
			if _, more := field.Type.(*ast.Ellipsis); more {
				args += "..."
			}
			args += ", "
			n++
		}
	}
	return strings.TrimSuffix(params, ", "), strings.TrimSuffix(args, ", ")
}

// applyHunks applies the hunks of a patch to a file. Where they belong is found by their
// text, not by the numbers of lines.
func applyHunks(content, hunks string) (string, error) {
	for _, hunk := range strings.Split(hunks, "\n@@ ")[1:] {
		_, lines, _ := strings.Cut(hunk, "\n")
		var before, after strings.Builder
		for line := range strings.Lines(lines) {
			switch {
			case strings.HasPrefix(line, "-"):
				before.WriteString(line[1:])
			case strings.HasPrefix(line, "+"):
				after.WriteString(line[1:])
			default:
				before.WriteString(line[min(1, len(line)-1):])
				after.WriteString(line[min(1, len(line)-1):])
			}
		}
		if strings.Count(content, before.String()) != 1 {
			return "", errors.New("the patch does not apply: has the code changed? adapt the mutant")
		}
		content = strings.Replace(content, before.String(), after.String(), 1)
	}
	return content, nil
}
