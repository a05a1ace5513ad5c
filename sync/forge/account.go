// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"net/http"
	"sync"
)

// account is whose a credential is, which is asked for once for each.
type account struct {
	ask func(context.Context) (login string, err error)
	// token is the credential; nil: it is the same account's for good.
	token func() (string, error)
	// job is the login of a job's own credential, which may not ask; empty: it is no job.
	job string

	mu    sync.Mutex
	login string // empty: not known yet
	of    string // the credential that it was asked for with
}

// name is the account's login. That of a job is a guess where the credential may not ask: a
// job may have another one than its own.
func (a *account) name(ctx context.Context) (string, error) {
	token := ""
	if a.token != nil {
		var err error
		if token, err = a.token(); err != nil {
			return "", err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.login != "" && a.of == token {
		return a.login, nil
	}
	login, err := a.ask(ctx)
	if a.job != "" && hasStatus(err, http.StatusForbidden) {
		login, err = a.job, nil
	}
	if err != nil {
		return "", err
	}
	a.login, a.of = login, token
	return login, nil
}
