// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

const loopback = "127.0.0.1"

// Ports are taken from below the range that kernels give to outgoing
// connections (from 32768 on Linux, 49152 on macOS). A port from that range
// could be taken between our look at it and the child's.
const (
	firstPort = 20000
	lastPort  = 29999
)

// freePorts finds n different ports that nobody listens on. They are let go
// before it returns: the children listen themselves.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("free port: %w", err)
		}
		defer l.Close() // held to the end, so that the ports differ
		ports = append(ports, port)
	}
	if len(ports) == n {
		return ports, nil
	}
	return nil, fmt.Errorf("free port: none between %d and %d", firstPort, lastPort)
}
