// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/swell-sh/swell/sync/source/gittest"
)

// planter writes monorepos with a value of its own in every place that may hold
// a secret, and mistakes at random.
type planter struct {
	*rand.Rand
	tokens []string
	files  map[string]string
}

const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// token is a new value that stands nowhere else.
func (p *planter) token() string {
	b := make([]byte, 20)
	for i := range b {
		b[i] = alphabet[p.Intn(len(alphabet))]
	}
	// It is no number, begins no tag and looks like what people generate.
	token := "k" + strconv.Itoa(p.Intn(10)) + string(b) + strconv.Itoa(p.Intn(10)) + "Zq" + strconv.Itoa(p.Intn(10))
	p.tokens = append(p.tokens, token)
	return token
}

// digits is a value that is a number, octal to some.
func (p *planter) digits() string {
	text := "0"
	for range 15 {
		text += strconv.Itoa(1 + p.Intn(7))
	}
	p.tokens = append(p.tokens, text[1:])
	return text
}

func (p *planter) pick(options ...string) string { return options[p.Intn(len(options))] }

func (p *planter) maybe(percent int, text string) string {
	if p.Intn(100) < percent {
		return text
	}
	return ""
}

func deeper(text, by string) string {
	return strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by)
}

// value is YAML of a secret value, right or wrong, that may stand behind a key.
func (p *planter) value() string {
	t := p.token
	switch p.Intn(16) {
	case 0:
		return p.digits()
	case 1:
		return "[" + t() + ", " + t() + "]"
	case 2:
		return "{" + p.pick("a", "password") + ": " + t() + "}"
	case 3:
		return "{password:" + t() + "}"
	case 4:
		return "{https://user:" + t() + "@host/path: }"
	case 5:
		return `"` + t() + `\n\"quoted\" ` + t() + `"`
	case 6:
		return "|\n      -----BEGIN PRIVATE KEY-----\n      " + t() + t() + "\n      -----END PRIVATE KEY-----"
	case 7:
		return "!tagged " + t()
	case 8:
		return "*" + t()
	case 9:
		return "'it''s " + t() + "'"
	case 10:
		return base64.StdEncoding.EncodeToString([]byte(t()))
	case 11:
		return t() + "%%not-base64"
	case 12:
		return `"${` + t() + `}"`
	case 13:
		return strconv.Itoa(10+p.Intn(80)) + p.digits()[1:] + ".5e" + p.pick("3", "999")
	case 14: // words that are shown, around one that must not be
		return "secret-" + t() + "-password"
	case 15:
		return "postgres://username:" + t() + "@localhost:5432/database"
	}
	return t()
}

// entries are those of a mapping of secrets, keys and values.
func (p *planter) entries(by string) string {
	var b strings.Builder
	for range 1 + p.Intn(3) {
		key := p.pick("password", "token", "tls.key", "a b", "config.yaml")
		if p.Intn(8) == 0 {
			key = "https://x:" + p.token() + "@host"
		}
		fmt.Fprintf(&b, "%s%q: %s\n", by, key, deeper(p.value(), by))
		if p.Intn(10) == 0 {
			fmt.Fprintf(&b, "%s%q: %s\n", by, key, p.token()) // twice
		}
	}
	return b.String()
}

func (p *planter) secretKind() string {
	return p.pick("Secret", "Secret", "Secret", "Secrt", "secret", "Sercet", "Secrets", "SECRET", `"Secret "`, "Seceret", "SealedSecret")
}

// secret is a Secret, or what was meant to be one.
func (p *planter) secret(name string) string {
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: shop}\n", p.pick("v1", "v1", "v1", "v2"), p.secretKind(), name)
	for range 1 + p.Intn(2) {
		field := p.pick("data", "stringData", "stringData", "stringdata", "strngData", "dta")
		if p.Intn(4) == 0 {
			text += field + ": " + p.value() + "\n"
		} else {
			text += field + ":\n" + p.entries("  ")
		}
	}
	return text + p.maybe(15, p.token()+": v\n") + p.maybe(10, "  tail: [unclosed\n") + p.maybe(10, "\ttab: x\n") + p.maybe(10,
		"type: {}\n")
}

const plantedProto = `syntax = "proto3";
package example.vault;
import "buf/validate/validate.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "swell/options.proto";
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message Vault {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "Vault"};
  VaultSpec spec = 1;
}
message VaultSpec {
  string password = 1 [debug_redact = true];
  string token = 2 [(swell.secret) = true];
  int64 pin = 3 [(swell.secret) = true];
  string type = 4 [(swell.secret) = true];
  repeated string keys = 5 [(swell.secret) = true, (buf.validate.field).repeated.items.string.pattern = "^[a-z]*$"];
  map<string, string> creds = 6 [(swell.secret) = true];
  Conn conn = 7;
  oneof auth { string basic = 8 [(swell.secret) = true]; Conn other = 9 [debug_redact = true]; }
  bytes blob = 10 [(swell.secret) = true];
  google.protobuf.Struct free = 11 [(swell.secret) = true];
  google.protobuf.Duration wait = 12 [(swell.secret) = true];
  repeated Conn list = 13;
  string ruled = 14 [(swell.secret) = true, (buf.validate.field).cel = {id: "ruled", expression: "this == '' ? '' : 'bad ' + this"}];
  string mode = 15;
  bool flag = 16 [(swell.secret) = true];
}
message Conn {
  string host = 1;
  string url = 2 [(swell.secret) = true, (buf.validate.field).string.max_len = 200];
  Conn inner = 3;
}
`

func (p *planter) kind() string {
	text := `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: vault}
spec:
  message: example.vault.Vault
  let:
  - {name: first, value: "self.spec.mode == 'int' ? string(int(self.spec.password)) : self.spec.mode"}
  - {name: second, value: "self.spec.mode == 'key' ? {'a': 'b'}[self.spec.token] : 'x'"}
  - {name: third, value: "self.spec.mode == 'time' ? string(timestamp(self.spec.password + self.spec.token)) : 'x'"}
  - {name: fourth, value: "self.spec.mode == 'file' ? file(self.spec.token) : 'x'"}
  - {name: fifth, value: "self.spec.mode == 'upper' ? string(duration(self.spec.password.upperAscii())) : 'x'"}
  objects:
  - id: creds
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${self.metadata.name}", namespace: shop}
      stringData: {password: "${self.spec.password}", fixed: ` + p.token() + `}
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}", namespace: shop}
      data:
        first: ${first}${second}${third}${fourth}${fifth}
        url: "conn=${self.spec.conn.url} token=${self.spec.token}"
        encoded: ${base64.encode(bytes(self.spec.conn.url))}
        all: ${json.encode(self.spec)}
        keys: ${self.spec.keys.join(',')}
  - id: service
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${self.metadata.name}", namespace: shop}
      spec: {type: "${self.spec.type == '' ? 'ClusterIP' : self.spec.type}", ports: [{port: 80}], selector: {app: x}}
`
	if p.Intn(12) == 0 {
		text += "  - id: wrong\n    template:\n      apiVersion: v1\n      kind: " + p.pick("Secret", "Secrt") + "\n      metadata: {name: x, namespace: shop}\n      stringData:\n" + p.entries("        ")
	}
	return text
}

// more are kinds that stand for Vaults, gather them, and write files of them.
func (p *planter) more() {
	p.files["kinds/outer/outer.proto"] = `syntax = "proto3";
package example.outer;
import "swell/options.proto";
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message Outer {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "Outer"};
  OuterSpec spec = 1;
}
message OuterSpec { string key = 1 [(swell.secret) = true]; string mode = 2; }
`
	p.files["kinds/outer/kind.yaml"] = `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: outer}
spec:
  message: example.outer.Outer
  collect: {vaults: {apiVersion: easy.example.com/v1, kind: Vault, scope: tenant}}
  objects:
  - id: vault
    template:
      apiVersion: easy.example.com/v1
      kind: Vault
      metadata: {name: "${self.metadata.name}-in"}
      spec: {password: "${self.spec.key}", mode: "${self.spec.mode == 'nested' ? self.spec.key : self.spec.mode}", keys: ["${self.spec.mode == 'keys' ? self.spec.key : 'a'}"]}
  - id: file
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}", namespace: shop}
      data:
        file: ${template('file.tmpl', self.spec)}
        gathered: ${vaults.map(v, v.spec.token).join(',')}
        wrong: "${self.spec.mode == 'gather' ? string(int(vaults[0].spec.token)) : 'x'}"
  - id: service
    when: self.spec.mode == 'service'
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${self.metadata.name}", namespace: shop}
      spec: {type: "${vaults.map(v, v.spec.token).join('')}", ports: [{port: 80, name: "${self.spec.key}"}], selector: {app: x}}
`
	p.files["kinds/outer/file.tmpl"] = `key = {{ .key }}{{ if eq .mode "tmpl" }}{{ index .key 99999 }}{{ end }}{{ if eq .mode "tmpl2" }}{{ printf "%d" .key }}{{ end }}
`
	p.files["services/a/outer/x.yaml"] = "apiVersion: easy.example.com/v1\nkind: Outer\nmetadata: {name: outer}\nspec:\n  key: " + p.token() +
		"\n  mode: " + p.pick("x", "x", "nested", "keys", "gather", "service", "tmpl", "tmpl2", "int", "key", "time", "file", "upper") + "\n"
}

// spec is an easy spec; good ones render.
func (p *planter) spec(name string, good bool) string {
	text := "apiVersion: easy.example.com/v1\nkind: " + p.maybe(5, "Vaul") + "Vault\nmetadata: {name: " + name + "}\nspec:\n"
	if !good && text[0] != 'a' {
		text = strings.Replace(text, "VaulVault", "Vaul", 1)
	}
	text = strings.Replace(text, "VaulVault", "Vault", 1)
	t := p.token
	fields := []string{
		"password: " + t(), "token: '" + t() + "'", "conn: {host: h, url: \"postgres://u:" + t() + "@db/x\", inner: {url: " + t() + "}}",
		"creds: {a: " + t() + ", " + t() + ": b}", "keys: []", "list: [{url: " + t() + "}]", "free: {deep: [{x: " + t() + "}]}",
		"basic: " + t(),
		"blob: " + base64.StdEncoding.EncodeToString([]byte(t())),
	}
	if !good {
		for range 1 + p.Intn(3) {
			switch p.Intn(14) {
			case 0:
				fields[0] = "password: {fromFile: " + p.pick("token.txt", t()) + "}"
			case 1:
				fields = append(fields, p.pick("pin", "wait", "flag", "blob2", "type", "mod", "ruled")+": "+p.value())
			case 2:
				fields[2] = "conn: " + p.value()
			case 3:
				fields[3] = "creds: " + p.value()
			case 4:
				fields[4] = "keys: " + p.pick(p.value(), "["+t()+"]", "[{a: "+t()+"}]")
			case 5:
				fields[5] = "list: [{url: " + t() + ", url: " + t() + "}]"
			case 6:
				fields = append(fields, "type: "+t())
			case 7, 8:
				fields = append(fields, "mode: "+p.pick("int", "key", "time", "file", "upper"))
			case 9:
				fields[7] = "basic: " + t() + "\n  other: {url: " + t() + "}"
			case 10:
				fields[0] = "password: " + p.value()
			case 11:
				fields[6] = "free: " + p.value()
			case 12:
				fields[0] = "password: " + t() + "\n  {password:" + t() + "}"
			case 13:
				fields[1] = "token: {fromFile: token.txt, more: " + t() + "}"
			}
		}
	}
	text += "  " + strings.Join(fields, "\n  ") + "\n"
	if p.Intn(3) == 0 {
		text += "  override:\n" + p.override("    ", good)
	}
	return text
}

func (p *planter) override(by string, good bool) string {
	if good {
		return by + "creds: {update: [{path: stringData, value: {more: " + p.token() + "}}]}\n"
	}
	change := p.pick(
		"{update: [{path: stringData.x.y, value: "+p.token()+"}]}",
		"{update: [{path: \"stringData[?x=='"+p.token()+"']\", value: "+p.token()+"}]}",
		"{patch: [{op: replace, path: /stringData/nothing, value: "+p.token()+"}]}",
		"{patch: [{op: test, path: /stringData/password, value: "+p.token()+"}]}",
		"{update: [{path: stringData, value: {pin: "+p.digits()+"}}]}",
		"{update: [{path: data, value: "+p.token()+"}]}",
		"{update: {stringData: {a: "+p.token()+"}}}",
		"{updat: [{path: data, value: "+p.token()+"}]}",
	)
	return by + p.pick("creds", "creds", "cred") + ": " + change + "\n"
}

func (p *planter) defaults() string {
	text := "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec:\n  tenant: shop\n  placement: {topology: cluster, match: {labels: {ring: canary}}}\n"
	if p.Intn(4) == 0 {
		text += "  overrides:\n  - kind: " + p.pick("Secret", "Secrt", "Vault") + "\n    " + p.pick(
			"object: creds\n    update: [{path: stringData.x.y, value: "+p.token()+"}]",
			"update: [{path: data, value: {pin: "+p.digits()+"}}]",
			"update: "+p.token(),
			"patch: [{op: add, path: /data, value: "+p.token()+"}]\n    "+p.token()+": ",
		) + "\n"
	}
	return text
}

func (p *planter) kustomization(dir string) {
	text := "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\nnamespace: shop\n"
	p.files[dir+"/plain.env"] = "A=" + p.token() + "\n"
	p.files[dir+"/secret.yaml"] = p.secret("base")
	switch p.Intn(9) {
	case 0:
		text += "secretGenerator:\n- name: gen\n  literals: [password=" + p.token() + ", " + p.token() + "]\n"
	case 1:
		text += p.pick("secretGenerator", "configMapGenerator") + ":\n- name: gen\n  " + p.pick("envs", "files") + ":\n  - |\n    -----BEGIN KEY-----\n    " + p.token() + "\n    -----END KEY-----\n"
	case 2:
		text += "secretGenerator:\n- name: gen\n  " + p.pick("envs", "files") + ": [" + p.token() + "]\n"
	case 3:
		text += "secretGenerator:\n- name: gen\n  envs: [plain.env]\n"
	case 4:
		text += "resources: [secret.yaml]\npatches:\n- patch: |\n    kind: Secret\n    apiVersion: v1\n    metadata: {name: base, namespace: shop}\n    stringData: {a: " + p.token() + "}\n"
	case 5:
		text += "resources: [secret.yaml]\npatches:\n- target: {kind: " + p.secretKind() + ", name: base}\n  patch: |\n    - {op: " + p.pick("replace", "test", "add") + ", path: /stringData/" + p.pick("a", "b/c") + ", value: " + p.value() + "}\n"
	case 6:
		text += "secretGenerator:\n- name: gen\n  literals: {password:" + p.token() + "}\n"
	case 7:
		text += "resources: [secret.yaml]\npatchesStrategicMerge:\n- |\n  {kind: Secret, metadata: {name: base}, data: {x: " + p.token() + "\n"
	case 8:
		text += "configMapGenerator:\n- name: gen\n  literals: [a=b]\n  " + p.pick("envs", "env", "files") + ": " + p.pick("[\"https://x:"+p.token()+"@h/p\"]", p.token()) + "\n"
	}
	p.files[dir+"/kustomization.yaml"] = text
}

// monorepo writes files; of every unit but the first some are wrong.
func (p *planter) monorepo() {
	p.files["swell.yaml"] = "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: planted}\nspec: {units: [services], checks: {plainSecrets: pass}}\n"
	p.files["fleet/c.yaml"] = "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: c-1, labels: {ring: canary}}\nspec: {kubernetes: \"1.36\", tenants: [\"*\"]}\n" +
		"---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n"
	p.files["kinds/vault/vault.proto"], p.files["kinds/vault/kind.yaml"] = plantedProto, p.kind()
	p.files["kinds/vault/tests/one.txtar"] = "One.\n-- spec.yaml --\n" + p.spec("one", p.Intn(3) > 0) + "-- token.txt --\n" + p.token() + "\n"
	p.files["services/a/swell.yaml"] = p.defaults()
	p.files["services/a/space/x.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	p.files["services/a/good/x.yaml"] = p.spec("good", true)
	p.files["services/a/hard/x.yaml"] = "apiVersion: v1\nkind: Secret\nmetadata: {name: hard, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: " + p.token() + "}}\nstringData:\n  password: " + p.token() + "\n  " + p.token() + ": v\ndata: {tls.key: " + base64.StdEncoding.EncodeToString([]byte(p.token())) + "}\n"
	for i := range 3 {
		dir := fmt.Sprintf("services/a/spec%d", i)
		p.files[dir+"/x.yaml"], p.files[dir+"/token.txt"] = p.spec("spec"+strconv.Itoa(i), p.Intn(4) == 0), p.token()
		p.files[fmt.Sprintf("services/a/secret%d/x.yaml", i)] = p.secret("secret" + strconv.Itoa(i))
	}
	p.files["services/a/list/x.yaml"] = "apiVersion: v1\nkind: " + p.pick("List", "SecretList") + "\nitems:\n- " + deeper(p.secret("listed"), "  ") + "\n"
	p.files["services/a/none/x.yaml"] = p.pick("password:"+p.token()+"\n", "{password: "+p.token()+"}\n", "stringData: {a: "+p.token()+"}\nkind: \n")
	p.kustomization("services/a/kust")
	p.kustomization("services/a/kust2")
	p.more()
	p.env("services/a/env")
	p.env("services/a/env2")
}

// env is a Secret from an env file with lines that kustomize takes for keys.
func (p *planter) env(dir string) {
	file := p.pick("app.env", "app.env", "env.yaml")
	p.files[dir+"/kustomization.yaml"] = "namespace: shop\nsecretGenerator:\n- name: gen\n  " + p.pick("envs: ["+file+"]", "env: "+file) + "\n"
	lines := []string{"USER=admin", "TOKEN=" + p.token()}
	for range p.Intn(3) {
		lines = append(lines, p.pick(
			"TOKEN: "+p.token(),
			p.token()+" = abc",
			p.token()+"=abc",
			"export A: '"+p.token()+"'",
			"QUOTED=\"first\n"+p.token()+" second\"",
			"KEY=\"-----BEGIN PRIVATE KEY-----\n"+p.token()+p.token()+"\n"+p.token()+"/+a==\n-----END PRIVATE KEY-----\"",
		), "A"+strconv.Itoa(len(lines))+"=x")
	}
	p.files[dir+"/"+file] = strings.Join(lines, "\n") + "\n"
}

func (p *planter) write(t *testing.T, dir string) {
	for name, content := range p.files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// finder looks for tokens in outputs, in all the forms that they may have.
type finder struct {
	parts map[string]string // 8 bytes in small letters -> the token
}

const foundPart = 8

func newFinder(tokens []string) *finder {
	f := &finder{map[string]string{}}
	for _, token := range tokens {
		forms := []string{token}
		for skip := range 3 {
			part := token[skip:]
			forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(part[:len(part)/3*3])))
		}
		if n, err := strconv.ParseInt(token, 8, 64); err == nil {
			forms = append(forms, strconv.FormatInt(n, 10))
		}
		for _, form := range forms {
			form = strings.ToLower(form)
			for i := 0; i+foundPart <= len(form); i++ {
				f.parts[form[i:i+foundPart]] = token
			}
		}
	}
	return f
}

// find returns where the first part of a token stands; empty when there is none.
func (f *finder) find(output string) string {
	text := strings.ToLower(output)
	for i := 0; i+foundPart <= len(text); i++ {
		if token, ok := f.parts[text[i:i+foundPart]]; ok {
			from, to := strings.LastIndexByte(output[:i], '\n')+1, len(output)
			if end := strings.IndexByte(output[i:], '\n'); end >= 0 {
				to = i + end
			}
			return fmt.Sprintf("%s in: %.600s", token, output[from:to])
		}
	}
	return ""
}

// plantedRun is what became of one monorepo.
type plantedRun struct{ planted, outputs, bytes, objects, found int }

// runPlanted writes two monorepos by a seed, runs every verb over them in every
// format, and looks for what was planted. Of the outputs it takes one in so many:
// a run must not take long where it is one of very many.
func runPlanted(t *testing.T, seed int64, oneIn int, withDaemon bool) (run plantedRun) {
	dir := t.TempDir()
	t.Chdir(dir)
	base := &planter{Rand: rand.New(rand.NewSource(seed)), files: map[string]string{}}
	base.monorepo()
	base.write(t, "base")
	head := &planter{Rand: rand.New(rand.NewSource(seed + 1<<32)), files: map[string]string{}}
	head.monorepo()
	head.write(t, "head")
	f := newFinder(append(base.tokens, head.tokens...))
	run.planted = len(base.tokens) + len(head.tokens)
	look := func(what, output string) {
		run.outputs++
		run.bytes += len(output)
		if where := f.find(output); where != "" {
			run.found++
			t.Errorf("seed %d: %s shows %s", seed, what, where)
		}
	}
	swell := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		execute(t.Context(), writingTo(&stdout, &stderr), args)
		look(strings.Join(args, " ")+" (stderr)", stderr.String())
		return stdout.String()
	}
	shown := func(args ...string) {
		t.Helper()
		if base.Intn(oneIn) == 0 {
			look(strings.Join(args, " "), swell(args...))
		}
	}
	none := "--cache=none"
	for _, format := range []string{"text", "json", "yaml", "sarif", "github", "gitlab", "junit", "markdown"} {
		shown("check", "head", none, "-o", format)
	}
	shown("check", "head", none, "--excerpt")
	shown("check", "head", none, "--color")
	names := swell("render", "head", none, "-o", "name")
	look("render -o name", names)
	swell("render", "head", none) // its output is what is applied
	swell("render", "head", none, "-o", "json")
	for _, unit := range []string{"good", "hard", "kust", "kust2", "env", "env2", "spec0", "secret0", "outer"} {
		shown("render", "head", none, "--explain", "--unit", "services/a/"+unit)
	}
	for _, format := range []string{"text", "name", "json", "yaml", "markdown"} {
		shown("diff", "base", "head", none, "-o", format)
	}
	for line := range strings.Lines(names) {
		run.objects++
		fields := strings.Fields(line)
		object := fields[len(fields)-1]
		for _, format := range []string{"text", "json", "yaml"} {
			shown("blame", object, "head", none, "-o", format)
		}
		shown("blame", object, "nothing.here", "head", none)
		shown("blame", object, "data.password", "head", none)
	}
	shown("explain", "Vault", "head")
	shown("explain", "Vault.spec.password", "head")
	shown("kind", "test", "--repo", "head")
	shown("kind", "test", "--update", "--repo", "head")
	for _, verb := range []string{"crd", "json", "openapi"} {
		shown("schema", verb, "--path", "head")
	}
	content, err := os.ReadFile("head/kinds/vault/tests/one.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if _, want, ok := strings.Cut(string(content), "-- want/"); ok {
		look("the results in a test of a kind", want)
	}
	if withDaemon {
		plantedDaemon(t, func() { look("run --once", swell("run", "--once", "-c", "daemon.yaml")) }, shown, look)
	}
	return run
}

// plantedDaemon follows the head monorepo with a cluster that nobody reaches, and
// looks into what the daemon writes and keeps.
func plantedDaemon(t *testing.T, once func(), shown func(args ...string), look func(what, output string)) {
	if err := gittest.Init("head"); err != nil {
		t.Fatal(err)
	}
	if _, err := gittest.CommitAs("a", "a@b", "head", "one"); err != nil {
		t.Fatal(err)
	}
	config := "apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: ./head, branch: main}, state: state, clusters: [{name: c-1, kubeconfig: kubeconfig}]}\n"
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\nusers: [{name: a, user: {}}]\n"
	for name, content := range map[string]string{"daemon.yaml": config, "kubeconfig": kubeconfig} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	once()
	for _, format := range []string{"table", "wide", "json", "yaml", "name"} {
		shown("status", "-c", "daemon.yaml", "-o", format)
		shown("history", "-c", "daemon.yaml", "-o", format)
		shown("approve", "-c", "daemon.yaml", "-o", format)
		for _, what := range []string{"units", "objects", "drift", "targets"} {
			shown("get", what, "-c", "daemon.yaml", "-o", format)
		}
	}
	shown("tree", "services/a/good", "-c", "daemon.yaml")
	shown("diff", "--live", "-c", "daemon.yaml", "head", "--cache=none")
	err := filepath.WalkDir("state", func(name string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "state.db") {
			var content []byte
			content, err = os.ReadFile(name)
			look(name, string(content))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlantedSecrets: nothing that was planted where a secret may stand is in
// any output of any verb.
func TestPlantedSecrets(t *testing.T) {
	var all plantedRun
	seeds := []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 133, 155}
	for _, seed := range seeds {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			run := runPlanted(t, seed, 2, seed%6 == 0)
			all.planted, all.outputs, all.bytes = all.planted+run.planted, all.outputs+run.outputs, all.bytes+run.bytes
			all.objects, all.found = all.objects+run.objects, all.found+run.found
		})
	}
	t.Logf("%d values planted, %d outputs of %d bytes, %d objects, %d values found", all.planted, all.outputs, all.bytes, all.objects, all.found)
	if all.objects == 0 {
		t.Error("nothing was rendered: the good units have problems")
	}
}

// FuzzPlantedSecrets is the same with any seed.
func FuzzPlantedSecrets(f *testing.F) {
	for seed := range int64(3) {
		f.Add(seed + 100)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		run := runPlanted(t, seed, 5, seed%64 == 0)
		t.Logf("%d values planted, %d outputs of %d bytes, %d values found", run.planted, run.outputs, run.bytes, run.found)
	})
}
