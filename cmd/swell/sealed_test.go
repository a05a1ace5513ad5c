// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/demo"
	"github.com/swell-sh/swell/sync/sops"
	"github.com/swell-sh/swell/sync/sops/sopstest"
)

// sealedStage is a stage with Secrets that sops encrypted, and the daemon that runs on it.
type sealedStage struct {
	*stage
	key     sopstest.Key
	planter planter
	secrets []string // what must be nowhere: the values and the keys
	texts   map[string][]byte
}

// TestSealedNowhere: values that sops encrypted go to real API servers, and stand nowhere
// else: not in the state, the cache, the log, the output of a command or an answer of the
// API. Not even when the server refuses the Secret, and tells its values in the refusal.
func TestSealedNowhere(t *testing.T) {
	t.Parallel()
	s := &sealedStage{stage: newServerStage(t, demo.CartTargets[0].Cluster), key: sopstest.NewKey(t), planter: planter{Rand: rand.New(rand.NewSource(1))}, texts: map[string][]byte{}}
	s.plant()
	first := s.release()
	stop := s.daemon()
	s.untilLive(first)
	s.ask("released", 0)
	second := s.release()
	s.untilLive(second)
	if status := s.ask("changed", 0); !strings.Contains(status, "done") {
		t.Errorf("status %s", status)
	}
	s.denied()
	s.release()
	s.until("the refusal", func() bool {
		out, _ := verb(t.Context(), "", "history", "services/platform/vault", "-c", s.config)
		return strings.Contains(out, "the text is withheld: it quotes a value of the secret")
	})
	s.ask("refused", 1)
	s.untilLive(second) // it was put back, from the commit before
	stop()
	s.files(filepath.Join(filepath.Dir(s.config), "state"))
	s.nowhere()
}

// plant leaves the platform's units, and gives the daemon the key.
func (s *sealedStage) plant() {
	s.Helper()
	work := s.repo.Work
	identity, err := os.ReadFile(s.key.File)
	settings, more := os.ReadFile(s.config)
	if err := errors.Join(err, more, os.RemoveAll(filepath.Join(work, "services/shop")), os.RemoveAll(filepath.Join(work, "services/pay")),
		os.MkdirAll(filepath.Join(work, "services/platform/vault"), 0o755), os.MkdirAll(filepath.Join(work, "services/platform/boxed"), 0o755),
		os.RemoveAll(filepath.Join(work, "services/search")), os.RemoveAll(filepath.Join(work, "services/travel")),
		os.WriteFile(s.config, fmt.Appendf(settings, "  secrets: {ageKeyFiles: [%s]}\n  drift: {watch: true}\n", s.key.File), 0o600)); err != nil {
		s.Fatal(err)
	}
	s.secrets = append(s.secrets, strings.TrimSpace(string(identity[bytes.LastIndex(identity, []byte("AGE-SECRET-KEY-")):])))
}

// release pushes Secrets with new values: one in YAML, one in JSON below a kustomization.
func (s *sealedStage) release() (password string) {
	s.Helper()
	password = s.planter.token()
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: vault, namespace: default}\nstringData:\n  password: %s\n  file: |\n    first %s\n    second\ndata: {token: %s}\n",
		password, s.planter.token(), base64.StdEncoding.EncodeToString([]byte(s.planter.token())))
	boxed := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "boxed"}, "stringData": {"password": %q}}`, s.planter.token())
	s.secrets = append(s.secrets, s.planter.tokens...)
	for name, text := range map[string]string{"vault/secret.yaml": secret, "boxed/secret.json": boxed} {
		text = s.key.Encrypt(s, name, text, sopstest.SecretRule...)
		f, err := sops.Read(name, []byte(text))
		if err != nil {
			s.Fatal(err)
		}
		data, err := (&sops.Keys{Secrets: config.Secrets{SecretKeys: config.SecretKeys{AgeKeyFiles: []string{s.key.File}}}}).DataKey(s.Context(), f, "")
		if err := errors.Join(err, s.repo.Write("services/platform/"+name, text)); err != nil {
			s.Fatal(err)
		}
		s.secrets = append(s.secrets, string(data))
	}
	if err := errors.Join(s.repo.Write("services/platform/boxed/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: default\nnamePrefix: un-\nresources: [secret.json]\n"),
		s.repo.Push(s.Context(), "secrets")); err != nil {
		s.Fatal(err)
	}
	return password
}

// daemon runs until stop is called.
func (s *sealedStage) daemon() (stop func()) {
	s.Helper()
	var log bytes.Buffer
	cmd := program(s.Context(), "run", "-c", s.config)
	cmd.Stderr, cmd.Stdout = &log, &log
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		s.texts["log"] = log.Bytes()
	}
}

func (s *sealedStage) until(what string, ok func() bool) {
	s.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !ok(); {
		if time.Now().After(deadline) {
			out, _ := verb(s.Context(), "", "status", "-c", s.config, "-o", "wide")
			s.Fatalf("%s: not in time\n%s", what, out)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// untilLive waits for the password in all clusters.
func (s *sealedStage) untilLive(password string) {
	s.Helper()
	want := base64.StdEncoding.EncodeToString([]byte(password))
	for name, cluster := range s.clusters {
		s.until("the password in "+name, func() bool {
			live, err := cluster.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("default").Get(s.Context(), "vault", metav1.GetOptions{})
			if err != nil {
				return false
			}
			got, _, _ := unstructured.NestedString(live.Object, "data", "password")
			return got == want
		})
	}
	s.until("done", func() bool {
		out, _ := verb(s.Context(), "", "status", "-c", s.config)
		return strings.Contains(out, "done")
	})
}

// ask runs all that shows something, and returns the status.
func (s *sealedStage) ask(when string, diffCode int) string {
	s.Helper()
	work := s.repo.Work
	for i, args := range [][]string{
		{"status", "-o", "json"}, {"status", "-o", "wide"}, {"get", "objects", "-o", "yaml"}, {"get", "units", "-o", "json"}, {"get", "targets"}, {"get", "rollouts"},
		{"history"}, {"history", "services/platform/vault", "-o", "json"}, {"describe", "services/platform/vault"}, {"events"}, {"tree", "services/platform/vault"},
		{"orders"}, {"approve"}, {"retry"}, {"plan"}, {"diff", "--live", work}, {"diff", "HEAD~1", "HEAD"}, {"diff", "HEAD~1", "HEAD", "-o", "json"}, {"check", work},
		{"render", work, "-o", "yaml"}, {"render", work, "-o", "json"}, {"render", work, "--explain"}, {"blame", "secret/vault"},
	} {
		local := strings.Contains("diff check render blame", args[0]) && !strings.Contains(strings.Join(args, " "), "--live")
		if !local {
			args = append(args, "-c", s.config)
		}
		out, code := verb(s.Context(), work, args...)
		if args[0] == "diff" && args[1] == "--live" && code != diffCode {
			s.Errorf("%s: %v: exit code %d, want %d: %s", when, args, code, diffCode, out)
		}
		if strings.Contains(out, "unknown flag") || strings.Contains(out, "unknown command") {
			s.Errorf("%v: %s", args, out)
		}
		s.texts[fmt.Sprintf("%s %d %v", when, i, args)] = []byte(out)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(filepath.Dir(s.config), "state", "swell.sock"))
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: time.Minute}
	for _, path := range []string{"status", "units", "rollouts", "rollouts/services/platform/vault", "targets", "objects", "inventory?cluster=sas-1", "drift", "history", "plans", "retriable", "orders", "plan"} {
		answer, err := client.Get("http://swell/v1/" + path)
		if err != nil {
			s.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode >= 500 || answer.StatusCode == http.StatusNotFound {
			s.Errorf("GET /v1/%s: %s %v", path, answer.Status, err)
		}
		s.texts[when+" /v1/"+path] = body
	}
	return string(s.texts[when+" /v1/units"])
}

// denied has the real API server, whose turn is first, refuse the Secret, with its values in the refusal.
func (s *sealedStage) denied() {
	s.Helper()
	for _, resource := range []string{
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"talks"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["secrets"],"resourceNames":["vault"]}]},
"validations":[{"expression":"object.data.password == oldObject.data.password","messageExpression":"'not ' + string(object.data.password) + ' nor ' + string(object.data.token)"}]}}`,
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"talks"},"spec":{"policyName":"talks","validationActions":["Deny"]}}`,
	} {
		for _, name := range s.real {
			var object unstructured.Unstructured
			if err := object.UnmarshalJSON([]byte(resource)); err != nil {
				s.Fatal(err)
			}
			plural := map[string]string{"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings"}[object.GetKind()]
			if _, err := s.clusters[name].Client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}).Create(s.Context(), &object, metav1.CreateOptions{}); err != nil {
				s.Fatal(err)
			}
		}
	}
	time.Sleep(3 * time.Second) // until the server has it in force; it says so nowhere
}

// files reads all below a folder.
func (s *sealedStage) files(dir string) {
	s.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		n++
		content, err := os.ReadFile(name)
		s.texts[name] = content
		return err
	})
	if err != nil || n < 5 {
		s.Fatalf("%d files in %s: %v", n, dir, err)
	}
}

// nowhere looks for the secrets in all that was gathered, as they are and encoded.
func (s *sealedStage) nowhere() {
	s.Helper()
	total := 0
	for where, text := range s.texts {
		total += len(text)
		for i, secret := range s.secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret)), secret[:12]} {
				if bytes.Contains(text, []byte(form)) {
					s.Errorf("secret %d stands in %s", i, where)
				}
			}
		}
	}
	s.Logf("%d secrets in %d texts of %d bytes", len(s.secrets), len(s.texts), total)
}
