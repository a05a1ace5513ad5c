// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// system are the folders of the machine that programs and their libraries stand in.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/nix/store"}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// before is where the machine's root is while the private one is made.
const before = "/before"

// privateRoot makes a file system in memory the root of this process. It holds the
// system, read only, what the program may read besides, and folders of its own.
func (s *stage) privateRoot() error {
	base := os.TempDir() // it must be there; what is in it stays
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	size := fmt.Sprintf("size=%d,nr_inodes=4096,mode=0755", max(s.Limits.FileSize, 1<<20))
	if err := unix.Mount("check", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, size); err != nil {
		return fmt.Errorf("tmpfs at %s: %w", base, err)
	}
	if err := os.Mkdir(base+before, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(base, base+before); err != nil {
		return fmt.Errorf("pivot: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := s.furnish(); err != nil {
		return err
	}
	if err := unix.Unmount(before, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's root: %w", err)
	}
	return os.Remove(before)
}

// furnish fills the private root.
func (s *stage) furnish() error {
	names := append(append([]string{"/etc/ld.so.cache"}, system...), devices...)
	names = append(names, s.Read...)
	for _, name := range names {
		if err := show(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range append([]string{s.Folder, "/tmp", "/run", "/var/log", "/var/tmp", "/etc", "/proc", "/dev/shm"}, s.Folders...) {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		_ = os.Symlink("/proc/self/fd"+to, "/dev/"+name) // without it, fewer programs work
	}
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "subset=pid,hidepid=2") // not in every container
	if err := s.lookUps(); err != nil {
		return err
	}
	return writeFiles(s.Folder, s.Files)
}

// lookUps are the files that names of hosts and users are looked up in.
func (s *stage) lookUps() error {
	var hosts, users, groups bytes.Buffer
	fmt.Fprintf(&hosts, "127.0.0.1 localhost\n::1 localhost\n")
	for _, name := range s.Hosts {
		fmt.Fprintf(&hosts, "127.0.0.1 %s\n", name)
	}
	for i, name := range append([]string{"check", "root", "nobody"}, s.Users...) {
		fmt.Fprintf(&users, "%s:x:%d:%d::%s:/bin/false\n", name, insideUser+i, insideUser+i, s.Folder)
		fmt.Fprintf(&groups, "%s:x:%d:\n", name, insideUser+i)
	}
	return errors.Join(os.WriteFile("/etc/hosts", hosts.Bytes(), 0o644), os.WriteFile("/etc/passwd", users.Bytes(), 0o644),
		os.WriteFile("/etc/group", groups.Bytes(), 0o644), os.WriteFile("/etc/nsswitch.conf", []byte("passwd: files\ngroup: files\nhosts: files\n"), 0o644),
		os.WriteFile("/etc/resolv.conf", nil, 0o644))
}

// show makes a file or folder of the machine visible, read only. One that is not
// there is left out; a link is the same link.
func show(name string) error {
	info, err := os.Lstat(before + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(name); err == nil {
		return nil // a part of what was shown
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return showLink(name)
	}
	if info.IsDir() {
		err = os.Mkdir(name, 0o755)
	} else {
		err = os.WriteFile(name, nil, 0o644)
	}
	if err != nil {
		return err
	}
	return bind(before+name, name, strings.HasPrefix(name, "/dev/"))
}

func showLink(name string) error {
	to, err := os.Readlink(before + name)
	if err != nil {
		return err
	}
	if err := os.Symlink(to, name); err != nil {
		return err
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(name), to)
	}
	return show(to)
}

// bind shows what is at one path at another one, read only, with all that is mounted
// below.
func bind(from, at string, device bool) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }() // nothing was written
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if device {
		attributes.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attributes); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
