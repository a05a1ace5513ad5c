// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Ask is the start of a wave that waits for approval.
type Ask struct {
	Digest  object.Digest   `json:"digest"`
	Unit    config.UnitPath `json:"unit"`
	Wave    string          `json:"wave"`
	Commit  config.Commit   `json:"commit"`
	By      []string        `json:"by,omitempty"`      // who may; empty is every operator but the authors
	Authors []string        `json:"authors,omitempty"` // who may not
	Since   time.Time       `json:"since,omitzero"`
	Expires string          `json:"expires"` // how long an approval is good for, like "24h0m0s"
}
