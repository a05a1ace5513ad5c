// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { roles["foreign"] = foreign }

// foreign asks for its id as a program of 32 bits does: that is another architecture
// for the kernel, with numbers of its own for all system calls.
func foreign([]string) int {
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	copy(code, []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20 (getpid)
		0xcd, 0x80, // int 0x80
		0x48, 0x98, // cdqe
		0xc3, // ret
	})
	at := &code[0]
	call := &at
	id := (*(*func() int)(unsafe.Pointer(&call)))()
	fmt.Printf("answer %d\n", id)
	return 0
}

// What the filter refuses cannot be asked for in the way of another architecture. Many
// kernels know no such way (CONFIG_IA32_EMULATION): there it is a fault, with a filter or
// without.
func TestForeignCalls(t *testing.T) {
	want := fmt.Sprintf("answer -%d", int(unix.ENOSYS))
	c := as(t, "foreign")
	if said, err := exec.Command(c.Program, c.Args...).CombinedOutput(); err != nil {
		want = "unexpected fault address"
		if !strings.HasPrefix(string(said), want) {
			t.Fatalf("without a sandbox: %v: %s", err, said)
		}
	}
	eachLevel(t, func(t *testing.T, l level) {
		r := run(t, l, c)
		if got := strings.TrimSpace(string(r.Output)); !strings.HasPrefix(got, want) {
			t.Errorf("the program said %q, want %q; guards: %v", got, want, r.Guards)
		}
	})
}
