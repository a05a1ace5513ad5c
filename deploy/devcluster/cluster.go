// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Addresses inside a cluster. No packet is ever sent to one of them.
const (
	serviceCIDR = "10.96.0.0/16"
	podCIDR     = "10.244.0.0/16"
)

var serviceIP = net.IPv4(10, 96, 0, 1) // of the Service "kubernetes": the first of serviceCIDR

// The users of a cluster. Each has its own token, so that an audit log tells
// who did what.
const (
	userAdmin             = "admin"      // the one in the kubeconfig that is handed out
	userDevcluster        = "devcluster" // ourselves: nodes, storage class, waiting
	userControllerManager = "system:kube-controller-manager"
	userScheduler         = "system:kube-scheduler"
	userKwok              = "kwok"
)

// users maps a user to its groups, as in a token file. The empty ones get their
// rights by name, from the roles that every cluster comes with.
var users = map[string]string{
	userAdmin:             "system:masters",
	userDevcluster:        "system:masters",
	userControllerManager: "",
	userScheduler:         "",
	userKwok:              "system:masters",
}

// cluster is one control plane to be.
type cluster struct {
	Name     string
	Etcd     string            // URL of the etcd that all clusters share
	Port     int               // of the API server, on loopback
	CA       []byte            // PEM
	Tokens   map[string]string // by user
	Dir      runDir
	Audit    auditLevel
	MoreArgs []string // for the API server
}

// newCluster makes keys and tokens and writes them where the components read
// them. It starts nothing.
func newCluster(dir runDir, conf upConfig, name, etcd string, port int) (*cluster, error) {
	c := &cluster{
		Name: name, Etcd: etcd, Port: port, Dir: dir, Audit: conf.Audit, MoreArgs: conf.APIServerArgs,
		Tokens: map[string]string{},
	}
	if err := c.writeFiles(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func (c *cluster) writeFiles() error {
	k, err := newKeys(c.Name, serviceIP)
	if err != nil {
		return err
	}
	c.CA = k.CA
	var tokens strings.Builder
	for user, groups := range users {
		c.Tokens[user] = rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", c.Tokens[user], user, user, groups)
	}
	if err := os.MkdirAll(c.Dir.cluster(c.Name), 0o700); err != nil {
		return err
	}
	files := map[string][]byte{
		"ca.crt": k.CA, "tls.crt": k.Cert, "tls.key": k.Key, "sa.key": k.ServiceAccount,
		"tokens.csv": []byte(tokens.String()),
	}
	for name, b := range files {
		if err := os.WriteFile(c.file(name), b, 0o600); err != nil {
			return err
		}
	}
	for component, user := range map[string]string{
		controllerManagerName: userControllerManager, schedulerName: userScheduler, kwokName: userKwok,
	} {
		if err := writeKubeconfig(c.file(component+".kubeconfig"), c.access(user)); err != nil {
			return err
		}
	}
	return nil
}

// file is the path of one of the cluster's own files.
func (c *cluster) file(name string) string {
	return filepath.Join(c.Dir.cluster(c.Name), name)
}

// process is the name of a component of this cluster in logs and messages.
func (c *cluster) process(component string) string {
	return c.Name + "-" + component
}

func (c *cluster) access(user string) access {
	return access{
		Cluster: c.Name,
		Server:  fmt.Sprintf("https://%s:%d", loopback, c.Port),
		CA:      c.CA,
		User:    user,
		Token:   c.Tokens[user],
	}
}
