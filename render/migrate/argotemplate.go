// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config/document"
)

// argoTemplate fills in the templates of an ApplicationSet.
type argoTemplate struct {
	goTemplate bool
	options    []string
}

// maxTemplated is the longest text that a template may make, in bytes.
const maxTemplated = 1 << 20

// value is a value with all texts in it filled in.
func (t *argoTemplate) value(value any, params map[string]any) (any, error) {
	switch v := value.(type) {
	case string:
		return t.text(v, params)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, below := range v {
			name, err := t.text(key, params)
			if err != nil {
				return nil, err
			}
			if out[name], err = t.value(below, params); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, below := range v {
			var err error
			if out[i], err = t.value(below, params); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

var parameter = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

func (t *argoTemplate) text(text string, params map[string]any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	if !t.goTemplate {
		return parameter.ReplaceAllStringFunc(text, func(found string) string {
			value, known := params[strings.TrimSpace(strings.Trim(found, "{}"))]
			if !known {
				return found
			}
			return fmt.Sprint(value)
		}), nil
	}
	parsed, err := template.New("").Funcs(templateFunctions).Option(t.known()...).Parse(text)
	if err != nil {
		return "", fmt.Errorf("the template %s: %s", quoted(text), document.Printable(err.Error()))
	}
	out := &bounded{}
	if err := parsed.Execute(out, params); err != nil {
		return "", fmt.Errorf("the template %s: %s", quoted(text), document.Printable(err.Error()))
	}
	return out.String(), nil
}

// known are the options that text/template has; it panics for others.
func (t *argoTemplate) known() (options []string) {
	for _, option := range t.options {
		switch option {
		case "missingkey=error", "missingkey=zero", "missingkey=default", "missingkey=invalid":
			options = append(options, option)
		}
	}
	return options
}

// bounded is a text that does not grow without end.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxTemplated {
		return 0, fmt.Errorf("makes more than %d bytes", maxTemplated)
	}
	return b.Builder.Write(p)
}

// templateFunctions are those of Argo CD, less those that could take memory without end.
var templateFunctions = func() template.FuncMap {
	all := template.FuncMap{}
	for name, f := range sprig.HermeticTxtFuncMap() {
		all[name] = f
	}
	for _, name := range []string{"repeat", "until", "untilStep", "seq", "indent", "nindent", "getHostByName", "genPrivateKey", "genCA", "genSelfSignedCert", "genSignedCert", "bcrypt", "htpasswd", "derivePassword"} {
		delete(all, name)
	}
	all["normalize"] = normalizeName
	all["slugify"] = func(args ...any) string { return asLabel(fmt.Sprint(args[len(args)-1])) }
	all["toYaml"] = func(value any) string { return strings.TrimSuffix(yamlText(value), "\n") }
	all["fromYaml"] = func(text string) (value map[string]any, err error) {
		err = yaml.Unmarshal([]byte(text), &value)
		return value, err
	}
	return all
}()

var notInNames = regexp.MustCompile(`[^-a-z0-9.]`)

// normalizeName is a text as Argo CD makes it a name.
func normalizeName(text string) string {
	text = notInNames.ReplaceAllString(strings.ToLower(text), "-")
	if len(text) > 253 {
		text = text[:253]
	}
	return strings.Trim(text, "-.")
}
