// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// checks is the endpoint that gates ask, as a URL and as a Prometheus server. At the gate its name
// stands for a cluster's.
const checks = "checks"

// turnChecks changes what the endpoint of gates says.
func (w *world) turnChecks() string {
	w.says = pick(w.rand, "yes", "yes", "no", "down")
	return w.says
}

// answerOf is what the endpoint says to a call.
func (w *world) answerOf(c *call) string {
	unit, _ := c.asked()
	switch w.says {
	case "no":
		w.judge.cause(unit, "a gate said no")
		w.judge.answered(c, "no")
		return w.give(c, func(r *http.Request) answer { return refuses(c, r) }, false, "no")
	case "down":
		w.judge.cause(unit, "a gate did not answer")
		return w.give(c, page(503), false, "down")
	}
	w.judge.answered(c, "yes")
	return w.give(c, func(r *http.Request) answer { return agrees(c, r) }, false, "yes")
}

func refuses(c *call, r *http.Request) answer {
	if c.isQuery() {
		return scalar(r, "7")
	}
	return respond(r, 403, "text/plain", "not yet")
}

func agrees(c *call, r *http.Request) answer {
	if c.isQuery() {
		return scalar(r, "0")
	}
	return respond(r, 200, "text/plain", "yes")
}

// scalar is the answer of a Prometheus server to a query.
func scalar(r *http.Request, value string) answer {
	return respond(r, 200, "application/json",
		fmt.Sprintf(`{"status":"success","data":{"resultType":"scalar","result":[%d,%q]}}`, time.Now().Unix(), value))
}

// isQuery says that the endpoint is asked as a Prometheus server.
func (c *call) isQuery() bool { return strings.HasSuffix(c.path, "/api/v1/query") }

// queried finds the names in the query of a gate, see [shape.gates].
var queried = regexp.MustCompile(`unit="([^"]*)",wave="([^"]*)"`)

// asked are the unit and the wave that the endpoint is asked about.
func (c *call) asked() (unit, wave string) {
	if !c.isQuery() {
		values := c.request.URL.Query()
		return values.Get("unit"), values.Get("wave")
	}
	form, err := url.ParseQuery(string(c.body))
	if err != nil {
		panic(err) // the client library wrote it
	}
	if names := queried.FindStringSubmatch(form.Get("query")); names != nil {
		return names[1], names[2]
	}
	return "", ""
}
