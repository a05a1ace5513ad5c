// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/simulator"
)

// TestSurveyNamesGroupsThatFail: of a group that cannot be discovered, as while an aggregated
// API is down, a survey does not know what there is, and says so.
func TestSurveyNamesGroupsThatFail(t *testing.T) {
	t.Parallel()
	server := simulator.New()
	c, err := Connect(&rest.Config{Host: "http://simulator.invalid", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/apis/apps/v1" {
			text := io.NopCloser(strings.NewReader("error trying to reach service"))
			return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: text, Request: r}, nil
		}
		return server.RoundTrip(r)
	})}, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.bring(t.Context(), []*object.Object{configMap(t, "default", "a", "1")}, nil); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	entries, unknown, err := c.Survey(t.Context())
	if err != nil || len(entries) != 1 || !slices.Contains(unknown, "apps/v1") {
		t.Errorf("%d entries, unknown %v, %v", len(entries), unknown, err)
	}
}
