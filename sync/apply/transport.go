// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// dialTimeout is how long a connection may take to come about.
const dialTimeout = 10 * time.Second

// newClient makes the HTTP client of one cluster: client-go's reading of the
// configuration over a transport of our own. Client-go would share one between
// configurations that look the same, keep it for ever, and notice only after
// 45 s that the packets of a connection go nowhere.
func newClient(cfg *rest.Config, silence time.Duration) (*http.Client, error) {
	conf, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	base := conf.Transport
	if base == nil {
		if base, err = newTransport(conf, silence); err != nil {
			return nil, err
		}
	}
	wrapped, err := transport.HTTPWrappersForConfig(conf, base)
	if err != nil {
		return nil, err
	}
	if cfg.ExecProvider != nil {
		wrapped = newPluginTransport(wrapped, cfg.ExecProvider, cfg.Host)
	}
	return &http.Client{
		Transport: wrapped,
		// An API server does not redirect; whoever does must not get our token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func newTransport(conf *transport.Config, silence time.Duration) (http.RoundTripper, error) {
	tls, err := transport.TLSConfigFor(conf)
	if err != nil {
		return nil, err
	}
	proxy, dial := http.ProxyFromEnvironment, (&net.Dialer{Timeout: dialTimeout}).DialContext
	if conf.Proxy != nil {
		proxy = conf.Proxy
	}
	if conf.DialHolder != nil {
		dial = conf.DialHolder.Dial
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         dial,
		TLSClientConfig:     tls,
		TLSHandshakeTimeout: dialTimeout,
		DisableCompression:  conf.DisableCompression,
		ForceAttemptHTTP2:   true, // is off by default with a TLS configuration of one's own
		IdleConnTimeout:     90 * time.Second,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: silence},
	}, nil
}
