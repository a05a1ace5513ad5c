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
	"killed": killed, "withoutLandlock": withoutLandlock,
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
		t.Errorf("this machine gives no namespaces: only %s are tested", l.guards)
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
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o644), os.Chmod(filepath.Dir(secret), 0o755)); err != nil {
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
		limits := Limits{CPU: 3 * time.Second, Memory: 5 << 20, FileSize: 7 << 20}
		if err := r.judge(err, cmd.ProcessState, limits); err != nil || r.Signal != want || r.Stopped != "" {
			t.Errorf("%s: %q, %v", signal, r.Signal, err)
		}
	}
}
