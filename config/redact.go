// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/sops"
)

// Redactor hides texts that may be secrets in what people read: messages,
// differences, refusals of a server. It finds a text as it is, in quotes,
// escaped, in base64 or hexadecimal, in other case, and parts of it. It is the
// second line of defence: messages about a place that may hold a secret, see
// [SecretPlaces], have no value in them in the first place.
//
// In messages, words that everybody knows ("postgres", field names) are shown where
// they are all that stands there of a secret: swell wrote most of them itself. A
// secret of several of them is hidden as a whole. In values, see
// [Redactor.RedactValue], no word is an exception: `postgres://user:oracle@host`
// says what a password is by where it stands.
//
// The zero value and nil hide nothing. It is safe for concurrent use once all
// texts are in it.
type Redactor struct {
	texts []string
	known map[string]bool
	words map[string]bool // see Know
}

const (
	// shownPart is how many bytes of a secret in a row are hidden wherever
	// they stand. Fewer would hide words that stand in every message.
	shownPart = 8
	// quotedPart is the same for a text that is withheld as a whole.
	quotedPart = 5
	// shortest is the length in bytes from which a secret that is shorter than
	// shownPart is hidden, where it stands as a word of its own.
	shortest = 4
	// guessed is the length of a secret that hides nothing: it is in every message.
	guessed = 2
)

// Know adds names that stand in messages, such as fields of kinds: they are shown
// as common words are.
func (r *Redactor) Know(names ...string) {
	if r.words == nil {
		r.words = map[string]bool{}
	}
	for _, name := range names {
		eachWord(name, func(from, to int) { r.words[lower(name[from:to])] = true })
	}
}

// Add adds a text that may be a secret; an empty one is none, and the scheme of
// a URL is no part of one. What sops encrypted is none either.
func (r *Redactor) Add(text string) {
	if sops.IsEncrypted(text) {
		return
	}
	if scheme, rest, ok := strings.Cut(text, "://"); ok && len(scheme) < shownPart {
		text = rest
	}
	if text = strings.TrimSpace(text); text == "" || r.known[text] {
		return
	}
	if r.known == nil {
		r.known = map[string]bool{}
	}
	r.known[text] = true
	r.texts = append(r.texts, text)
	if len(text) < shortest {
		return
	}
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(plain) {
		r.Add(string(plain))
	}
}

// AddValue adds the texts and numbers of a value as JSON has it, all the way
// down. The keys of mappings are added where [PlainKey] says no.
func (r *Redactor) AddValue(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if !document.PlainKey(key) {
				r.Add(behindColon(key))
			}
			r.AddValue(below)
		}
	case []any:
		for _, below := range v {
			r.AddValue(below)
		}
	case string:
		r.Add(v)
	case json.Number:
		r.Add(v.String())
	case int64:
		r.Add(strconv.FormatInt(v, 10))
	case float64:
		r.Add(strconv.FormatFloat(v, 'f', -1, 64))
	}
}

// Texts are what was added, in order, and what they decode to.
func (r *Redactor) Texts() []string {
	if r == nil {
		return nil
	}
	return r.texts
}

// Empty says whether nothing is hidden.
func (r *Redactor) Empty() bool { return r == nil || len(r.texts) == 0 }

// Redact is the text with [Redacted] in place of secrets and of parts of them.
func (r *Redactor) Redact(text string) string {
	if r.Empty() || text == "" {
		return text
	}
	return r.redact(newSearch(text, shownPart, r.words))
}

// RedactAll redacts texts in place; the secrets are gone through once.
func (r *Redactor) RedactAll(texts []*string) {
	if r.Empty() || len(texts) == 0 {
		return
	}
	const separator = "\x00" // no secret goes over it: no YAML has one
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = strings.ReplaceAll(*text, separator, " ")
	}
	for i, text := range strings.Split(r.redact(newSearch(strings.Join(all, separator), shownPart, r.words)), separator) {
		*texts[i] = text
	}
}

func (r *Redactor) redact(s *search) string {
	for _, text := range r.texts {
		for i, form := range forms(text) {
			s.mark(form, i == 0)
		}
	}
	return s.redacted()
}

// inValue is Redact of a text that is a value.
func (r *Redactor) inValue(text string) string {
	if text == "" {
		return text
	}
	return r.redact(newValueSearch(text, shownPart))
}

// RedactValue is a value as JSON has it with its texts redacted: common words too,
// short secrets as words of their own, and parts of secrets with other signs between
// their words. Keys are redacted as messages are, and so are the fields that name an
// object or its kind. Parts without a secret are shared with the value given.
func (r *Redactor) RedactValue(value any) any { return r.RedactField("", value) }

// RedactField is [Redactor.RedactValue] of the value of a field.
func (r *Redactor) RedactField(field string, value any) any {
	if r.Empty() {
		return value
	}
	switch v := value.(type) {
	case string:
		if isNaming[field] {
			return r.Redact(v)
		}
		return r.inValue(v)
	case json.Number:
		if text := r.inValue(v.String()); text != v.String() {
			return text
		}
	case map[string]any:
		redacted := make(map[string]any, len(v))
		for key, below := range v {
			redacted[r.Redact(key)] = r.RedactField(key, below)
		}
		return redacted
	case []any:
		redacted := make([]any, len(v))
		for i, below := range v {
			redacted[i] = r.RedactValue(below)
		}
		return redacted
	}
	return value
}

// isNaming are the fields that name an object or its kind. What they have is in messages
// too, and the password that is the same word is not there.
var isNaming = map[string]bool{"apiVersion": true, "kind": true, "apiGroup": true, "name": true, "namespace": true}

// Quotes says whether a message may show a secret, or a part of one. It is for
// messages of servers and libraries, and of expressions, which may have changed a
// value. It finds more than [Redactor.Redact], and the caller withholds the whole
// message then.
func (r *Redactor) Quotes(message string) bool {
	if r.Empty() {
		return false
	}
	return r.quotes(newSearch(message, quotedPart, r.words), lower(strings.Join(strings.Fields(message), " ")))
}

// QuotedIn are those of the texts that a value may show, common words too, and parts as long as
// a redactor hides them.
// The value is indexed once for all of them.
func QuotedIn(value string, texts []string) (quoted []string) {
	if len(texts) == 0 {
		return nil
	}
	s, folded := newValueSearch(value, shownPart), lower(strings.Join(strings.Fields(value), " "))
	for _, text := range texts {
		var r Redactor
		if r.Add(text); r.quotes(s, folded) {
			quoted = append(quoted, text)
		}
	}
	return quoted
}

// quotes is Quotes of a message that is indexed, and that is folded: in lower case,
// with single spaces.
func (r *Redactor) quotes(s *search, folded string) bool {
	for _, text := range r.texts {
		if len(text) <= guessed {
			continue
		}
		for i, form := range forms(text) {
			short := strings.Join(strings.Fields(form), " ")
			if len(short) <= quotedPart && (s.inValue || !s.isCommon(short)) && strings.Contains(folded, short) {
				return true
			}
			if found := s.mark(form, i == 0); found == secret || s.inValue && found == wordOnly {
				return true
			}
		}
	}
	return false
}

// forms are the ways in which a text may stand in a message, in lower case.
func forms(text string) []string {
	all := []string{lower(text)}
	add := func(form string) {
		if form = lower(form); form != all[0] {
			all = append(all, form)
		}
	}
	quoted := strconv.Quote(text)
	add(quoted[1 : len(quoted)-1])
	ascii := strconv.QuoteToASCII(text)
	add(ascii[1 : len(ascii)-1])
	if encoded, err := json.Marshal(text); err == nil {
		add(string(encoded[1 : len(encoded)-1]))
	}
	add(url.QueryEscape(text))
	add(url.PathEscape(text))
	if strings.Contains(text, "'") {
		add(strings.ReplaceAll(text, "'", "''"))
	}
	add(escapedXML(text))
	if len(text) < shortest {
		return append(all, lower(base64.StdEncoding.EncodeToString([]byte(text))))
	}
	for skip := range 3 { // wherever it begins in what is encoded
		part := []byte(text[skip:])
		encoded := base64.RawStdEncoding.EncodeToString(part[:len(part)/3*3])
		if skip == 0 {
			encoded = base64.StdEncoding.EncodeToString(part)
		}
		if encoded == "" {
			continue
		}
		add(encoded)
		if strings.ContainsAny(encoded, "+/") {
			add(strings.NewReplacer("+", "-", "/", "_").Replace(encoded))
		}
	}
	add(hex.EncodeToString([]byte(text)))
	return all
}

func escapedXML(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(text)
}

// lower is the text with ASCII letters in lower case: as long as it was.
func lower(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 'A' && r <= 'Z' }) < 0 {
		return text
	}
	b := []byte(text)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// search looks for parts of secrets in a text. It is the text that is indexed,
// once for all secrets: it is short, and secrets may be large.
type search struct {
	text, lower string
	words       map[string]bool // common ones beside those of everybody
	spaced      *search         // of the text with one space between words; of a value only
	from        []int           // where a byte of spaced stands in the text, and the text's end
	inValue     bool            // no word is an exception
	part        int             // how many bytes in a row are a part
	at          map[uint64]*spot
	before      []int
	hidden      []level // by byte
	common      []bool  // by byte: it is of a common word, or between words; nil until it is asked for
}

// spot is a part of the text.
type spot struct {
	last  int   // where it was last seen; search.before holds those before it
	found level // what is known of it once a secret has it
}

// level says what bytes of a text are.
type level byte

const (
	plain    level = iota // of no secret
	wordOnly              // of a secret, and no more than common words
	secret
)

func newSearch(text string, part int, words map[string]bool) *search {
	s := &search{text: text, lower: lower(text), part: part, words: words, at: map[uint64]*spot{}, hidden: make([]level, len(text)), before: make([]int, len(text))}
	for i := 0; i+part <= len(text); i++ {
		key := s.key(s.lower[i : i+part])
		if at := s.at[key]; at != nil {
			s.before[i], at.last = at.last, i
		} else {
			s.before[i], s.at[key] = -1, &spot{last: i}
		}
	}
	return s
}

// newValueSearch is newSearch in a value.
func newValueSearch(text string, part int) *search {
	s := newSearch(text, part, nil)
	spaced, from := oneSpace(text)
	s.spaced, s.from, s.inValue = newSearch(spaced, part, nil), from, true
	s.spaced.inValue = true
	return s
}

// oneSpace is the text with one space for what stands between words, escaped line
// breaks too, and where each of its bytes comes from.
func oneSpace(text string) (string, []int) {
	text = escapedSpace.Replace(text)
	var b strings.Builder
	var from []int
	for i := range len(text) {
		c := text[i]
		if strings.IndexByte(betweenWords, c) >= 0 {
			if i > 0 && strings.IndexByte(betweenWords, text[i-1]) >= 0 {
				continue
			}
			c = ' '
		}
		b.WriteByte(c)
		from = append(from, i)
	}
	return b.String(), append(from, len(text))
}

// escapedSpace keeps the length of a text.
var escapedSpace = strings.NewReplacer(`\n`, "  ", `\r`, "  ", `\t`, "  ")

func (s *search) key(part string) uint64 {
	var key uint64
	for i := range len(part) {
		key = key<<8 | uint64(part[i])
	}
	return key
}

// mark marks a form of a secret and its parts, and says what was found of it. asIs says
// that it is neither escaped nor encoded.
func (s *search) mark(form string, asIs bool) level {
	if asIs && isOrdinary(form) {
		return s.markOrdinary(form)
	}
	found := s.markForm(form)
	if s.spaced == nil {
		return found
	}
	spaced, _ := oneSpace(form)
	if spaced = strings.TrimSpace(spaced); strings.Contains(spaced, " ") {
		found = max(found, s.spaced.markForm(spaced))
	}
	return found
}

func (s *search) markForm(form string) (found level) {
	if len(form) < s.part {
		return s.markWord(form)
	}
	mask := uint64(1)<<(8*s.part) - 1 // all of it for 8 bytes
	var key uint64
	whole, words := true, false
	for i := range len(form) {
		if key = (key<<8 | uint64(form[i])) & mask; i+1 < s.part {
			continue
		}
		at := s.at[key]
		if at == nil {
			whole = false
			continue
		}
		s.markSpot(at)
		found, words = max(found, at.found), words || at.found == wordOnly
	}
	if whole && words { // all of a secret of several words
		found = max(found, s.each(form, func(from, to int) bool { return s.inValue || countWords(s.text[from:to]) != 1 }))
	}
	return found
}

// markSpot marks a part wherever it stands.
func (s *search) markSpot(at *spot) {
	if at.found != plain {
		return
	}
	for i := at.last; i >= 0; i = s.before[i] {
		what := wordOnly
		if slices.Contains(s.commonBytes()[i:i+s.part], false) {
			what = secret
		}
		s.hide(i, i+s.part, what)
		at.found = max(at.found, what)
	}
}

// longestOrdinary is in bytes; a longer word was not found in a dictionary.
const longestOrdinary = 15

// isOrdinary says whether a form of a secret is one word of letters, as people think them
// up: no part of it tells anything, and it may well be the name of a field or a group.
func isOrdinary(form string) bool {
	return len(form) <= longestOrdinary && strings.Trim(form, "abcdefghijklmnopqrstuvwxyz") == ""
}

// markOrdinary hides an ordinary word where it stands alone as a value may: in no name, and
// in a message only where it is no word that messages have. To hide it there would cut our own text, and
// would tell the word to everybody who knows that text.
func (s *search) markOrdinary(word string) level {
	if len(word) <= guessed || !s.inValue && (len(word) < shownPart || s.isCommon(word)) {
		return plain
	}
	return s.each(word, func(from, to int) bool { return s.isWord(from, to) && !s.isInName(from, to) })
}

// markWord hides a short form where it is a word of its own.
func (s *search) markWord(form string) level {
	if len(form) <= guessed || !s.inValue && (len(form) < shortest || s.isCommon(form)) {
		return plain
	}
	return s.each(form, s.isWord)
}

// isWord says whether these bytes are a word of their own.
func (s *search) isWord(from, to int) bool {
	return !(from > 0 && isWordByte(s.lower[from-1])) && !(to < len(s.lower) && isWordByte(s.lower[to]))
}

// isInName says whether a word is a part of a name with dots: of a group
// (source.toolkit.fluxcd.io) or of a path (spec.source).
func (s *search) isInName(from, to int) bool {
	before := from > 1 && s.text[from-1] == '.' && strings.IndexByte(" \t\n\x00", s.text[from-2]) < 0
	after := to+1 < len(s.lower) && s.text[to] == '.' && isWordByte(s.lower[to+1])
	return before || after
}

// each hides a form wherever it stands as is wanted.
func (s *search) each(form string, wanted func(from, to int) bool) (found level) {
	for from := 0; ; {
		i := strings.Index(s.lower[from:], form)
		if i < 0 {
			return found
		}
		if start := from + i; wanted(start, start+len(form)) {
			s.hide(start, start+len(form), secret)
			found = secret
		}
		from += i + 1
	}
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

func (s *search) hide(from, to int, what level) {
	for i := from; i < to; i++ {
		s.hidden[i] = max(s.hidden[i], what)
	}
}

// redacted is the text with one word for each run of hidden bytes. Common words
// are hidden with what they stand beside, and in a value where there are two or more.
func (s *search) redacted() string {
	if s.spaced != nil {
		for i, what := range s.spaced.hidden {
			s.hide(s.from[i], s.from[i+1], what)
		}
	}
	if !slices.Contains(s.hidden, secret) && !(s.inValue && slices.Contains(s.hidden, wordOnly)) {
		return s.text
	}
	var b strings.Builder
	for i := 0; i < len(s.text); {
		run, what := i, plain
		for run < len(s.text) && (s.hidden[run] != plain || run > i && !utf8.RuneStart(s.text[run])) {
			what = max(what, s.hidden[run])
			run++
		}
		switch {
		case run == i:
			b.WriteByte(s.text[i])
			run++
		case what == secret, s.inValue && s.wholeWords(i, run) > 1:
			hidden := s.text[i:run]
			rest := strings.TrimLeft(hidden, " ") // the spaces around it are of the text
			b.WriteString(hidden[:len(hidden)-len(rest)])
			b.WriteString(document.Redacted)
			b.WriteString(rest[len(strings.TrimRight(rest, " ")):])
		default:
			b.WriteString(s.text[i:run])
		}
		i = run
	}
	return strings.ToValidUTF8(b.String(), "")
}

// wholeWords is how many words stand between two places of the text.
func (s *search) wholeWords(from, to int) (n int) {
	eachWord(s.text[from:to], func(first, last int) {
		if s.isWord(from+first, from+last) {
			n++
		}
	})
	return n
}
