// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pluginGrace is how long after a request's time its answer is waited for: whoever sends it
// needs a moment to notice.
const pluginGrace = 200 * time.Millisecond

// pluginTransport ends a request in time whose credentials a plug-in of the kubeconfig gives.
// Client-go waits for such a program for as long as it runs, whatever the request's deadline,
// and has all other requests wait with it. While one is waited for too long, no request is sent.
type pluginTransport struct {
	next    http.RoundTripper
	command string
	// hanging counts the requests that wait for the plug-in longer than they may.
	hanging *atomic.Int32
}

// hangingPlugins are the counters of all plug-ins, by how they are called: client-go has one lock
// for each, over all connections.
var hangingPlugins sync.Map

func newPluginTransport(next http.RoundTripper, plugin *clientcmdapi.ExecConfig, host string) *pluginTransport {
	called := fmt.Sprintf("%q %q %q", plugin.Command, plugin.Args, plugin.Env)
	if plugin.ProvideClusterInfo {
		called += host
	}
	hanging, _ := hangingPlugins.LoadOrStore(called, &atomic.Int32{})
	return &pluginTransport{next: next, command: plugin.Command, hanging: hanging.(*atomic.Int32)}
}

func (p *pluginTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.hanging.Load() > 0 {
		return nil, p.hangs()
	}
	type answer struct {
		resp *http.Response
		err  error
	}
	answered := make(chan answer) // nobody may take it
	abandoned := make(chan struct{})
	go func() {
		resp, err := p.next.RoundTrip(req)
		select {
		case answered <- answer{resp, err}:
		case <-abandoned:
			p.hanging.Add(-1)
			if resp != nil {
				resp.Body.Close()
			}
		}
	}()
	select {
	case a := <-answered:
		return a.resp, a.err
	case <-req.Context().Done():
	}
	select {
	case a := <-answered:
		return a.resp, a.err
	case <-time.After(pluginGrace):
		p.hanging.Add(1)
		close(abandoned)
		return nil, p.hangs()
	}
}

func (p *pluginTransport) hangs() error {
	return fmt.Errorf("the credential plug-in %s of the kubeconfig does not end", p.command)
}
