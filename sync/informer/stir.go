// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"time"

	"github.com/swell-sh/swell/render/object"
)

// stirPause is how long events of objects are gathered before a pass takes them:
// ill health that lasts for less is of no interest once a release is over.
const stirPause = 10 * time.Second

// stir notes that something happened to an object whose health may be another one now.
func (in *Informer) stir(cluster string, id object.ID) {
	in.mu.Lock()
	defer in.mu.Unlock()
	noted := in.stirred[cluster]
	if noted == nil {
		noted = map[object.ID]bool{}
		in.stirred[cluster] = noted
	}
	if len(noted) < MaxSuspects { // a sweep finds the others
		noted[id] = true
	}
	if !in.stirring {
		in.stirring = true
		time.AfterFunc(stirPause, in.wake)
	}
}

// DrainStirred takes the objects that something happened to since the last time, by
// cluster.
func (in *Informer) DrainStirred() map[string]map[object.ID]bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := in.stirred
	in.stirred, in.stirring = map[string]map[object.ID]bool{}, false
	return all
}
