// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package timezone finds time zones in the data of the program alone. Go's
// time.LoadLocation uses ZONEINFO, TZ and the files of the machine first, so two
// machines may have different rules for a zone, or one of them may lack it.
package timezone

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"
)

// data is the IANA time zone database in the form of the Go release that
// go generate ran with: one entry for each zone, by its name.
//
//go:generate sh -c "cp $(go env GOROOT)/lib/time/zoneinfo.zip ."
//go:embed zoneinfo.zip
var data []byte

var archive = sync.OnceValue(func() *zip.Reader {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		panic(err) // there is no input
	}
	return r
})

var loaded sync.Map // *time.Location by name

// Load finds a zone by its name in the IANA database, "Europe/Berlin" or "UTC".
// "Local", which is another zone on each machine, and "", which Go takes for
// UTC, are errors like every name that is not there. Upper and lower case
// differ.
func Load(name string) (*time.Location, error) {
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	text, err := read(name)
	if err != nil {
		return nil, fmt.Errorf("%.60q: no such time zone, want a name like %q or %q", name, "Europe/Berlin", "UTC")
	}
	zone, err := time.LoadLocationFromTZData(name, text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, err)
	}
	if name == "UTC" {
		zone = time.UTC
	}
	loaded.Store(name, zone)
	return zone, nil
}

func read(name string) ([]byte, error) {
	f, err := archive().Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, fs.ErrNotExist
	}
	return io.ReadAll(f)
}

// Names are the names of all zones, sorted.
func Names() []string {
	var names []string
	for _, f := range archive().File {
		if !f.FileInfo().IsDir() {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}
