// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/object"
)

// blameWriter writes answers, with what the history knows.
type blameWriter struct {
	ctx     context.Context
	out     io.Writer
	history *history
}

func decodeObject(o *object.Object) any {
	decoder := json.NewDecoder(bytes.NewReader(o.JSON))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err) // it is canonical JSON of our own
	}
	return value
}

func (w *blameWriter) text(a *answer) error {
	if a.single {
		return w.single(a)
	}
	fmt.Fprintf(w.out, "%s of %s on %s\n", a.id, a.unit, targetsText(a.targets))
	table := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	for _, f := range a.fields {
		who, err := w.who(f.origins[0])
		if err != nil {
			return err
		}
		on := ""
		if f.targets != nil {
			on = "  (on " + targetsText(f.targets) + ")"
		}
		fmt.Fprintf(table, "%s%s\t%s\t%s: %s%s\n", who, placeText(f.origins[0]), f.origins[0].Kind, f.field, valueText(f.value), on)
	}
	return table.Flush()
}

// single writes all that is known of one field.
func (w *blameWriter) single(a *answer) error {
	for _, f := range a.fields {
		targets := f.targets
		if targets == nil {
			targets = a.targets
		}
		fmt.Fprintf(w.out, "%s %s: %s\n  on %s\n", a.id, f.field, valueText(f.value), targetsText(targets))
		table := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
		for _, o := range f.origins {
			who, err := w.who(o)
			if err != nil {
				return err
			}
			line := fmt.Sprintf("  %s\t%s\t%s%s\t%s", o.Role, o.Kind, who, placeText(o), oneLine(o.Text))
			fmt.Fprintln(table, strings.TrimRight(line, "\t"))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// who is a column with who wrote an origin; nothing without a history.
func (w *blameWriter) who(o blame.Origin) (string, error) {
	if w.history == nil {
		return "", nil
	}
	by, err := w.history.writer(w.ctx, o)
	return by.short() + "\t", err
}

func placeText(o blame.Origin) string {
	if o.Whole {
		return document.Position{File: o.File}.String()
	}
	return document.Position{File: o.File, Line: o.Line}.String()
}

// oneLine is a text fit for a line of a table or a comment.
func oneLine(text string) string {
	return document.Printable(strings.Join(strings.Fields(text), " "))
}

const longValue = 60 // runes of a value in a line

func valueText(value any) string {
	text := fmt.Sprint(value)
	switch v := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "{}"
	case []any:
		return "[]"
	case string:
		if first, more, cut := strings.Cut(v, "\n"); cut && more != "" || v == "" {
			text = fmt.Sprintf("%q", first)
			if more != "" {
				text += fmt.Sprintf(" and %d lines", 1+strings.Count(strings.TrimSuffix(more, "\n"), "\n"))
			}
			return document.Printable(text)
		}
		text = strings.TrimSuffix(text, "\n")
	}
	if runes := []rune(text); len(runes) > longValue {
		text = string(runes[:longValue]) + "..."
	}
	return document.Printable(text)
}

const fewTargets = 4 // that are named

func targetsText(targets []config.TargetName) string {
	if len(targets) == 1 {
		return string(targets[0])
	}
	var names []string
	for _, t := range targets[:min(len(targets), fewTargets)] {
		names = append(names, string(t))
	}
	if len(targets) > fewTargets {
		names = append(names, "...")
	}
	return fmt.Sprintf("%d targets: %s", len(targets), strings.Join(names, ", "))
}

type jsonOrigin struct {
	blame.Origin
	*writer
}

type jsonField struct {
	Field   string              `json:"field"`
	Value   any                 `json:"value"`
	Targets []config.TargetName `json:"targets"`
	Origins []jsonOrigin        `json:"origins"`
}

func (w *blameWriter) data(format string, a *answer) error {
	out := struct {
		APIVersion string              `json:"apiVersion"`
		Kind       string              `json:"kind"`
		Object     string              `json:"object"`
		Unit       config.UnitPath     `json:"unit"`
		Targets    []config.TargetName `json:"targets"`
		Fields     []jsonField         `json:"fields"`
	}{config.APIVersion, "Blame", a.id.String(), a.unit, a.targets, []jsonField{}}
	for _, f := range a.fields {
		field := jsonField{f.field, f.value, f.targets, nil}
		if f.targets == nil {
			field.Targets = a.targets
		}
		for _, o := range f.origins {
			by, err := w.history.writer(w.ctx, o)
			if err != nil {
				return err
			}
			field.Origins = append(field.Origins, jsonOrigin{o, by})
		}
		out.Fields = append(out.Fields, field)
	}
	return writeData(w.out, format, out)
}
