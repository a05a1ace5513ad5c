// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-github/v92/github"

	"github.com/swell-sh/swell/config/smallfile"
)

// App is a GitHub App that is installed for the repository.
type App struct {
	// ID is the App's number or its client ID. Installation is the number of its
	// installation.
	ID           string
	Installation int64
	// KeyFile has the App's private key, as GitHub gives it: PEM. It is read for each new
	// token.
	KeyFile string
}

const (
	// jwtTime is how long the App's own proof holds: GitHub takes at most ten minutes.
	// It begins a minute ago, for clocks that differ.
	jwtTime = 8 * time.Minute
	// tokenSpare is how long before its end a token is replaced: it lasts an hour.
	tokenSpare = 5 * time.Minute
)

// appTokens are the tokens of an App's installation.
type appTokens struct {
	App
	repository string         // its name, without that of its owner
	client     *github.Client // with the App's own proof
	now        func() time.Time

	mu   sync.Mutex
	is   string
	ends time.Time
}

func (a *App) tokens(c Config, api, repository string) (*appTokens, error) {
	t := &appTokens{App: *a, repository: repository, now: c.Now}
	client, err := c.client(api, nil, bearer("Authorization", "Bearer ", t.proof))
	if err != nil {
		return nil, err
	}
	t.client, err = gitHubSDK(client, api)
	return t, err
}

// authorize gives a request a token.
func (t *appTokens) authorize(r *http.Request) error {
	token, err := t.token(r.Context())
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// token is one that holds for a while, for the repository alone.
func (t *appTokens) token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.is != "" && t.now().Before(t.ends.Add(-tokenSpare)) {
		return t.is, nil
	}
	token, _, err := t.client.Apps.CreateInstallationToken(ctx, t.Installation, &github.InstallationTokenOptions{Repositories: []string{t.repository}})
	if err != nil {
		err = failed(err, "token of installation %d of the App %s", t.Installation, t.ID)
		if IsRefusal(err) { // whatever it is, the credential is no good: nothing is said of what was asked for
			return "", &Error{http.StatusUnauthorized, err.Error()}
		}
		return "", err
	}
	t.is, t.ends = token.GetToken(), token.GetExpiresAt().Time
	return t.is, nil
}

// drop has the next request ask for a new token: GitHub takes this one no more.
func (t *appTokens) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.is = ""
}

// login is the account that the App writes as.
func (t *appTokens) login(ctx context.Context) (string, error) {
	app, _, err := t.client.Apps.Get(ctx, "")
	if err != nil {
		return "", err
	}
	return app.GetSlug() + "[bot]", nil
}

// proof is a JSON Web Token (RFC 7519) that the App signs with RS256, which is all that
// GitHub takes.
func (t *appTokens) proof() (string, error) {
	key, err := readKey(t.KeyFile)
	if err != nil {
		return "", err
	}
	now := t.now()
	head, err := segment(map[string]string{"alg": "RS256", "typ": "JWT"})
	if err != nil {
		return "", err
	}
	claims, err := segment(map[string]any{"iss": t.ID, "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(jwtTime).Unix()})
	if err != nil {
		return "", err
	}
	text := head + "." + claims
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func segment(claims any) (string, error) {
	content, err := json.Marshal(claims)
	return base64.RawURLEncoding.EncodeToString(content), err
}

// readKey reads a private key in PKCS #1, as GitHub gives it, or PKCS #8.
func readKey(file string) (*rsa.PrivateKey, error) {
	content, err := smallfile.Read(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s: want a private key in PEM", file)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New(file + ": want a private key of RSA, as GitHub gives it")
	}
	return key, nil
}
