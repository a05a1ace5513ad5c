// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// killedIn makes this test binary write to the folder that it names, until it
// is killed.
const killedIn = "SWELL_STORE_TEST_DIR"

// orderedIn makes this test binary write an order to the state in the folder that
// it names, although it is locked: no swell does that any more, an older one did.
const orderedIn = "SWELL_STORE_TEST_ORDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(orderedIn); dir != "" {
		s := &Store{writer: newStatements(connect(filepath.Join(dir, fileName), "mode=rw", 1))}
		err := s.Update(context.Background(), func(tx *Tx) error {
			_, err := tx.Give(order.Order{At: time.Now(), By: "test", Verb: order.Retry}, "")
			return err
		})
		fmt.Println(errors.Join(err, s.Close()))
		os.Exit(0)
	}
	if dir := os.Getenv(killedIn); dir != "" {
		fmt.Println(writeForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const batchSize = 40

func batch(n int) []Entry {
	entries := make([]Entry, batchSize)
	for i := range entries {
		entries[i] = entry(i)
		entries[i].Target = config.TargetName(fmt.Sprintf("dev/%06d", n))
	}
	return entries
}

// writeForever intends and confirms batch after batch, and says so after each.
func writeForever(dir string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	units, err := s.Units()
	if err != nil {
		return err
	}
	for n := len(units); ; n++ {
		fmt.Println("begin", n)
		entries := batch(n)
		if err := s.Update(context.Background(), func(tx *Tx) error {
			return errors.Join(tx.PutUnit(config.UnitPath(fmt.Sprint(n)), []byte("intended")), tx.Intend(entries))
		}); err != nil {
			return err
		}
		fmt.Println("intended", n)
		for i := range entries {
			entries[i] = confirmed(entries[i], object.Digest(strings.Repeat("d", 64)))
			entries[i].Fields = strings.Repeat("f", 500+n)
		}
		if err := s.Update(context.Background(), func(tx *Tx) error {
			return errors.Join(tx.Confirm(entries), tx.AddHistory([]Event{{Time: time.Now(), Kind: "done"}}))
		}); err != nil {
			return err
		}
		fmt.Println("confirmed", n)
	}
}

// TestKill kills a writer again and again. What it said to be written is there,
// what it had not begun is not, and what it was in the middle of is there as a
// whole or not at all.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	seen := heard{begun: -1, intended: -1, confirmed: map[int]bool{}, unsure: map[int]bool{}}
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killedIn+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		left := 1 + random.IntN(40) // lines before it is killed
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var what string
			var n int
			if _, err := fmt.Sscan(lines.Text(), &what, &n); err != nil {
				t.Errorf("round %d: the writer said %q", round, lines.Text())
			}
			switch what {
			case "begin":
				seen.begun = n
			case "intended":
				seen.intended = n
			case "confirmed":
				seen.confirmed[n] = true
			}
			if left--; left == 0 { // what it still said is read to the end
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		cmd.Wait()
		seen.unsure[seen.begun] = !seen.confirmed[seen.begun]
		seen.compare(t, dir)
	}
	if len(seen.confirmed) < 10 {
		t.Errorf("only %d batches were written", len(seen.confirmed))
	}
}

// heard is what the writers said, in all rounds.
type heard struct {
	begun, intended   int // the last ones
	confirmed, unsure map[int]bool
}

func (h *heard) compare(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(dir) // the lock is free, and the check of the whole file passes
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	entries := value[[]Entry](t)(s.ClusterInventory("dev"))
	if len(entries)%batchSize != 0 {
		t.Fatalf("half a batch is there: %d entries", len(entries))
	}
	there := len(entries)/batchSize - 1 // the last batch that is there
	if there < h.intended || there > h.begun {
		t.Fatalf("batch %d is the last one there, but %d was said to be written and %d begun", there, h.intended, h.begun)
	}
	if units := value[map[config.UnitPath][]byte](t)(s.Units()); len(units) != there+1 {
		t.Fatalf("%d units for %d batches: one transaction was split", len(units), there+1)
	}
	for i, e := range entries {
		n := i / batchSize
		want := batch(n)[i%batchSize]
		if h.confirmed[n] || h.unsure[n] && entries[n*batchSize].UID != "" {
			want = confirmed(want, object.Digest(strings.Repeat("d", 64)))
			want.Fields = strings.Repeat("f", 500+n)
		}
		if e != want {
			t.Fatalf("batch %d: got %.200s, want %.200s", n, fmt.Sprint(e), fmt.Sprint(want))
		}
	}
}
