// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"net/http"
	"strings"
	gosync "sync"

	"github.com/swell-sh/swell/sync/simulator"
)

// recorder notes what is asked of simulated clusters, as an audit log does.
type recorder struct {
	mu     gosync.Mutex
	events map[string][]audited // by cluster
}

// since are the requests after the first n.
func (r *recorder) since(cluster string, n int64) []audited {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[cluster][n:]
}

// through sends requests on to a cluster, and notes them before they are answered.
func (r *recorder) through(name string, cluster *simulator.Cluster) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		answer, err := cluster.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		e := audited{Verb: verbOf(req), UserAgent: req.UserAgent(), RequestURI: req.URL.RequestURI(), Stage: "ResponseComplete"}
		if e.Verb == "watch" {
			e.Stage = "ResponseStarted"
		}
		e.ResponseStatus.Code = answer.StatusCode
		parts := pathParts(req)
		if parts[0] == "namespaces" && len(parts) > 2 {
			e.ObjectRef.Namespace, parts = parts[1], parts[2:]
		}
		e.ObjectRef.Resource = parts[0]
		if len(parts) > 1 {
			e.ObjectRef.Name = parts[1]
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events[name] = append(r.events[name], e)
		return answer, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// pathParts are those behind the group and version.
func pathParts(r *http.Request) []string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		return parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		return parts[3:]
	}
	return []string{""} // discovery
}

// verbOf is the word of an audit log.
func verbOf(r *http.Request) string {
	switch parts := pathParts(r); r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodGet, "":
		collection := len(parts) == 1 || parts[0] == "namespaces" && len(parts) == 3
		switch {
		case r.URL.Query().Get("watch") == "true":
			return "watch"
		case collection && parts[0] != "":
			return "list"
		}
		return "get"
	}
	return strings.ToLower(r.Method)
}
