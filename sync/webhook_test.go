// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/rollout"
)

// TestAWebhookThatIsAway: an admission webhook that does not answer says nothing
// about the objects. The release waits for it, with the reason shown, however long.
func TestAWebhookThatIsAway(t *testing.T) {
	t.Parallel()
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
		return target.Trouble == rollout.TroubleUnavailable && strings.Contains(target.Reason, `failed calling webhook "mutate.example.com"`)
	}
	w.until("the reason", waits)
	for range 10 {
		w.now = w.now.Add(10 * time.Minute)
		w.pass()
	}
	if u := w.unit("app"); !waits() || u.Rollout.Status != rollout.Progressing || len(u.Quarantine) > 0 {
		t.Fatal(w.describe())
	}
	url(there)
	w.soaked("app", 2)
	w.want("images", w.tags("app"), "2 2 2")
}
