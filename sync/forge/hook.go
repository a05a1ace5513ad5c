// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// Event is what a webhook is about. It only wakes: what is so is asked for again, so one
// that is late, doubled or replayed does no harm.
type Event struct {
	// Push says that a branch moved, and Branch which one. Pull is the number of the pull
	// request that something happened to; 0: none.
	Push   bool
	Branch string
	Pull   int
}

// ErrNotProved means that a webhook has no signature of the secret.
var ErrNotProved = errors.New("no signature of the secret")

// ReadHook checks that a webhook was sent by who knows the secret, and reads what it is
// about; the zero Event is anything else, such as a first test. It takes what GitHub
// (X-Hub-Signature-256), Gitea and Forgejo (X-Gitea-Signature), and GitLab (X-Gitlab-Token,
// or the newer webhook-signature) send.
func ReadHook(header http.Header, body, secret []byte) (Event, error) {
	if len(secret) == 0 || !proved(header, body, secret) {
		return Event{}, ErrNotProved
	}
	var said struct {
		Ref         string `json:"ref"`
		Number      int    `json:"number"`
		PullRequest *struct {
			Number int `json:"number"`
		} `json:"pull_request"`
		Attributes *struct {
			IID int `json:"iid"`
		} `json:"object_attributes"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return Event{}, errors.New("want JSON: set the content type of the webhook to application/json")
	}
	var e Event
	switch kind(header) {
	case "push", "Push Hook":
		e.Branch, e.Push = strings.CutPrefix(said.Ref, "refs/heads/")
	case "pull_request", "pull_request_sync":
		e.Pull = said.Number
		if said.PullRequest != nil && e.Pull == 0 {
			e.Pull = said.PullRequest.Number
		}
	case "Merge Request Hook":
		if said.Attributes != nil {
			e.Pull = said.Attributes.IID
		}
	}
	e.Pull = max(e.Pull, 0)
	return e, nil
}

// IsHook says that a request claims to be the webhook of a forge.
func IsHook(header http.Header) bool { return kind(header) != "" }

// kind is the name that the forge has for what happened.
func kind(header http.Header) string {
	for _, name := range []string{"X-GitHub-Event", "X-Gitea-Event", "X-Gitlab-Event"} {
		if kind := header.Get(name); kind != "" {
			return kind
		}
	}
	return ""
}

// proved compares in constant time. One proof is enough: forges that are relatives send
// several.
func proved(header http.Header, body, secret []byte) bool {
	if given, ok := strings.CutPrefix(header.Get("X-Hub-Signature-256"), "sha256="); ok && isMAC(secret, body, hex.DecodeString, given) {
		return true
	}
	if given := header.Get("X-Gitea-Signature"); given != "" && isMAC(secret, body, hex.DecodeString, given) {
		return true
	}
	if given := header.Get("X-Gitlab-Token"); given != "" && subtle.ConstantTimeCompare([]byte(given), secret) == 1 {
		return true
	}
	return provedByStandard(header, body, secret)
}

// provedByStandard is for the signature of standardwebhooks.com, which GitLab sends: of the
// id, the time and the body, with the bytes that the secret has in base64. The time is not
// judged, as a hook only wakes.
func provedByStandard(header http.Header, body, secret []byte) bool {
	if encoded, ok := strings.CutPrefix(string(secret), "whsec_"); ok {
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) == 0 {
			return false
		}
		secret = key
	}
	signed := []byte(header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + ".")
	signed = append(signed, body...)
	for given := range strings.FieldsSeq(header.Get("webhook-signature")) {
		if encoded, ok := strings.CutPrefix(given, "v1,"); ok && isMAC(secret, signed, base64.StdEncoding.DecodeString, encoded) {
			return true
		}
	}
	return false
}

func isMAC(secret, signed []byte, decode func(string) ([]byte, error), given string) bool {
	want := hmac.New(sha256.New, secret)
	want.Write(signed)
	got, err := decode(given)
	return err == nil && hmac.Equal(got, want.Sum(nil))
}
