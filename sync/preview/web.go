// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
)

// ServeHTTP shows the page of a preview to whoever has its link: the request's path value
// "token".
func (p *Previewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	if !isToken(token) {
		http.NotFound(w, r)
		return
	}
	content, err := os.ReadFile(p.files.pageOf(token))
	if errors.Is(err, fs.ErrNotExist) {
		http.NotFound(w, r)
		return
	}
	if err != nil {
		p.Log.Error("previews: page", "err", err)
		http.Error(w, "the page cannot be read", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// The page has words of authors: it runs nothing, loads nothing, and tells nobody its link.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Cache-Control", "private, no-cache")
	_, _ = w.Write(content) // the reader may have gone
}
