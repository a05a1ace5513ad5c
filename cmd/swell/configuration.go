// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// configuration is that of a daemon, as it was read.
type configuration struct {
	*config.Daemon
	content []byte
	at      time.Time
}

// readConfiguration reads the daemon's configuration; all problems are in the error, one a
// line.
func readConfiguration(file configPath) (configuration, error) {
	read, err := file.read()
	if err != nil {
		return configuration{}, err
	}
	return read, file.found(read.Daemon)
}

// read reads the file, whoever may have written it.
func (f configPath) read() (configuration, error) {
	content, err := f.in.readFile(f.name)
	if err != nil {
		return configuration{}, hinted{err, "--config names the daemon's configuration, a document of kind Daemon; swell init writes one"}
	}
	return parseConfiguration(f, content)
}

func parseConfiguration(file configPath, content []byte) (configuration, error) {
	settings, problems := config.ReadDaemon(file.in.path(file.name), content)
	if len(problems) > 0 {
		return configuration{}, file.in.namedProblems(problems)
	}
	return configuration{settings, content, time.Now()}, nil
}

// configurationEvery is how often the file is read. It is small, and programs that tell of
// changes do not see those of a mounted ConfigMap.
const configurationEvery = 2 * time.Second

// configurationWatch is what is known of the file.
type configurationWatch struct {
	judged []byte // the content that was taken, or refused; nil: it could not be read
	seen   []byte // at the last look
}

// awaitConfiguration returns the next configuration that can be taken, or nil when ctx ends.
// Of one that cannot, the log and a condition say why. A hangup also has the daemon look at
// Git.
func (p *process) awaitConfiguration(ctx context.Context, d *openDaemon, hangups <-chan struct{}) *configuration {
	ticker := time.NewTicker(configurationEvery)
	defer ticker.Stop()
	for {
		hangup := false
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			hangup = true
		case <-ticker.C:
		}
		content, unread := p.readAgain()
		if !hangup && !p.watch.settled(content) {
			continue
		}
		next, err := p.judge(content, unread)
		switch {
		case err != nil:
			p.refuse(d, err)
		case next != nil:
			return next
		default:
			d.SetConfigurationProblem("")
		}
		if hangup {
			d.Hurry()
		}
	}
}

// readAgain reads the file. What is no file, such as a pipe, was read at the start and does
// not change; another read might never end.
func (p *process) readAgain() ([]byte, error) {
	if info, err := os.Stat(p.file.in.path(p.file.name)); err == nil && !info.Mode().IsRegular() {
		return p.is.content, nil
	}
	return p.file.in.readFile(p.file.name)
}

// settled says whether the content is another one than was judged, and the same as at the
// last look: nobody is in the middle of writing it.
func (w *configurationWatch) settled(content []byte) bool {
	same := bytes.Equal(content, w.seen)
	w.seen = content
	return same && !bytes.Equal(content, w.judged)
}

// judge decides about the content of the file: nil where it changes nothing.
func (p *process) judge(content []byte, unread error) (*configuration, error) {
	p.watch.judged = content
	if unread != nil {
		return nil, unread
	}
	next, err := parseConfiguration(p.file, content)
	if err == nil {
		err = p.file.found(next.Daemon)
	}
	if err != nil {
		return nil, err
	}
	if next.State != p.is.State {
		return nil, fmt.Errorf("%s: spec.state is %s, and was %s: start swell again to use another state", p.file.name, next.State, p.is.State)
	}
	changed := p.is.Changed(next.Daemon)
	if len(changed) == 0 {
		return nil, nil
	}
	p.log.Info("the configuration has changed", "file", p.file.name, "fields", strings.Join(changed, ", "))
	return &next, nil
}

// shownProblems is how many problems of a file the condition has.
const shownProblems = 3

// refuse says why a changed configuration is not taken.
func (p *process) refuse(d *openDaemon, err error) {
	p.log.Error("the changed configuration is not taken", "file", p.file.name, "err", err)
	text := err.Error()
	var problems document.Problems
	if errors.As(err, &problems) {
		text = document.Some(strings.Split(text, "\n"), shownProblems)
	}
	d.SetConfigurationProblem(fmt.Sprintf("%s; the configuration of %s stays in force; SIGHUP has the file tried again", text, fullTime(p.is.at)))
}
