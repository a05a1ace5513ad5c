// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// The test binary is the checker too: `sandbox.test as ROLE ...`.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as" {
		os.Exit(roles[os.Args[2]](os.Args[3:]))
	}
	os.Exit(m.Run())
}

// roles are checkers, most of which try what they should not. Each tells what it saw.
var roles = map[string]func(args []string) int{
	"files": readFiles, "dial": dial, "fork": fork, "write": writeMuch, "print": printMuch, "sleep": sleepForEver,
	"spin": spin, "eat": eat, "orphan": orphan, "environment": environment, "calls": calls,
	"killed": killed, "withoutLandlock": withoutLandlock, "mark": mark, "others": others, "hide": hide,
	"exit": func(args []string) int { fmt.Println("my words"); code, _ := strconv.Atoi(args[0]); return code },
}

// readFiles reads what belongs to others.
func readFiles(names []string) int {
	for _, name := range names {
		content, err := os.ReadFile(name)
		entries, listErr := os.ReadDir(name)
		if err == nil && len(content) > 0 || listErr == nil && len(entries) > 0 {
			fmt.Printf("read %s: %.40q %v\n", name, content, entries)
			continue
		}
		fmt.Printf("not read: %v\n", err)
	}
	return 0
}

// dial connects to addresses, "network address".
func dial(addresses []string) int {
	for _, address := range addresses {
		network, to, _ := strings.Cut(address, " ")
		c, err := net.DialTimeout(network, to, time.Second)
		if err == nil {
			_, err = c.Write([]byte("hello from the sandbox"))
		}
		if err == nil {
			fmt.Printf("reached %s\n", address)
			continue
		}
		fmt.Printf("not reached: %v\n", err)
	}
	return 0
}

// fork starts a thousand children that stay.
func fork(args []string) int {
	started := 0
	for range 1000 {
		if err := exec.Command("/proc/self/exe", "as", "sleep", args[0]).Start(); err != nil {
			fmt.Printf("%d children, then: %v\n", started, err)
			return 1
		}
		started++
	}
	fmt.Printf("%d children\n", started)
	return 0
}

// writeMuch writes a GB into one file, and then into many.
func writeMuch([]string) int {
	block := bytes.Repeat([]byte("x"), 1<<20)
	total := 0
	for _, name := range []string{"one", "two", "three", "/tmp/four", "/run/five"} {
		f, err := os.Create(name)
		if err != nil {
			fmt.Printf("%v\n", err)
			continue
		}
		for range 1 << 10 {
			n, err := f.Write(block)
			total += n
			if err != nil {
				fmt.Printf("%v\n", err)
				break
			}
		}
	}
	fmt.Printf("wrote %d MiB\n", total>>20)
	return 1
}

func printMuch([]string) int {
	block := bytes.Repeat([]byte("print "), 1<<17)
	for range 1 << 11 {
		if _, err := os.Stdout.Write(block); err != nil {
			return 1
		}
	}
	return 0
}

func sleepForEver([]string) int {
	fmt.Println("good night")
	time.Sleep(time.Hour)
	return 0
}

func spin([]string) int {
	for i := 0; ; i++ {
		_ = i
	}
}

// eat takes memory: of this process, or of several children, which keep it.
func eat(args []string) int {
	keep := slices.Contains(args, "keep")
	if slices.Contains(args, "together") {
		for range 8 {
			_ = exec.Command("/proc/self/exe", "as", "eat", "keep").Start()
		}
		time.Sleep(time.Minute)
	}
	var all [][]byte
	for range 100 {
		block, err := unix.Mmap(-1, 0, 10<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			fmt.Printf("%d MiB, then: %v\n", 10*len(all), err)
			if keep {
				time.Sleep(time.Minute)
			}
			return 1
		}
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		all = append(all, block)
		time.Sleep(5 * time.Millisecond)
	}
	return 0
}

// orphan leaves a child behind that holds the output, in a session of its own where it may.
func orphan(args []string) int {
	child := exec.Command("/proc/self/exe", "as", "sleep", args[0])
	child.Stdout, child.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		fmt.Printf("no session: %v\n", err)
		child = exec.Command("/proc/self/exe", "as", "sleep", args[0])
		child.Stdout = os.Stdout
		_ = child.Start()
	}
	return 0
}

func environment([]string) int {
	wd, _ := os.Getwd()
	fmt.Println(strings.Join(os.Environ(), "\n"))
	fmt.Printf("in %s as %d\n", wd, os.Getuid())
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapEff") || strings.HasPrefix(line, "CapPrm") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "Seccomp:") {
			fmt.Print(line)
		}
	}
	open, _ := os.ReadDir("/proc/self/fd")
	fmt.Printf("%d files open\n", len(open)-1)
	return 0
}

// calls makes system calls that lead out of a sandbox.
func calls([]string) int {
	fmt.Println("unshare:", unix.Unshare(unix.CLONE_NEWUSER))
	fmt.Println("mount:", unix.Mount("x", "/tmp", "tmpfs", 0, ""))
	fmt.Println("ptrace:", unix.PtraceAttach(1))
	_, _, err := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	fmt.Println("io_uring:", err)
	_, packet := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	fmt.Println("packet:", packet)
	return 0
}

// mark changes what Landlock lets the owner of a file change, without opening the file.
func mark(names []string) int {
	for _, name := range names {
		for call, err := range map[string]error{
			"chmod": unix.Chmod(name, 0o777), "chown": unix.Lchown(name, -1, os.Getgid()), "truncate": unix.Truncate(name, 0),
			"utime": unix.Utimes(name, []unix.Timeval{{Sec: 1}, {Sec: 1}}), "xattr": unix.Setxattr(name, "user.swell", []byte("x"), 0),
			"fchmodat2": unix.Fchmodat(unix.AT_FDCWD, name, 0o777, unix.AT_SYMLINK_NOFOLLOW),
		} {
			fmt.Printf("%s %s: %v\n", call, name, err)
		}
	}
	return 0
}

// others changes another process, and then itself in the same ways.
func others(args []string) int {
	pid, _ := strconv.Atoi(args[0])
	for _, id := range []int{pid, 0} {
		limit := unix.Rlimit{Cur: 10, Max: 20}
		const batch = 3 // SCHED_BATCH
		_, _, scheduler := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(id), batch, uintptr(unsafe.Pointer(new(int32))))
		_, _, priority := unix.Syscall(unix.SYS_IOPRIO_SET, 1 /* a process */, uintptr(id), 2<<13|7 /* best effort, last */)
		attributes := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: batch, Nice: 19}
		_, _, wanted := unix.Syscall(unix.SYS_SCHED_SETATTR, uintptr(id), uintptr(unsafe.Pointer(&attributes)), 0)
		var every unix.CPUSet
		_ = unix.SchedGetaffinity(0, &every)
		for call, err := range map[string]error{
			"prlimit": unix.Prlimit(id, unix.RLIMIT_NOFILE, &limit, nil), "nice": unix.Setpriority(unix.PRIO_PROCESS, id, 19),
			"affinity": unix.SchedSetaffinity(id, &every), "scheduler": scheduler, "ioprio": priority, "attributes": wanted,
		} {
			if refused := errors.Is(err, unix.EPERM); refused != (id != 0) {
				fmt.Printf("%s of %d: %v\n", call, id, err)
			}
		}
	}
	_, _, signal := unix.RawSyscall(unix.SYS_KILL, uintptr(pid), 0, 0)
	fmt.Println("signal:", signal)
	return 0
}

// hide takes memory that it has not in its address space: in files of memory, of System V, shared and taken out
// again, or of children whose parent has ended.
func hide(ways []string) int {
	block := bytes.Repeat([]byte("x"), 5<<20)
	switch ways[0] {
	case "memfd":
		for range 40 {
			fd, err := unix.MemfdCreate("hidden", 0)
			if err != nil {
				fmt.Println("refused:", err)
				return 1
			}
			_, _ = unix.Write(fd, block)
		}
	case "sysv":
		if _, _, err := unix.Syscall(unix.SYS_SHMGET, unix.IPC_PRIVATE, 200<<20, unix.IPC_CREAT|0o600); err != 0 {
			fmt.Println("refused:", err)
			return 1
		}
	case "shared":
		all, err := unix.Mmap(-1, 0, 200<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for i := 0; i < len(all); i += len(block) {
			copy(all[i:], block)
			_ = unix.Madvise(all[i:i+len(block)], unix.MADV_DONTNEED) // it stays in the kernel's memory
		}
	case "orphans":
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
		for range 4 {
			_ = exec.Command("/proc/self/exe", "as", "hide", "parent").Run()
		}
	case "parent": // of an orphan
		_ = exec.Command("/proc/self/exe", "as", "eat", "keep").Start()
		return 0
	}
	time.Sleep(time.Minute)
	return 0
}

// as is the command of a role.
func as(t *testing.T, role string, args ...string) Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A machine may be busy: what has nothing to do with time has minutes.
	return Command{Program: self, Args: append([]string{"as", role}, args...), Limits: Limits{Wall: 5 * time.Minute}}
}

// eachLevel runs a test with all guards that this machine has, and as if it had no
// namespaces, as in many containers.
func eachLevel(t *testing.T, test func(t *testing.T, l level)) {
	l, err := strongest()
	if err != nil {
		t.Fatal(err)
	}
	if !l.privateRoot {
		t.Errorf("this machine gives no namespaces: only %s are tested", l.Active)
	}
	t.Run(l.name, func(t *testing.T) { t.Parallel(); test(t, l) })
	t.Run("plain", func(t *testing.T) { t.Parallel(); test(t, levels[len(levels)-1]) })
}

func run(t *testing.T, l level, c Command) Result {
	t.Helper()
	r, err := l.run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	shown := r.Output
	if len(shown) > 600 {
		shown = shown[:600]
	}
	t.Logf("exit code %d, %s, stopped: %q, guards: %s\n%s", r.Exit, r.Took.Round(time.Millisecond), r.Stopped, strings.Join(r.Guards, ", "), shown)
	return r
}

func wants(t *testing.T, r Result, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !bytes.Contains(r.Output, []byte(text)) {
			t.Errorf("want %q in the output", text)
		}
	}
}

func TestExitAndWords(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		for _, code := range []int{0, 7} {
			if r := run(t, l, as(t, "exit", strconv.Itoa(code))); r.Exit != code || string(r.Output) != "my words\n" || r.Stopped != "" {
				t.Errorf("exit code %d: %+v", code, r)
			}
		}
	})
}

func TestReadsOnlyItsOwnFiles(t *testing.T) {
	secret := filepath.Join(openFolder(t), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	eachLevel(t, func(t *testing.T, l level) {
		c := as(t, "files", "/etc/passwd", "/etc/shadow", secret, "/root", "/home", "/work", "/proc/1/environ", "/sys/kernel", "own.conf", "/etc/hostname")
		c.Files = []File{{"own.conf", []byte("mine")}}
		r := run(t, l, c)
		wants(t, r, `read own.conf: "mine"`)
		if l.privateRoot {
			wants(t, r, "read /etc/passwd: \"check:x:1000:") // one of its own
		} else {
			wants(t, r, "/etc/passwd: permission denied")
		}
		want := 9
		if l.privateRoot {
			want = 7 // the first process is itself
		}
		if got := bytes.Count(r.Output, []byte("not read")); got != want {
			t.Errorf("%d of %d files of others not read", got, want)
		}
	})
}

// openFolder is a folder that every user may enter, as [testing.T.TempDir] is not.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "swell-sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary folder
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReachesNoNetwork(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tcp.Close() }()
	abstract, err := net.Listen("unix", "@swell-sandbox-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = abstract.Close() }()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	t.Run("levels", func(t *testing.T) {
		eachLevel(t, func(t *testing.T, l level) {
			r := run(t, l, as(t, "dial", "tcp "+tcp.Addr().String(), "unix "+abstract.Addr().String(), "udp "+udp.LocalAddr().String(), "tcp 192.0.2.1:80"))
			if bytes.Count(r.Output, []byte("not reached")) != 4 && !(l.privateRoot && bytes.Contains(r.Output, []byte("reached udp"))) {
				t.Error("it reached something")
			}
		})
	})
	for name, got := range map[string]func() error{
		"tcp":      func() error { _, err := tcp.Accept(); return err },
		"abstract": func() error { _, err := abstract.Accept(); return err },
		"udp":      func() error { _, _, err := udp.ReadFrom(make([]byte, 100)); return err },
	} {
		for _, l := range []any{tcp, abstract, udp} {
			if d, ok := l.(interface{ SetDeadline(time.Time) error }); ok {
				_ = d.SetDeadline(time.Now().Add(10 * time.Millisecond))
			}
		}
		if err := got(); err == nil {
			t.Errorf("%s: something came", name)
		}
	}
}

func TestForksAreBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		r := run(t, l, as(t, "fork", t.Name()))
		wants(t, r, "children, then: ", "resource temporarily unavailable")
		gone(t)
	})
}

func TestWritesAreBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		c := as(t, "write")
		c.Limits.FileSize = 8 << 20
		r := run(t, l, c)
		switch {
		case l.privateRoot:
			wants(t, r, "no space left on device", "wrote 7 MiB")
		default:
			wants(t, r, "file too large", "wrote 24 MiB", "/tmp/four: permission denied")
		}
	})
}

func TestOutputIsBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		c := as(t, "print")
		c.Limits.Output = 100 << 10
		if r := run(t, l, c); r.Stopped != "it wrote more than 100 KiB of output" || len(r.Output) != 100<<10 {
			t.Errorf("%d bytes, stopped: %q", len(r.Output), r.Stopped)
		}
	})
}

func TestTimeIsBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		c := as(t, "sleep")
		c.Limits.Wall = 3 * time.Second
		if r := run(t, l, c); r.Stopped != "it was not done after 3s" || !r.Hasty || string(r.Output) != "good night\n" {
			t.Errorf("%+v", r)
		}
	})
}

func TestCPUIsBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		c := as(t, "spin")
		c.Limits.CPU = time.Second
		if r := run(t, l, c); r.Stopped != "it took more than 1s of CPU" || r.Hasty {
			t.Errorf("%+v", r)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		c := as(t, "eat")
		c.Limits.Memory = 200 << 20
		wants(t, run(t, l, c), "MiB, then: cannot allocate memory")
		c = as(t, "eat", "together")
		c.Limits.Memory = 200 << 20
		if r := run(t, l, c); r.Stopped != "it took more than 200 MiB of memory" {
			t.Errorf("%+v", r)
		}
	})
}

// Memory that no process has in its address space is not to be had, or counts all the same.
func TestHiddenMemoryIsBounded(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		const refused = "refused: operation not permitted"
		for way, want := range map[string]string{"memfd": refused, "sysv": refused, "shared": "", "orphans": ""} {
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				c := as(t, "hide", way)
				c.Limits.Memory = 150 << 20
				r := run(t, l, c)
				if wants(t, r, want); want == "" && r.Stopped != "it took more than 150 MiB of memory" {
					t.Errorf("%+v", r)
				}
			})
		}
	})
}

// Where the program has no root of its own, it is the user of the state, and Landlock says
// nothing of modes, owners, times, attributes and lengths.
func TestMarksNoFileOfOthers(t *testing.T) {
	state := filepath.Join(openFolder(t), "state.db")
	if err := os.WriteFile(state, []byte("state"), 0o640); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // that user is nobody
		if err := os.Chown(state, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("levels", func(t *testing.T) {
		eachLevel(t, func(t *testing.T, l level) { run(t, l, as(t, "mark", state)) })
	})
	after, err := os.Stat(state)
	if err != nil {
		t.Fatal(err)
	}
	if after.Mode() != before.Mode() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("%v %d %v, want %v %d %v", after.Mode(), after.Size(), after.ModTime(), before.Mode(), before.Size(), before.ModTime())
	}
	if _, err := unix.Getxattr(state, "user.swell", nil); err == nil {
		t.Error("it has an attribute")
	}
}

// Where the program sees other processes, it is the user of some of them.
func TestChangesNoOtherProcess(t *testing.T) {
	sleeper := exec.Command("/bin/sleep", "600")
	if os.Geteuid() == 0 {
		sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	r := run(t, levels[len(levels)-1], as(t, "others", strconv.Itoa(sleeper.Process.Pid)))
	if got, want := string(r.Output), "signal: operation not permitted\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a machine does not give is named, and refused where all is required.
func TestRequired(t *testing.T) {
	weakest := levels[len(levels)-1]
	var err error
	if weakest.Guards, err = weakest.probe(); err != nil {
		t.Fatal(err)
	}
	_, err = weakest.run(t.Context(), Command{Program: "/bin/true", Required: true, Limits: Limits{Wall: 5 * time.Minute}})
	const want = "does not give these guards: process namespace, network namespace, private root"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// gone fails while a process is there that has the name of the test as an argument. A
// killed one takes a moment to go.
func gone(t *testing.T) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	var left []string
	for range 500 {
		if left = named(t.Name()); len(left) == 0 {
			return
		}
		<-ticker.C
	}
	t.Errorf("still there: %q", left)
}

// named are the command lines with this argument.
func named(argument string) (lines []string) {
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is good
	for _, name := range processes {
		line, _ := os.ReadFile(name) // gone
		if slices.Contains(strings.Split(string(line), "\x00"), argument) {
			lines = append(lines, string(line))
		}
	}
	return lines
}

func TestNothingIsLeft(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		if r := run(t, l, as(t, "orphan", t.Name())); r.Stopped != "" {
			t.Errorf("%+v", r)
		}
		gone(t)
	})
}

func TestInterrupted(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := l.run(ctx, as(t, "sleep")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SWELL_SECRET", "secret")
	l, err := strongest()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []level{l, levels[len(levels)-1]} {
		r := run(t, l, as(t, "environment"))
		lines := strings.Split(strings.TrimSpace(string(r.Output)), "\n")
		if i := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "in ") }); i != 7 {
			t.Errorf("%d variables", i)
		}
		if bytes.Contains(r.Output, []byte("SWELL")) {
			t.Error("a variable of this process is in its environment")
		}
		wants(t, r, "LANG=C", "HOME="+r.Folder, "TMPDIR="+r.Folder, "in "+r.Folder)
		if l.privateRoot {
			wants(t, r, "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "as 1000")
		}
	}
}

func TestCallsThatLeadOut(t *testing.T) {
	eachLevel(t, func(t *testing.T, l level) {
		r := run(t, l, as(t, "calls"))
		if n := bytes.Count(r.Output, []byte("operation not permitted")); n != 5 {
			t.Errorf("%d of 5 calls refused", n)
		}
	})
}

func TestNamesOfFiles(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "../x", "/etc/x"} {
		if _, err := Run(t.Context(), Command{Program: "/bin/true", Files: []File{{Name: name}}}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}

// killed ends itself as the kernel ends others.
func killed([]string) int {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	return 0
}

// withoutLandlock runs a program as on a machine whose kernel has no Landlock.
func withoutLandlock([]string) int {
	refusal := seccomp.SyscallGroup{Names: []string{"landlock_create_ruleset"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)}
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{refusal}}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	r, err := levels[len(levels)-1].run(context.Background(), Command{Program: "/bin/true", Limits: Limits{Wall: 5 * time.Minute}})
	fmt.Println(r.Guards, err)
	return 0
}

// Without a file system of its own and without Landlock, a program would read all that
// swell may read, and tell it in its messages.
func TestNothingRunsWithoutAGuardOfFiles(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, "as", "withoutLandlock").CombinedOutput()
	if want := "neither a file system of its own nor Landlock"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%s %v, want %q", out, err, want)
	}
}

// A program that the kernel cannot start, or that somebody kills, has judged nothing.
func TestNoVerdict(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "odd")
	if err := os.WriteFile(odd, []byte("\x7fELF and no more"), 0o755); err != nil {
		t.Fatal(err)
	}
	eachLevel(t, func(t *testing.T, l level) {
		if r, err := l.run(t.Context(), Command{Program: odd, Limits: Limits{Wall: 5 * time.Minute}}); err == nil || !strings.Contains(err.Error(), "the program cannot be started: exec format error") {
			t.Errorf("%s, %v", r.Output, err)
		}
	})
	r := run(t, levels[len(levels)-1], as(t, "killed"))
	if !r.Hasty || !strings.Contains(r.Stopped, "killed") {
		t.Errorf("%q hasty: %v", r.Stopped, r.Hasty)
	}
}

// TestSignals: how a program ended that a signal ended is told with the signal, and the limit
// that it may have met.
func TestSignals(t *testing.T) {
	for signal, want := range map[string]string{
		"SEGV": "signal 11 (segmentation fault): it crashed, as a program may that gets no more memory than 5 MiB",
		"XCPU": "signal 24 (CPU time limit exceeded): it took more than 3s of CPU",
		"XFSZ": "signal 25 (file size limit exceeded): it wrote a file of more than 7 MiB",
		"SYS":  "signal 31 (bad system call): it asked the system for what the sandbox does not allow",
		"USR1": "signal 10 (user defined signal 1)",
	} {
		cmd := exec.Command("sh", "-c", "ulimit -c 0; kill -"+signal+" $$")
		err := cmd.Run()
		var r Result
		if err := r.judge(err, cmd.ProcessState, Limits{CPU: 3 * time.Second, Memory: 5 << 20, FileSize: 7 << 20}); err != nil ||
			r.Signal != want || r.Stopped != "" {
			t.Errorf("%s: %q, %v", signal, r.Signal, err)
		}
	}
}
