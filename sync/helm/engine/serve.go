// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package engine renders Helm charts with Helm's own code. It is the only package that
// imports Helm, and runs only in a process of its own, which package helm starts: Helm's
// engine cannot be stopped, and a chart may loop or take all memory.
//
// It opens no connection and reads no file: a chart comes with its request, and functions
// that would ask the machine are errors.
package engine

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"

	"github.com/swell-sh/swell/render/helm"
)

// Name is what this binary is called when it is to render charts: its only argument.
const Name = "swell-helm"

// Such a process does nothing else. No other code of swell runs in it, and a binary
// that imports this package needs no more for it.
func init() {
	if len(os.Args) == 2 && os.Args[1] == Name {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
}

// Message is sent to the process: a chart to keep, or a request of a chart that it keeps.
type Message struct {
	CPU     time.Duration // for this message; whole seconds
	Slot    int
	Chart   *helm.Chart
	Request *helm.Request
}

// Slots are how many charts a process keeps.
const Slots = 4

// Reply is the answer to a request.
type Reply struct {
	Answer helm.Answer
	Last   bool // the process ends
}

// Limits of one request. A process that comes to one ends.
const (
	maxMemory = 512 << 20
	maxStack  = 64 << 20
	maxAnswer = 64 << 20
	lookEvery = 5 * time.Millisecond
)

// serve answers requests until there are no more.
func serve(in io.Reader, out io.Writer) int {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what Helm says there it says in errors too, or not at all
	log.SetOutput(io.Discard)
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory)
	archive.MaxDecompressedChartSize = maxArchive
	var kept [Slots]*loaded
	for {
		var m Message
		if err := Receive(in, &m); err != nil {
			return 0 // nobody asks any more
		}
		if m.Chart != nil {
			kept[m.Slot] = nil
			guarded(out, m.CPU, "reading the chart", func() helm.Answer {
				kept[m.Slot] = load(*m.Chart)
				return helm.Answer{}
			})
			continue
		}
		answer := guarded(out, m.CPU, "rendering", func() helm.Answer { return kept[m.Slot].render(m.Request) })
		size := 0
		for _, o := range answer.Objects {
			size += len(o.JSON) + len(o.Text)
		}
		if size > maxAnswer {
			answer = helm.Answer{Problems: []helm.Finding{{Text: "the chart renders to more than 64 MiB"}}}
		}
		if err := Send(out, Reply{Answer: answer}); err != nil {
			return 1
		}
	}
}

// guarded does something that cannot be stopped. At a limit the process tells it and ends.
func guarded(out io.Writer, maxCPU time.Duration, what string, do func() helm.Answer) helm.Answer {
	done := make(chan helm.Answer, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	begun := used()
	for {
		select {
		case answer := <-done:
			return answer
		case <-tick.C:
		}
		text := ""
		switch {
		case used()-begun > maxCPU:
			text = fmt.Sprintf("%s takes more than %d s of CPU: does a template loop?", what, int(maxCPU.Seconds()))
		case heap() > maxMemory:
			text = what + " takes more than 512 MiB of memory: does a template loop?"
		default:
			continue
		}
		_ = Send(out, Reply{Answer: helm.Answer{Problems: []helm.Finding{{Text: text}}}, Last: true}) // nobody to tell else
		os.Exit(0)
	}
}

// used is how long the process has run.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it takes no more than memory of ours
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is the memory that objects take.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
