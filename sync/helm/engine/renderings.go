// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	helmengine "helm.sh/helm/v4/pkg/engine"

	"github.com/swell-sh/swell/render/helm"
)

// renderings are those of one request: of a chart that asks for chance, the clock or the
// zone there are several, with other answers. One that makes no difference is taken.
type renderings struct {
	*loaded
	request      *helm.Request
	capabilities *common.Capabilities
	kept         map[callSide][]reflect.Value
}

// prepare makes a chart with its dependencies, and what its templates read. Templates may
// change that, so each rendering has its own.
func (r *renderings) prepare() (*chart.Chart, common.Values, error) {
	written, _ := values(r.request)
	c := copied(r.loaded.chart)
	if err := chartutil.ProcessDependencies(c, written); err != nil {
		return nil, nil, err
	}
	options := common.ReleaseOptions{Name: r.request.Release, Namespace: r.request.Namespace, Revision: 1, IsInstall: true}
	top, err := util.ToRenderValuesWithSchemaValidation(c, written, options, r.capabilities, true)
	return c, top, err
}

func (r *renderings) chance(sides func(int) side, refused int) *chance {
	return &chance{sides: sides, refused: refused, kept: r.kept}
}

// allAlike gives all calls the same side.
func allAlike(s side) func(int) side { return func(int) side { return s } }

func (r *renderings) render(c *chance) (map[string]string, error) {
	prepared, top, err := r.prepare()
	if err != nil {
		return nil, err
	}
	return c.render(prepared, top)
}

func (c *chance) render(prepared *chart.Chart, top common.Values) (map[string]string, error) {
	e := helmengine.Engine{CustomTemplateFuncs: c.functions()}
	return e.RenderWithContext(context.Background(), prepared, top)
}

// addressText is how Go prints the address of a value.
var addressText = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// differs says what makes another rendering of the same request another one; nil for nothing.
// Objects that are left out, as those of tests are, make no difference.
func (r *renderings) differs(first *chance, rendered map[string]string) *helm.Finding {
	if finding := r.printsAddress(rendered); finding != nil {
		return finding
	}
	if first.calls == 0 || r.same(rendered, r.chance(allAlike(1), -1)) {
		return nil
	}
	for call := range min(first.calls, mostCalls) {
		alone := func(n int) side {
			if n == call {
				return 1
			}
			return 0
		}
		if !r.same(rendered, r.chance(alone, -1)) {
			return r.refused(call)
		}
	}
	return r.refused(0) // several together
}

// mostCalls is how many calls are looked at one by one.
const mostCalls = 40

// refused is the finding that a call is made, at its line.
func (r *renderings) refused(call int) *helm.Finding {
	_, err := r.render(r.chance(allAlike(0), call))
	if err == nil {
		return &helm.Finding{Text: "the chart renders to something else each time"}
	}
	finding := r.explain(err)
	return &finding
}

// printsAddress finds the address of a value in what was rendered: another process, and the
// next rendering, has another one there.
func (r *renderings) printsAddress(rendered map[string]string) *helm.Finding {
	suspect := false
	for _, text := range rendered {
		suspect = suspect || addressText.MatchString(text)
	}
	if !suspect {
		return nil
	}
	again, err := r.render(r.chance(allAlike(0), -1))
	if err != nil {
		return &helm.Finding{Text: plain(err).Error()}
	}
	if slices.Equal(r.applied(rendered), r.applied(again)) {
		return nil
	}
	for name, text := range rendered {
		if text != again[name] && !strings.HasSuffix(name, "NOTES.txt") {
			line := addressText.ReplaceAllString(firstDifference(text, again[name]), "0x...")
			return &helm.Finding{File: r.fileOf(name), Text: "prints the address of a value, which is another one each time: " + line}
		}
	}
	return nil
}

// firstDifference is the first line of a text that is another one in the other text.
func firstDifference(text, other string) string {
	others := strings.Split(other, "\n")
	for i, line := range strings.Split(text, "\n") {
		if i >= len(others) || line != others[i] {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// same says whether a rendering gives the same objects as an earlier one, but for those that
// are left out.
func (r *renderings) same(rendered map[string]string, c *chance) bool {
	again, err := r.render(c)
	if err != nil {
		return false
	}
	return slices.Equal(r.applied(rendered), r.applied(again))
}

// applied are the objects that are not left out, and the problems of others.
func (r *renderings) applied(rendered map[string]string) (texts []string) {
	var answer helm.Answer
	r.collect(r.loaded.chart, rendered, &answer)
	for i := range answer.Objects {
		if o := &answer.Objects[i]; !o.IsDropped() {
			texts = append(texts, o.File+"\n"+string(o.JSON))
		}
	}
	for _, p := range answer.Problems {
		texts = append(texts, p.File+"\n"+p.Text)
	}
	return texts
}
