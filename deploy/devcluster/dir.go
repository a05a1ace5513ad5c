// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// runDir is the folder of one run, an absolute path:
//
//	devcluster.lock            held while a run lives; its presence marks the folder as ours
//	kubeconfig                 unless --kubeconfig says otherwise; only while all is ready
//	pids                       "PID COMPONENT" per line, once all is ready
//	etcd/                      the data of all clusters
//	clusters/CLUSTER/          keys, tokens and the components' kubeconfigs
//	logs/CLUSTER-COMPONENT.log and logs/etcd.log
//	CLUSTER-audit.log          with --audit
//	audit-policy.yaml          with --audit
//	stages.yaml                what kwok plays
//
// Nothing in it is meant to outlive the run except for reading.
type runDir string

func (d runDir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

func (d runDir) etcd() string                { return d.path("etcd") }
func (d runDir) logs() string                { return d.path("logs") }
func (d runDir) pids() string                { return d.path("pids") }
func (d runDir) stages() string              { return d.path("stages.yaml") }
func (d runDir) auditPolicy() string         { return d.path("audit-policy.yaml") }
func (d runDir) auditLog(name string) string { return d.path(name + "-audit.log") }
func (d runDir) cluster(name string) string  { return d.path("clusters", name) }
func (d runDir) log(component string) string { return d.path("logs", component+".log") }

// openDir makes dir if needed, locks it and leaves it without any state. State
// of an earlier run is an error unless reset is set; files under our names in a
// folder that no run ever used are one in any case, for they would be deleted.
// Closing the returned file gives the lock up.
func openDir(dir string, reset bool) (runDir, *os.File, error) {
	d := runDir(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return d, nil, fmt.Errorf("--dir: %w", err)
	}
	lockPath := d.path("devcluster.lock")
	if _, err := os.Stat(lockPath); errors.Is(err, fs.ErrNotExist) {
		if stale := d.stale(); len(stale) > 0 {
			return d, nil, fmt.Errorf("%s: in the way, and not made by devcluster: take another --dir", stale[0])
		}
	}
	lock, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return d, nil, fmt.Errorf("--dir: %w", err)
	}
	if err := d.claim(lock, reset); err != nil {
		lock.Close()
		return d, nil, err
	}
	return d, lock, nil
}

// claim takes the lock and clears the folder.
func (d runDir) claim(lock *os.File, reset bool) error {
	err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s: in use by another devcluster", d)
	}
	if err != nil {
		return fmt.Errorf("%s: lock: %w", d, err)
	}
	entries, err := os.ReadDir(d.etcd())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--dir: %w", err)
	}
	if len(entries) > 0 && !reset {
		return fmt.Errorf("%s: holds the state of an earlier run: add --reset to throw it away, or take another --dir", d.etcd())
	}
	for _, path := range d.stale() {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
	}
	for _, path := range []string{d.etcd(), d.logs()} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
	}
	return nil
}

// stale lists what there is under the names that a run writes. The kubeconfig
// is not among them: it may be elsewhere.
func (d runDir) stale() []string {
	audits, _ := filepath.Glob(d.path("*-audit.log")) // fails for a bad pattern only
	names := append(audits, d.etcd(), d.logs(), d.path("clusters"), d.pids(), d.stages(), d.auditPolicy())
	return slices.DeleteFunc(names, func(path string) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
}
