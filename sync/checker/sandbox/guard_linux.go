// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
	abi "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ofNamespaces are the guards that the kernel gives with namespaces only.
var ofNamespaces = []string{"process namespace", "network namespace", "private root"}

// scopedSince is the version of Landlock that keeps signals from other processes, that of
// Linux 6.12. A process namespace does so too.
const scopedSince = 6

// guard puts the guards on this process, in the order in which each still may. missing are
// those that there are none of here.
func (s *stage) guard() (guards, missing []string, err error) {
	level := levels[slices.IndexFunc(levels, func(l level) bool { return l.name == s.Level })]
	if level.userSpace {
		guards = append(guards, "user namespace")
	}
	if level.namespaces {
		if err := s.network(); err != nil {
			return guards, nil, fmt.Errorf("network: %w", err)
		}
		if err := s.privateRoot(); err != nil {
			return guards, nil, fmt.Errorf("private root: %w", err)
		}
		guards = append(guards, ofNamespaces...)
	} else {
		missing = append(missing, ofNamespaces...)
	}
	if err := os.Chdir(s.Folder); err != nil {
		return guards, nil, err
	}
	if err := s.limit(level); err != nil {
		return guards, nil, fmt.Errorf("limits: %w", err)
	}
	guards = append(guards, "limits")
	if err := dropCapabilities(); err != nil {
		return guards, nil, fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return guards, nil, fmt.Errorf("no new privileges: %w", err)
	}
	guards = append(guards, "no new privileges")
	if !level.namespaces { // where it has processes of its own, orphans are its first one's anyway
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return guards, nil, fmt.Errorf("orphans: %w", err)
		}
	}
	version, err := abi.LandlockGetABIVersion()
	if err != nil {
		version = 0
	}
	switch {
	case version < 1 && !level.privateRoot:
		return guards, nil, errors.New("neither a file system of its own nor Landlock: nothing would keep the program from the files of this machine")
	case version < 1:
		missing = append(missing, "Landlock")
	default:
		if err := s.landlock(level); err != nil {
			return guards, nil, fmt.Errorf("landlock: %w", err)
		}
		guards = append(guards, fmt.Sprintf("Landlock %d", version))
		if version < scopedSince && !level.namespaces {
			missing = append(missing, fmt.Sprintf("Landlock %d, which keeps signals from other processes", scopedSince))
		}
	}
	switch {
	case !seccomp.Supported() && !level.namespaces:
		return guards, nil, fmt.Errorf("neither a network namespace nor seccomp: nothing would keep the program from the network")
	case !seccomp.Supported():
		missing = append(missing, "seccomp")
	default:
		if err := loadFilter(level); err != nil {
			return guards, nil, fmt.Errorf("seccomp: %w", err)
		}
		guards = append(guards, "seccomp")
	}
	return guards, missing, nil
}

// limit sets what the kernel counts for each process.
func (s *stage) limit(l level) error {
	limits := s.Limits
	seconds := uint64(max(1, limits.CPU.Seconds()))
	for _, r := range []struct {
		resource int
		bound    uint64
	}{
		{unix.RLIMIT_CPU, seconds},
		{unix.RLIMIT_FSIZE, uint64(limits.FileSize)},
		{unix.RLIMIT_NOFILE, uint64(limits.OpenFiles)},
		{unix.RLIMIT_DATA, uint64(limits.Memory)},
		// Address space that is only set aside, as Go's is, is not memory yet.
		{unix.RLIMIT_AS, uint64(limits.Memory)*4 + 4<<30},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
		{unix.RLIMIT_NPROC, uint64(limits.Processes + othersProcesses(l))},
	} {
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: r.bound, Max: r.bound}); err != nil {
			return fmt.Errorf("resource %d: %w", r.resource, err)
		}
	}
	return nil
}

// othersProcesses are those that the kernel counts besides the program's: all of the
// user, unless the program has a user namespace of its own.
func othersProcesses(l level) int {
	if l.userSpace {
		return 0
	}
	count := 0
	processes, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*") // the pattern is good
	for _, name := range processes {
		if info, err := os.Stat(name); err == nil && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Getuid()) {
			count++
		}
	}
	return count
}

// dropCapabilities leaves this thread, and so the program, without any.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// landlock lets the program read the system and its own folders, and write those.
func (s *stage) landlock(l level) error {
	own := append([]string{s.Folder}, s.Folders...)
	rules := []landlock.Rule{landlock.RODirs(system...).IgnoreIfMissing(), landlock.ROFiles(devices...).IgnoreIfMissing(),
		landlock.RWFiles("/dev/null").IgnoreIfMissing(), landlock.ROFiles("/etc/ld.so.cache").IgnoreIfMissing()}
	if l.privateRoot { // there is nothing else in it
		own = append(own, "/tmp", "/run", "/var")
		rules = append(rules, landlock.RODirs("/etc", "/proc").IgnoreIfMissing())
	}
	rules = append(rules, landlock.RWDirs(own...).IgnoreIfMissing())
	for _, name := range s.Read {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			rules = append(rules, landlock.RODirs(name))
		} else {
			rules = append(rules, landlock.ROFiles(name).IgnoreIfMissing())
		}
	}
	if s.Program != "" {
		rules = append(rules, landlock.ROFiles(fmt.Sprintf("/dev/fd/%d", programFile)))
	}
	config := landlock.V7.BestEffort()
	if err := config.RestrictPaths(rules...); err != nil {
		return err
	}
	if l.namespaces {
		return nil // it has a network of its own
	}
	return config.RestrictScoped()
}

// never are system calls that no check of a configuration needs, and that most ways
// out of a sandbox begin with.
var never = []string{"mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr", "chroot",
	"unshare", "setns", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "bpf", "perf_event_open", "userfaultfd",
	"io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key", "kexec_load", "init_module", "finit_module",
	"delete_module", "open_by_handle_at", "name_to_handle_at", "swapon", "swapoff", "reboot", "acct", "settimeofday", "clock_settime", "adjtimex",
	"sethostname", "setdomainname", "quotactl", "syslog", "vhangup"}

// uncounted are those that give memory which no process has in its address space: nobody sees
// how much it is. Memory that is shared between processes in another way is counted, see [memory].
var uncounted = []string{"memfd_create", "memfd_secret", "shmget", "msgget", "semget"}

// outward are those that lead to a network. Where the sandbox has none of its own,
// a program may name an address to listen on, as checks of servers do, and no more.
var outward = []string{"connect", "accept", "accept4", "sendmsg", "sendmmsg", "setsid", "setpgid"}

// marking are those that change a file's mode, owner, times, attributes or length by its path.
// Landlock lets the owner of a file do so wherever it is. Where the sandbox has no root of its
// own, that may be the folder of the state.
var marking = []string{"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "truncate",
	"utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "setxattrat",
	"removexattr", "lremovexattr", "fremovexattr", "removexattrat"}

// onOthers are those that change or look into another process, and no program does that to
// itself.
var onOthers = []string{"migrate_pages", "move_pages", "kcmp", "process_madvise", "process_mrelease"}

// ofItself are those that a process may use on itself alone, by a zero in place of its number.
// Another value of any of these arguments means another process.
var ofItself = map[string]map[uint32]uint64{
	"prlimit64":          {0: 0},
	"sched_setaffinity":  {0: 0},
	"sched_setattr":      {0: 0},
	"sched_setparam":     {0: 0},
	"sched_setscheduler": {0: 0},
	"setpriority":        {0: unix.PRIO_PROCESS, 1: 0},
	"ioprio_set":         {0: ioprioProcess, 1: 0},
}

// ioprioProcess is IOPRIO_WHO_PROCESS of linux/ioprio.h.
const ioprioProcess = 1

// loadFilter refuses system calls, for this thread and what it becomes.
func loadFilter(l level) error {
	own, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	if err := refuseForeign(own); err != nil {
		return fmt.Errorf("calls of other architectures: %w", err)
	}
	refused := slices.Concat(never, uncounted)
	conditions := []seccomp.NameWithConditions{where("clone", 0, seccomp.BitsSet, unix.CLONE_NEWUSER)}
	families := []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	if !l.namespaces {
		refused = slices.Concat(refused, outward, marking, onOthers)
		families = families[:3]
		conditions = append(conditions, where("sendto", 4, seccomp.NotEqual, 0),
			// Nobody leaves the tree of processes whose memory is counted, nor hides it. The kernel looks at half of
			// the argument.
			where("prctl", 0, seccomp.Equal, unix.PR_SET_CHILD_SUBREAPER), where("prctl", 0, seccomp.Equal, unix.PR_SET_DUMPABLE),
			where("prctl", 0, seccomp.GreaterThan, math.MaxUint32))
		for name, arguments := range ofItself {
			for argument, itself := range arguments {
				conditions = append(conditions, where(name, argument, seccomp.NotEqual, itself))
			}
		}
	}
	other := make(seccomp.ArgumentConditions, len(families))
	for i, family := range families {
		other[i] = seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: family}
	}
	conditions = append(conditions, seccomp.NameWithConditions{Name: "socket", Conditions: other})
	// Some architectures never had the older ones.
	refused = slices.DeleteFunc(refused, func(name string) bool { return !hasCall(own, name) })
	return seccomp.LoadFilter(seccomp.Filter{Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Names: refused, Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM)},
		{Names: []string{"clone3"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)}, // its flags cannot be seen; callers fall back to clone
		{NamesWithCondtions: conditions, Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM)},
	}}})
}

// where is a call with a condition on one argument.
func where(name string, argument uint32, operation seccomp.Operation, value uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{Argument: argument, Operation: operation, Value: value}}}
}

func hasCall(own *arch.Info, name string) bool {
	_, ok := own.SyscallNames[name]
	return ok
}

// refuseForeign refuses all system calls in the way of another architecture, such as
// those of 32 bits on x86-64: the library's filter judges those of this one, and lets
// all others pass. It also refuses those that are newer than the library's table, since nobody
// has judged what they do.
func refuseForeign(own *arch.Info) error {
	const numberAt, architectureAt = 0, 4 // in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: architectureAt},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 2, K: uint32(own.ID)},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: numberAt},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, Jf: 1, K: uint32(newestCall(own))},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// newestCall is the largest number in the library's table. The kernel gives numbers in the order of time.
func newestCall(own *arch.Info) (newest int) {
	for _, number := range own.SyscallNames {
		newest = max(newest, number)
	}
	return newest
}

// network has this process' own network: the loopback device, and every address and
// port to listen on, so that checks of servers may.
func (s *stage) network() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return err
	}
	for name, value := range map[string]string{"ipv4/ip_unprivileged_port_start": "0", "ipv4/ip_nonlocal_bind": "1", "ipv6/ip_nonlocal_bind": "1"} {
		_ = os.WriteFile("/proc/sys/net/"+name, []byte(value), 0) // where they cannot be set, fewer addresses can be listened on
	}
	return nil
}

// become makes this process the program that it was given.
func become(_ string, args, environment []string) error {
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(environment)
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, programFile, uintptr(unsafe.Pointer(empty)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}
