// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swell-sh/swell/config/document"
)

var (
	// userInfo is the part of a URL before its host, which has a password or a token.
	userInfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*)://([^\s/?#"'<>]*)@`)
	// queryPart is one of the values in the query of a URL.
	queryPart = regexp.MustCompile(`[?&]([^=&#\s"']+)=([^&#\s"']+)`)
	beginsKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)
	keyLine   = regexp.MustCompile(`^[A-Za-z0-9+/=]+$`)
)

// credentials are the parts of a text that let somebody in, whatever field the text is in: the
// password of a URL, or its user where that stands alone, values of its query whose names
// say so, and the lines of a private key. What a program puts in later is none: $(PASSWORD).
func credentials(text string) (found []string) {
	if strings.Contains(text, "://") {
		for _, m := range userInfo.FindAllStringSubmatch(text, -1) {
			user, password, both := strings.Cut(m[2], ":")
			if !both && strings.HasPrefix(strings.ToLower(m[1]), "http") {
				password = user
			}
			found = append(found, password)
		}
		for _, m := range queryPart.FindAllStringSubmatch(text, -1) {
			if namesSecret(m[1]) {
				found = append(found, m[2])
			}
		}
	}
	if beginsKey.MatchString(text) {
		lines := strings.Split(text, "\n")
		for i, inKey := range InPrivateKey(lines) {
			if line := strings.TrimSpace(lines[i]); inKey && keyLine.MatchString(line) {
				found = append(found, line)
			}
		}
	}
	return slices.DeleteFunc(found, func(text string) bool {
		return text == "" || text[0] == '$' || strings.HasPrefix(text, "{{") || strings.Trim(text, "*.") == ""
	})
}

// InPrivateKey says of each line of a text whether it is of a private key in PEM, be it indented
// right or wrong.
func InPrivateKey(lines []string) []bool {
	within := make([]bool, len(lines))
	inside := false
	for i, line := range lines {
		switch line = strings.TrimSpace(line); {
		case beginsKey.MatchString(line):
			inside = true
		case inside && strings.Contains(line, "-----END"):
			within[i], inside = true, false
		}
		within[i] = within[i] || inside
	}
	return within
}

// namesSecret says whether a key of a mapping names a value that lets somebody in. One that ends
// in the word for a name or a file names where such a value is.
func namesSecret(key string) bool {
	key = strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(key))
	for _, end := range []string{"name", "names", "ref", "file", "path", "enabled", "namespace"} {
		if strings.HasSuffix(key, end) {
			return false
		}
	}
	return !strings.HasPrefix(key, "existing") &&
		slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) })
}

var secretWords = []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "privatekey", "accesskey",
	"credential", "signature", "dsn"}

// AddText adds the credentials in a text of any form, such as a field, or a file that is no YAML.
func (r *Redactor) AddText(text string) {
	for _, found := range credentials(text) {
		r.Add(found)
		if decoded, err := url.PathUnescape(found); err == nil {
			r.Add(decoded)
		}
	}
}

// AddTexts adds the credentials in all texts of a value as JSON has it.
func (r *Redactor) AddTexts(value any) {
	switch v := value.(type) {
	case string:
		r.AddText(v)
	case []any:
		for _, item := range v {
			r.AddTexts(item)
		}
	case map[string]any:
		for _, item := range v {
			r.AddTexts(item)
		}
	}
}

// AddLogin adds what we say to a server to be let in: a user and a password, or a token without a user. A
// server may repeat it as it came, or in base64 as HTTP has it.
func (r *Redactor) AddLogin(user, password string) {
	if password == "" {
		user, password = "", user // a token is a user, as often as not
	}
	if password == "" {
		return
	}
	r.Add(password)
	r.Add(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
}

// AddURL adds the credentials in the address of a server, and all values of its query.
func (r *Redactor) AddURL(address string) {
	r.AddText(address)
	parsed, err := url.Parse(address)
	if err != nil {
		return
	}
	password, _ := parsed.User.Password()
	r.AddLogin(parsed.User.Username(), password)
	for part := range strings.SplitSeq(parsed.RawQuery, "&") {
		_, value, _ := strings.Cut(part, "=")
		r.Add(value) // it may come back escaped twice
		if decoded, err := url.QueryUnescape(value); err == nil {
			r.Add(decoded)
		}
	}
}

// RedactAnswer is the words of a server or a program with the secrets hidden that it was given. They are
// not our own words, so no word is an exception.
func (r *Redactor) RedactAnswer(text string) string {
	if r.Empty() {
		return text
	}
	return r.inValue(text)
}

// addNamed adds the texts below keys that name secrets.
func (r *Redactor) addNamed(n *yaml.Node, depth int) {
	if n = document.Resolved(n); depth > document.MaxDepth {
		return
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			if namesSecret(n.Content[i-1].Value) {
				r.addBelow(child, depth+1)
				continue
			}
		}
		r.addNamed(child, depth+1)
	}
}
