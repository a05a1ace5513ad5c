// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Error is what a forge answered in place of what was asked for.
type Error struct {
	Status int    // of HTTP, from 400
	Text   string // the forge's words, in a line
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// IsNotFound says that a forge does not have, or does not show, what was asked for.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound, http.StatusGone) }

// IsUnauthorized says that the credential is no good.
func IsUnauthorized(err error) bool { return hasStatus(err, http.StatusUnauthorized) }

// IsDenied says that the credential is no good, or has no right to do what was asked for.
func IsDenied(err error) bool {
	return hasStatus(err, http.StatusUnauthorized, http.StatusForbidden)
}

// IsRefusal says that a forge refused one request, and may well take others.
func IsRefusal(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status < http.StatusInternalServerError && e.Status != http.StatusUnauthorized
}

// IsFinal says that a forge will not do what was asked for: it has no such thing, or enough of
// it. GitHub says so of a commit that it does not have, and after a thousand statuses. With
// [IsNotFound], it may be that the credential was not let in.
func IsFinal(err error) bool {
	return hasStatus(err, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity)
}

func hasStatus(err error, statuses ...int) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, status := range statuses {
		if e.Status == status {
			return true
		}
	}
	return false
}

// failed says what failed for an error of an SDK. The URL's path is no news: the text says
// what was asked for. Its host is, where the forge itself said nothing.
func failed(err error, what string, args ...any) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
		if at, cause := hostOf(u.URL), (*netError)(nil); at != "" && errors.As(err, &cause) {
			err = fmt.Errorf("%s: %w", at, err)
		}
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

// hostOf is a URL without its path; empty: it has no host.
func hostOf(text string) string {
	at, err := url.Parse(text)
	if err != nil || at.Host == "" {
		return ""
	}
	return at.Scheme + "://" + at.Host
}

// netError means that no answer came, or none that a forge gives.
type netError struct{ error }

func (e *netError) Unwrap() error { return e.error }

// LimitError means that a forge takes no more requests before some time.
type LimitError struct {
	Until time.Time
	// Own says that the bound is our own, which keeps clear of the forge's: nothing was
	// refused.
	Own bool
}

func (e *LimitError) Error() string {
	return "the forge takes no more requests before " + e.Until.UTC().Format("15:04:05 MST")
}

// A request that failed is tried again after retryFirst, then twice as long, up to retryLast.
const retryFirst, retryLast = 5 * time.Second, 10 * time.Minute

// Pause is how long to wait before the next try, after so many failures in a row, from 1.
func Pause(failures int) time.Duration {
	return min(retryFirst<<min(failures-1, 20), retryLast)
}

// Tries is what failed in a row. The zero value is nothing.
type Tries struct {
	Failed int
	Next   time.Time // no try before
}

// Fail takes note of a failure. The next try is after [Pause], or after least where that is
// longer.
func (t *Tries) Fail(now time.Time, least time.Duration) {
	t.Failed++
	t.Next = now.Add(max(Pause(t.Failed), least))
}

const (
	answerTime = 30 * time.Second // for one request
	maxAnswer  = 32 << 20         // bytes: a page of a hundred comments of 65,536 characters, in JSON
	maxRefusal = 16 << 10         // bytes of an answer that is an error
	maxText    = 300              // bytes of what it says
	// leastPause is how long nothing is asked after a forge refused too many requests
	// without saying for how long: GitHub asks for at least a minute.
	leastPause = time.Minute
	mostPause  = time.Hour
)

// transport carries the requests of one account. It adds the credential, to requests to the
// forge alone; makes errors of all answers from 400 on; and asks nothing while the forge
// takes no more.
type transport struct {
	base      http.RoundTripper
	host      string // of the API
	authorize func(*http.Request) error
	writes    *rate.Limiter // of requests that write; nil: no bound
	now       func() time.Time

	mu    sync.Mutex
	until time.Time // nothing is asked before
}

// client is an HTTP client for the SDK of a forge.
func (c *Config) client(api string, writes *rate.Limiter, authorize func(*http.Request) error) (*http.Client, error) {
	at, err := document.WebURL(api)
	if err != nil {
		return nil, fmt.Errorf("forge: API: %w", err)
	}
	t := &transport{base: c.Transport, host: at.Host, authorize: authorize, writes: writes, now: c.Now}
	return &http.Client{Transport: t, Timeout: answerTime, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Host != at.Host || next.URL.Scheme != at.Scheme || len(via) > 3 {
			return fmt.Errorf("redirected to %s: the forge's URL is another one", next.URL.Host)
		}
		return nil
	}}, nil
}

// bearer is a credential of a token.
func bearer(header, prefix string, token func() (string, error)) func(*http.Request) error {
	return func(r *http.Request) error {
		text, err := token()
		if err != nil {
			return err
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) || text == "" {
			return errors.New("the token is empty, or no token")
		}
		r.Header.Set(header, prefix+text)
		return nil
	}
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.host {
		return nil, fmt.Errorf("host %s is not the forge's", r.URL.Host)
	}
	if limit := t.closed(r); limit != nil {
		return nil, limit
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "swell")
	if err := t.authorize(r); err != nil {
		return nil, err
	}
	answer, err := t.base.RoundTrip(r)
	switch {
	case err != nil:
		return nil, &netError{err}
	case answer.StatusCode < 300:
		if err := whole(answer); err != nil {
			return nil, &netError{err}
		}
		return answer, nil
	case answer.StatusCode < 400: // the client follows it
		answer.StatusCode = keeping(answer.StatusCode, r.Method)
		return answer, nil
	}
	defer answer.Body.Close()
	content, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal)) // an error is one anyway
	text := refusal(content)
	var sent config.Redactor
	sent.AddLogin("", credential(r.Header))
	text = document.Cut(sent.RedactAnswer(text), maxText) // proxies tell what they were sent
	if pause, limited := t.pause(answer, text); limited {
		until := t.now().Add(pause)
		t.mu.Lock()
		t.until = until
		t.mu.Unlock()
		return nil, &LimitError{Until: until}
	}
	return nil, &Error{answer.StatusCode, text}
}

// keeping is a status of a redirect with which the client keeps the method and the body of a request that
// writes. Browsers made a GET of a POST that was answered with 301 or 302, and so does the client; forges
// that renamed a repository mean the same request there.
func keeping(status int, method string) int {
	if method == http.MethodGet || method == http.MethodHead {
		return status
	}
	switch status {
	case http.StatusMovedPermanently:
		return http.StatusPermanentRedirect
	case http.StatusFound:
		return http.StatusTemporaryRedirect
	}
	return status
}

// whole reads an answer, and holds it against the form that all answers of forges have. The
// SDKs take null for an object, and panic later.
func whole(answer *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	err = errors.Join(err, answer.Body.Close())
	switch {
	case err != nil:
		return err
	case len(content) > maxAnswer:
		return fmt.Errorf("the forge's answer has more than %d MiB", maxAnswer>>20)
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	if answer.StatusCode == http.StatusNoContent {
		return nil
	}
	return isAnswer(content)
}

// isAnswer says why a text is no object, and no list of objects, in JSON; nil: it is one. It
// does not repeat the text, which may have what was sent.
func isAnswer(content []byte) error {
	content = bytes.TrimSpace(content)
	var objects []*struct{}
	switch {
	case len(content) == 0:
		return errors.New("the answer is empty, and no JSON")
	case content[0] == '<':
		return errors.New("the answer is a web page, and no JSON: is this the forge's URL?")
	case content[0] == '{' && json.Valid(content):
		return nil
	case json.Unmarshal(content, &objects) != nil || objects == nil || slices.Contains(objects, nil):
		return errors.New("the answer is no object, and no list of objects, in JSON: either this is not the forge's URL, or the forge has a fault of its own")
	}
	return nil
}

// credential is the token that a request has; empty: none.
func credential(header http.Header) string {
	_, token, ok := strings.Cut(header.Get("Authorization"), " ")
	if !ok {
		token = header.Get("PRIVATE-TOKEN")
	}
	return token
}

// closed says until when nothing is asked; nil: something is. A write that is redirected counts once.
func (t *transport) closed(r *http.Request) *LimitError {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.until) {
		return &LimitError{Until: t.until}
	}
	if t.writes == nil || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Response != nil {
		return nil
	}
	reserved := t.writes.ReserveN(now, 1)
	if wait := reserved.DelayFrom(now); wait > 0 {
		reserved.CancelAt(now)
		return &LimitError{Until: now.Add(wait), Own: true}
	}
	return nil
}

// pause is for how long nothing is to be asked after an answer, and whether anything but a
// pause helps. Both of GitHub's limits answer with 403 or 429; with 503 a forge may say how long
// it is closed.
func (t *transport) pause(answer *http.Response, text string) (pause time.Duration, limited bool) {
	header := answer.Header
	after, reset := header.Get("Retry-After"), header.Get("X-RateLimit-Reset")
	if reset == "" {
		reset = header.Get("RateLimit-Reset") // GitLab
	}
	spent := header.Get("X-RateLimit-Remaining") == "0"
	limited = answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable && after != "" ||
		answer.StatusCode == http.StatusForbidden && (after != "" || spent || strings.Contains(text, "secondary rate limit"))
	if !limited {
		return 0, false
	}
	pause = leastPause
	if seconds, err := strconv.Atoi(after); err == nil {
		pause = time.Duration(min(max(seconds, 0), int(mostPause/time.Second))) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		pause = at.Sub(t.now())
	} else if unix, err := strconv.ParseInt(reset, 10, 64); err == nil && (spent || answer.StatusCode == http.StatusTooManyRequests) {
		pause = time.Unix(unix, 0).Sub(t.now())
	}
	return min(max(pause, time.Second), mostPause), true
}

// refusal is what an answer says, in a line: all forges say it in JSON.
func refusal(content []byte) string {
	var said struct {
		Message any    `json:"message"`
		Error   string `json:"error"`
	}
	text := string(content)
	if json.Unmarshal(content, &said) == nil {
		switch m := said.Message.(type) {
		case string:
			text = m
		case nil:
			text = said.Error
		default: // GitLab has lists by field
			text = fmt.Sprint(m)
		}
	}
	return document.Printable(strings.Join(strings.Fields(text), " "))
}
