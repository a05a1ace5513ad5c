// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/rollout"
)

// TestAWebhookThatIsAway: an admission webhook that does not answer says nothing
// about the objects. The release waits for it, with the reason shown, as long as
// the wave's timeout; only then it has failed.
func TestAWebhookThatIsAway(t *testing.T) {
	w := newWorld(t)
	w.release()
	w.mutate("dev-1/a", func(int32) string { return "mutated" })
	url := func(url string) {
		w.Helper()
		_, err := w.client("dev-1").Resource(webhooks).Patch(t.Context(), w.tenant, types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/webhooks/0/clientConfig/url","value":"`+url+`"}]`), metav1.PatchOptions{})
		w.must(err)
	}
	object, err := w.client("dev-1").Resource(webhooks).Get(t.Context(), w.tenant, metav1.GetOptions{})
	w.must(err)
	there := object.Object["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any)["url"].(string)
	const away = "https://127.0.0.1:1/"
	url(away)
	w.app("app", "2", "one")
	w.commit()
	waits := func() bool {
		target := w.unit("app").Targets["dev-1/a"]
		return target.Trouble == rollout.TroubleDeferred && strings.Contains(target.Reason, `failed calling webhook "mutate.example.com"`)
	}
	w.until("the reason", waits)
	url(there)
	w.soaked("app", 2)
	w.want("images", w.tags("app"), "2 2 2")

	url(away)
	w.app("app", "3", "one")
	w.commit()
	w.until("the reason", waits)
	w.until("the end of patience", func() bool { return w.unit("app").Rollout.Status == rollout.RollingBack })
	url(there)
	w.until("the way back", w.is("app", 3, rollout.RolledBack))
	w.want("images", w.tags("app"), "2 2 2")
}
