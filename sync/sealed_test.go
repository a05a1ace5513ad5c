// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/sops/sopstest"
)

// sealed writes a unit with a Secret that sops encrypted, and a ConfigMap.
func (w *world) sealed(key sopstest.Key, password string) {
	w.Helper()
	ns := w.tenant + "-c"
	w.policy("db", `{placement: {match: {labels: {site: two}}}}`)
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: %s}\nstringData: {password: %s}\ndata: {token: %s}\n",
		ns, password, base64.StdEncoding.EncodeToString([]byte("token-of-"+password)))
	w.write("services/db/secret.yaml", key.Encrypt(w, "secret.yaml", secret, sopstest.SecretRule...))
	w.write("services/db/config.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: db, namespace: %s}\ndata: {about: n%d}\n", ns, len(password)))
	w.commit()
}

// live is what the live Secret has under a key.
func (w *world) live(key string) string {
	secret := w.get("dev-2/c", secrets, "db")
	if secret == nil {
		return ""
	}
	data, _ := secret.Object["data"].(map[string]any)
	text, _ := data[key].(string)
	plain, err := base64.StdEncoding.DecodeString(text)
	w.must(err)
	return string(plain)
}

func (w *world) dbIs(status rollout.Status) func() bool {
	return func() bool { u := w.unit("db"); return u != nil && u.Rollout.Status == status }
}

func (w *world) dbReason() string {
	if u := w.unit("db"); u != nil && u.Targets["dev-2/c"] != nil {
		return u.Targets["dev-2/c"].Reason
	}
	return ""
}

// TestSealedSecret: a Secret that sops encrypted goes to a real API server, is changed,
// waits while there is no key or the file was tampered with, and is put back from an
// earlier commit. Its values are nowhere else.
func TestSealedSecret(t *testing.T) {
	t.Parallel()
	sealedSecret(t, newWorld(t))
}

// TestSealedSecretSimulated is the same in a simulated cluster.
func TestSealedSecretSimulated(t *testing.T) {
	simulated(t, sealedSecret)
}

func sealedSecret(t *testing.T, w *world) {
	key, other := sopstest.NewKey(t), sopstest.NewKey(t)
	restart := func(keys ...string) {
		w.stop()
		w.secrets = config.Secrets{SecretKeys: config.SecretKeys{AgeKeyFiles: keys}}
		w.start()
	}
	const first, second = "first-Value-7431", "second-Value-90817"
	restart(key.File)
	w.release()
	w.sealed(key, first)
	w.until("the Secret", w.dbIs(rollout.Done))
	w.want("password", w.live("password"), first)
	w.want("token", w.live("token"), "token-of-"+first)

	restart(other.File)
	w.sealed(key, second)
	w.until("that it waits for a key", func() bool { w.pass(); return strings.Contains(w.dbReason(), "no key opens it") })
	if reason := w.dbReason(); !strings.Contains(reason, "services/db/secret.yaml") || !strings.Contains(reason, key.Recipient) {
		t.Errorf("the reason does not name the file and the key: %s", reason)
	}
	w.want("password without a key", w.live("password"), first)
	if about := w.get("dev-2/c", configMaps, "db").Object["data"].(map[string]any)["about"]; about != fmt.Sprintf("n%d", len(first)) {
		t.Errorf("a part of the bundle was written without the key: %v", about)
	}
	w.app("app", "2", "one")
	w.commit()
	w.until("that another unit goes on", w.is("app", 2, rollout.Progressing))
	if u := w.unit("db"); len(u.Quarantine) > 0 || u.Rollout.Status == rollout.RolledBack || u.Rollout.Status == rollout.RollingBack {
		t.Errorf("a key that is missing turned the release back: %+v", u.Rollout)
	}

	restart(other.File, key.File)
	w.until("the Secret with the key", func() bool { return w.live("password") == second && w.dbIs(rollout.Done)() })
	w.want("password", w.live("password"), second)

	w.give(order.Order{Verb: order.Rollback, Scope: order.Scope{Unit: "services/db"}, Reason: "to see the one before"})
	w.until("the Secret of the commit before", func() bool { w.pass(); return w.live("password") == first && w.live("token") == "token-of-"+first })
	w.give(order.Order{Verb: order.Retry, Scope: order.Scope{Unit: "services/db"}})
	w.until("the Secret again", func() bool { w.pass(); return w.live("password") == second && w.dbIs(rollout.Done)() })

	w.replace("services/db/secret.yaml", "kind: Secret", "kind: Secret\ntype: Opaque")
	w.commit()
	w.until("that what was changed is not used", func() bool { w.pass(); return strings.Contains(w.dbReason(), "somebody changed it") })
	w.want("password", w.live("password"), second)
	w.stop()
	w.nowhere(first, second)
	for _, text := range []string{first, second} {
		if strings.Contains(w.logged.String(), text) {
			t.Errorf("the log holds %q", text)
		}
	}
}

// TestSealedSecretCopied: a tenant copies the encrypted file of another one into a unit
// of its own. The daemon has the key of that file, and does not use it for the copy.
func TestSealedSecretCopied(t *testing.T) {
	simulated(t, func(t *testing.T, w *world) {
		key, own := sopstest.NewKey(t), sopstest.NewKey(t)
		w.stop()
		w.secrets = config.Secrets{
			SecretKeys: config.SecretKeys{AgeKeyFiles: []string{own.File}},
			Tenants:    map[string]config.SecretKeys{w.tenant: {AgeKeyFiles: []string{key.File}}},
		}
		w.start()
		w.release()
		const value = "first-Value-7431"
		w.sealed(key, value)
		w.until("the Secret", w.dbIs(rollout.Done))
		w.want("password", w.live("password"), value)

		content, err := os.ReadFile(filepath.Join(w.repo(), "services/db/secret.yaml"))
		w.must(err)
		w.policy("copy", `{tenant: thief, placement: {match: {labels: {site: two}}}}`)
		w.write("services/copy/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnameSuffix: -copy\nresources: [secret.yaml]\n")
		w.write("services/copy/secret.yaml", string(content))
		w.commit()
		w.until("that the copy waits for a key", func() bool {
			w.pass()
			u := w.unit("copy")
			return u != nil && u.Targets["dev-2/c"] != nil && strings.Contains(u.Targets["dev-2/c"].Reason, "no key opens it")
		})
		if live := w.get("dev-2/c", secrets, "db-copy"); live != nil {
			t.Errorf("the copy was written: %v", live.GetName())
		}

		// The keys of all open nothing for a tenant that has its own.
		w.policy("copy", fmt.Sprintf(`{tenant: %s, placement: {match: {labels: {site: two}}}}`, w.tenant))
		w.write("services/copy/secret.yaml", own.Encrypt(t, "secret.yaml", fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: %s-c}\nstringData: {password: %s}\n", w.tenant, value), sopstest.SecretRule...))
		w.commit()
		w.until("that it waits for a key of the tenant", func() bool {
			w.pass()
			u := w.unit("copy")
			return u != nil && u.Targets["dev-2/c"] != nil && strings.Contains(u.Targets["dev-2/c"].Reason, "no key of tenant "+w.tenant+" opens it")
		})
	})
}
