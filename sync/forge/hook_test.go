// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"
)

func mac(secret, text string) []byte {
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(text))
	return sum.Sum(nil)
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestReadHook(t *testing.T) {
	const secret = "wave after wave"
	const pull = `{"action":"synchronize","number":7,"pull_request":{"number":7}}`
	const push = `{"ref":"refs/heads/release/1","after":"aa"}`
	const merge = `{"object_kind":"merge_request","object_attributes":{"iid":9,"action":"update","oldrev":"aa"}}`
	key := base64.StdEncoding.EncodeToString([]byte("the key of gitlab"))
	standard := base64.StdEncoding.EncodeToString(mac("the key of gitlab", "id-1.1700000000."+merge))
	for _, test := range []struct {
		name, body, secret string
		header             http.Header
		want               Event
	}{
		{"GitHub", pull, secret, header("X-GitHub-Event", "pull_request", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac(secret, pull))), Event{Pull: 7}},
		{"Gitea", push, secret, header("X-Gitea-Event", "push", "X-Gitea-Signature", hex.EncodeToString(mac(secret, push))), Event{Push: true, Branch: "release/1"}},
		{"GitLab token", merge, secret, header("X-Gitlab-Event", "Merge Request Hook", "X-Gitlab-Token", secret), Event{Pull: 9}},
		{"GitLab signature", merge, "whsec_" + key, header("X-Gitlab-Event", "Merge Request Hook", "webhook-id", "id-1", "webhook-timestamp", "1700000000", "webhook-signature", "v1,AAAA v1,"+standard), Event{Pull: 9}},
		{"a tag", `{"ref":"refs/tags/v1"}`, secret, header("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", secret), Event{Branch: "refs/tags/v1"}},
		{"a test", `{"zen":"..."}`, secret, header("X-GitHub-Event", "ping", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac(secret, `{"zen":"..."}`))), Event{}},
		{"a negative number", `{"number":-3}`, secret, header("X-GitHub-Event", "pull_request", "X-Gitlab-Token", secret), Event{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ReadHook(test.header, []byte(test.body), []byte(test.secret))
			if err != nil || got != test.want {
				t.Errorf("ReadHook = %+v, %v; want %+v", got, err, test.want)
			}
			if _, err := ReadHook(test.header, []byte(test.body+" "), []byte(test.secret)); test.header.Get("X-Gitlab-Token") == "" && !errors.Is(err, ErrNotProved) {
				t.Errorf("of another body: %v", err)
			}
			for _, wrong := range []string{"", "wave after wav", secret + "x", "whsec_" + base64.StdEncoding.EncodeToString([]byte("another"))} {
				if _, err := ReadHook(test.header, []byte(test.body), []byte(wrong)); !errors.Is(err, ErrNotProved) {
					t.Errorf("with the secret %q: %v", wrong, err)
				}
			}
		})
	}
	for name, h := range map[string]http.Header{
		"none":      header("X-GitHub-Event", "push"),
		"empty":     header("X-GitHub-Event", "push", "X-Hub-Signature-256", "", "X-Gitea-Signature", "", "X-Gitlab-Token", "", "webhook-signature", ""),
		"no digits": header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=zz", "X-Gitea-Signature", "zz", "webhook-signature", "v1,%%"),
		"SHA-1":     header("X-GitHub-Event", "push", "X-Hub-Signature", "sha1=0000"),
	} {
		if _, err := ReadHook(h, []byte(push), []byte(secret)); !errors.Is(err, ErrNotProved) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadHook(header("X-Gitlab-Token", secret), []byte("payload=%7B%7D"), []byte(secret)); err == nil || errors.Is(err, ErrNotProved) {
		t.Errorf("a form: %v", err)
	}
}
