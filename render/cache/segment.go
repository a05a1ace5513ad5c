// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// segment is one file of records.
type segment struct {
	file *os.File
	size int64
}

func openSegment(name string) (*segment, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &segment{file: f, size: info.Size()}, nil
}

// segmentNames lists the files of segments in a folder, oldest first.
func segmentNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && filepath.Ext(e.Name()) == ".seg" {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// createSegment makes the segment after the last one in the folder.
func createSegment(dir string) (*segment, error) {
	names, err := segmentNames(dir)
	if err != nil {
		return nil, err
	}
	number := 0
	if len(names) > 0 {
		// A file that somebody else put there counts as number 0.
		_, _ = fmt.Sscanf(names[len(names)-1], "%08d.seg", &number)
	}
	for {
		number++
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%08d.seg", number)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue // of another process
		}
		if err != nil {
			return nil, err
		}
		if _, err := f.WriteString(magic); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		return &segment{file: f, size: int64(len(magic))}, nil
	}
}

// append writes a record. A record that was written in part is overwritten by
// the next one, and ends the segment for readers until then.
func (s *segment) append(key Key, packed []byte) (place, error) {
	h := header(key, uint32(len(packed)))
	record := append(h[:], packed...)
	if _, err := s.file.WriteAt(record, s.size); err != nil {
		return place{}, err
	}
	at := place{s, s.size + int64(headerSize), uint32(len(packed))}
	s.size += int64(len(record))
	return at, nil
}

// scan tells of every record up to the first that is torn or damaged.
func (s *segment) scan(each func(Key, place)) {
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, s.size), 256<<10)
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(r, start); err != nil || string(start) != magic {
		return
	}
	offset := int64(len(magic))
	for {
		var h [headerSize]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return
		}
		const keySize = len(Key{})
		length := binary.BigEndian.Uint32(h[keySize:])
		offset += int64(headerSize)
		if crc32.Checksum(h[:keySize+4], castagnoli) != binary.BigEndian.Uint32(h[keySize+4:]) || offset+int64(length) > s.size {
			return
		}
		each(Key(h[:keySize]), place{s, offset, length})
		if _, err := r.Discard(int(length)); err != nil {
			return
		}
		offset += int64(length)
	}
}
