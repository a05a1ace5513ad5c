// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/swell-sh/swell/render/helm"
	"github.com/swell-sh/swell/sync/aside"
)

// lateFor is for how long a request that took too much time is answered with what became of it, and
// not tried again.
const lateFor = time.Hour

type requestKey [sha256.Size]byte

func keyOf(request helm.Request) requestKey {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q", request.Chart.Hash, request.Release, request.Namespace, request.Values)
	fmt.Fprintf(sum, " %q %q", request.Kubernetes, request.APIVersions)
	for _, f := range request.Files {
		fmt.Fprintf(sum, " %q %q", f.Name, f.Content)
	}
	return requestKey(sum.Sum(nil))
}

// Render renders a chart, and waits as long as it takes. A request that took too much time is not
// tried again for an hour.
func (r *Renderer) Render(request helm.Request) helm.Answer {
	answer, _ := r.within(request, 0)
	return answer
}

// Impatient is a [Renderer] whose callers do not wait for charts that take long.
type Impatient struct {
	*Renderer
	Patience time.Duration // how long they wait
}

// Render renders a chart. Who asks for one that takes longer than the patience gets a problem that
// says so, and the answer when it is there and he asks again.
func (r *Impatient) Render(request helm.Request) helm.Answer {
	answer, ok := r.within(request, r.Patience)
	if !ok {
		const late = "rendering takes longer than %s: it goes on aside, and the unit stays as it is until then"
		return failed(fmt.Sprintf(late, r.Patience), true)
	}
	return answer
}

func (r *Renderer) within(request helm.Request, patience time.Duration) (helm.Answer, bool) {
	group := aside.Group{Owner: request.Tenant, Name: request.Chart.Hash}
	return r.work.Do(keyOf(request), group, patience, func() (helm.Answer, time.Duration) {
		answer, tooLong := r.render(request)
		if tooLong {
			return answer, lateFor
		}
		return answer, 0
	})
}
