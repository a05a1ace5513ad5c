// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/swell-sh/swell/config"
)

// maxBetween is how many commits are listed.
const maxBetween = 1000

// Between are the commits that a branch went over on its way from one commit to another one:
// to, its first parent and so on, without from, the newest first. They are all on the branch
// itself: those of merged branches are not among them. Where from is not on that way, as
// after a rewind, it is to alone.
func (s *Source) Between(from, to config.Commit) ([]config.Commit, error) {
	h, err := hashOf(to)
	if err != nil {
		return nil, err
	}
	var way []config.Commit
	for range maxBetween {
		if commitOf(h) == from {
			return way, nil
		}
		way = append(way, commitOf(h))
		c, err := s.objects.commit(h)
		if errors.Is(err, errMissing) && h != plumbing.NewHash(string(to)) { // the end of a shallow history
			break
		}
		if err != nil {
			return nil, s.wrap("commit "+commitOf(h).Short(), err)
		}
		if len(c.ParentHashes) == 0 {
			break
		}
		h = c.ParentHashes[0]
	}
	return []config.Commit{to}, nil
}
