// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
)

// mark begins each frame. What a process says when it crashes has none.
const mark = "swl1"

// maxFrame is the length of the longest frame, in bytes.
const maxFrame = 512 << 20

// NoFrame is what was read in place of a frame.
type NoFrame struct{ Text string }

func (e *NoFrame) Error() string { return fmt.Sprintf("no frame: %q", e.Text) }

// Send writes a value as one frame: the mark, its length and its gob.
func Send(out io.Writer, value any) error {
	var b bytes.Buffer
	b.WriteString(mark)
	b.Write(make([]byte, 4))
	if err := gob.NewEncoder(&b).Encode(value); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(b.Bytes()[len(mark):], uint32(b.Len()-len(mark)-4))
	_, err := out.Write(b.Bytes())
	return err
}

// Receive reads a value as [Send] wrote it.
func Receive(in io.Reader, into any) error {
	head := make([]byte, len(mark)+4)
	n, err := io.ReadFull(in, head)
	if n > 0 && (err != nil || string(head[:len(mark)]) != mark) {
		const most = 1 << 20
		rest, _ := io.ReadAll(io.LimitReader(in, most)) // what was read counts
		return &NoFrame{string(head[:n]) + string(rest)}
	}
	if err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[len(mark):])
	if size > maxFrame {
		return fmt.Errorf("a frame of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	return gob.NewDecoder(bytes.NewReader(body)).Decode(into)
}
