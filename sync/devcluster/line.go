// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"io"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Line is a network connection to an API server that can be cut and mended. It is safe for
// concurrent use.
type Line struct {
	listener net.Listener
	server   string // host and port

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

// Connect makes a line to the API server of a context, and writes a kubeconfig whose only
// context, of the same name, leads through it.
func Connect(kubeconfig, context, to string) (*Line, error) {
	all, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	all.CurrentContext = context
	if err := clientcmdapi.MinifyConfig(all); err != nil {
		return nil, err
	}
	cluster := all.Clusters[all.Contexts[context].Cluster]
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if cluster.TLSServerName == "" {
		cluster.TLSServerName = server.Hostname() // the certificate is for this name
	}
	cluster.Server = server.Scheme + "://" + listener.Addr().String()
	if err := clientcmd.WriteToFile(*all, to); err != nil {
		listener.Close()
		return nil, err
	}
	l := &Line{listener: listener, server: server.Host, open: map[net.Conn]bool{}}
	go l.serve()
	return l, nil
}

// Cut ends all connections, and those that come, until Mend.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for conn := range l.open {
		conn.Close()
	}
}

// Mend lets connections through again.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = false
}

// Close ends all connections, for good.
func (l *Line) Close() {
	l.listener.Close()
	l.Cut()
}

func (l *Line) serve() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		go l.carry(from)
	}
}

// carry connects somebody with the API server until one of them ends it.
func (l *Line) carry(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer to.Close()
	if !l.keep(from) {
		return
	}
	defer l.drop(from)
	go func() {
		_, _ = io.Copy(to, from) // its end is the other's end
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// keep says whether the line is whole; then the connection ends with Cut.
func (l *Line) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return false
	}
	l.open[conn] = true
	return true
}

func (l *Line) drop(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
}
