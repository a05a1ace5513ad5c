// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// commonText are the words, one a line and in order, that tell nothing of a
// secret: those of field names, kinds and values of Kubernetes, of swell's own
// messages, names of common programs, and well-known ports. Passwords that programs
// come with are none, unless a field has the name.
//
//go:embed commonwords.txt
var commonText string

var commonWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.Lines(commonText) {
		words[strings.TrimSpace(word)] = true
	}
	return words
})

// CommonWords says whether a text is common words and nothing else.
func CommonWords(text string) bool {
	s := search{text: text}
	return !slices.Contains(s.commonBytes(), false)
}

// betweenWords are bytes that stand between the words of messages and values.
const betweenWords = " \t\n.,:;/-_=@\"'()[]{}<>|"

// commonBytes says of every byte of the text whether it is of a common word, or
// stands between words.
func (s *search) commonBytes() []bool {
	if s.common != nil {
		return s.common
	}
	s.common = make([]bool, len(s.text))
	for i := range len(s.text) {
		s.common[i] = strings.IndexByte(betweenWords, s.text[i]) >= 0
	}
	eachWord(s.text, func(from, to int) {
		if word := lower(s.text[from:to]); commonWords()[word] || s.words[word] {
			for i := from; i < to; i++ {
				s.common[i] = true
			}
		}
	})
	return s.common
}

// isCommon says whether a form of a secret is one common word, with or without
// signs around it.
func (s *search) isCommon(form string) bool {
	in := search{text: form, words: s.words}
	return !slices.Contains(in.commonBytes(), false) && countWords(form) == 1
}

func countWords(text string) (n int) {
	eachWord(text, func(int, int) { n++ })
	return n
}

// eachWord calls f with where each word of a text begins and ends: letters and
// digits, in camel case up to the next capital; clusterIPs is cluster and IPs.
func eachWord(text string, f func(from, to int)) {
	for from := 0; from < len(text); {
		if !isWordAt(text, from) {
			from++
			continue
		}
		to := from + 1
		for isWordAt(text, to) && !beginsWord(text, to) {
			to++
		}
		f(from, to)
		from = to
	}
}

// beginsWord says whether a letter within a run of them begins another word.
func beginsWord(text string, i int) bool {
	if !isCapitalAt(text, i) {
		return false
	}
	smallAfter := isWordAt(text, i+1) && !isCapitalAt(text, i+1)
	plural := smallAfter && text[i+1] == 's' && (!isWordAt(text, i+2) || isCapitalAt(text, i+2))
	return !isCapitalAt(text, i-1) || smallAfter && !plural
}

func isCapitalAt(text string, i int) bool { return i < len(text) && text[i] >= 'A' && text[i] <= 'Z' }

func isWordAt(text string, i int) bool {
	return isCapitalAt(text, i) || i < len(text) && isWordByte(text[i])
}
