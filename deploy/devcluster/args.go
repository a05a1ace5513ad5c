// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// etcdArgs are the flags of the one etcd; port is for clients, on loopback.
// There is no other member, so whoever listens for peers may do so anywhere.
func etcdArgs(dir runDir, port int) []string {
	url := etcdURL(port)
	return []string{
		"--data-dir=" + dir.etcd(),
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=http://" + loopback + ":0",
		"--unsafe-no-fsync",                            // the state is thrown away
		"--quota-backend-bytes=" + strconv.Itoa(8<<30), // the default of 2 GiB is for one cluster
		"--log-level=warn",
	}
}

func etcdURL(port int) string {
	return fmt.Sprintf("http://%s:%d", loopback, port)
}

func (c *cluster) apiserverArgs() []string {
	args := []string{
		"--etcd-servers=" + c.Etcd,
		"--etcd-prefix=/" + c.Name,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.Port),
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none", // an endpoint may not be a loopback address
		"--cert-dir=" + c.Dir.cluster(c.Name),
		"--tls-cert-file=" + c.file("tls.crt"),
		"--tls-private-key-file=" + c.file("tls.key"),
		"--token-auth-file=" + c.file("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.file("sa.key"),
		"--service-account-signing-key-file=" + c.file("sa.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true", // as kubeadm sets it; the default refuses the pods of many an add-on
	}
	if c.Audit != "" {
		args = append(args,
			"--audit-policy-file="+c.Dir.auditPolicy(),
			"--audit-log-path="+c.Dir.auditLog(c.Name),
			"--audit-log-mode=blocking", // on disk before the client has its answer
			"--audit-log-maxsize=10000", // MB; in one file
		)
	}
	return append(args, c.MoreArgs...)
}

// clientLimits lift the pace that a controller keeps by itself, meant for a
// large cluster that many share.
var clientLimits = []string{"--kube-api-qps=1000", "--kube-api-burst=2000"}

func (c *cluster) controllerManagerArgs() []string {
	return append([]string{
		"--kubeconfig=" + c.file(controllerManagerName+".kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0", // serves nothing
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.file("sa.key"),
		"--root-ca-file=" + c.file("ca.crt"),
		"--flex-volume-plugin-dir=" + c.file("flexvolume"), // the default is outside of our folder
	}, clientLimits...)
}

func (c *cluster) schedulerArgs() []string {
	return append([]string{
		"--kubeconfig=" + c.file(schedulerName+".kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0", // serves nothing
	}, clientLimits...)
}

func (c *cluster) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + c.file(kwokName+".kubeconfig"),
		"--config=" + filepath.Base(c.Dir.stages()), // in the folder it runs in; a comma in the path would end it
		"--manage-all-nodes",
		"--cidr=" + podCIDR,
		"--node-lease-duration-seconds=40", // as a kubelet does; renewed at a quarter of it
	}
}
