// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/sync/devcluster/devtest"
)

// realServer is a real API server whose controllers stand still: what is compared is
// what the API server itself decides.
func realServer(t *testing.T) *rest.Config {
	t.Helper()
	clusters := devtest.Start(t, "real")
	cfg, err := clusters.Config("real")
	if err != nil {
		t.Fatal(err)
	}
	pids, err := os.ReadFile(filepath.Join(clusters.Dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(pids)) {
		fields := strings.Fields(line)
		if pid, err := strconv.Atoi(fields[0]); err == nil && !strings.Contains(line, "etcd") && !strings.Contains(line, "apiserver") {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
		}
	}
	return cfg
}

// side is one of the two servers.
type side struct {
	client *http.Client
	host   string
	// names are what differs from server to server, in the order in which it was
	// seen: the n-th UID is uid-n on both.
	uids map[string]string
	// seen are the objects as they were last answered, by path.
	seen map[string]map[string]any
	// stale are resource versions that an object had before.
	stale map[string]string
	// version and next are those of the last list.
	version, next string
}

func newSide(t *testing.T, cfg *rest.Config) *side {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &side{client: client, host: cfg.Host, uids: map[string]string{}, seen: map[string]map[string]any{}, stale: map[string]string{}}
}

// operation is one request, with what differs from server to server left open.
type operation struct {
	method, path, query, contentType, accept string
	// body has {UID} and {VERSION} of the object at the path, {STALE} for an earlier
	// version, {LIVE} for the whole object as it was seen last.
	body string
}

func (o operation) String() string {
	return fmt.Sprintf("%s %s?%s %s\n%s", o.method, o.path, o.query, o.contentType, o.body)
}

// outcome is what is compared.
type outcome struct {
	Code    int
	Type    string
	Audited bool // it has a header that only API servers give
	Content any
	// Changed says whether the object has another resourceVersion than before.
	Changed bool
}

func (s *side) fill(o operation) string {
	live := s.seen[o.path]
	uid, version := "00000000-0000-0000-0000-000000000000", "999999999"
	if m, ok := live["metadata"].(map[string]any); ok {
		uid, _ = m["uid"].(string)
		version, _ = m["resourceVersion"].(string)
	}
	text := strings.NewReplacer("{UID}", uid, "{VERSION}", version, "{STALE}", cmp.Or(s.stale[o.path], "1")).Replace(o.body)
	if strings.Contains(text, "{LIVE}") {
		whole, _ := json.Marshal(live)
		text = strings.ReplaceAll(text, "{LIVE}", string(whole))
	}
	return text
}

func (s *side) send(t *testing.T, o operation) outcome {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), o.method, s.host+o.path+"?"+o.query, strings.NewReader(s.fill(o)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", o.contentType)
	r.Header.Set("Accept", cmp.Or(o.accept, jsonType))
	r.Header.Set("User-Agent", "tester/1")
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatalf("%v: %v", o, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := outcome{Code: response.StatusCode, Type: response.Header.Get("Content-Type"), Audited: response.Header.Get("Audit-Id") != ""}
	var content map[string]any
	if json.Unmarshal(body, &content) != nil {
		out.Content = string(body)
		return out
	}
	if m, ok := content["metadata"].(map[string]any); ok && content["items"] != nil {
		s.version, _ = m["resourceVersion"].(string)
		s.next, _ = m["continue"].(string)
	}
	if m, ok := content["metadata"].(map[string]any); ok && m["uid"] != nil && o.accept == "" {
		before, _ := s.seen[o.path]["metadata"].(map[string]any)
		out.Changed = before == nil || before["resourceVersion"] != m["resourceVersion"]
		if !strings.Contains(o.query, "dryRun") {
			if out.Changed && before != nil {
				s.stale[o.path] = before["resourceVersion"].(string)
			}
			s.seen[o.path] = content
		}
	}
	var own any // what was seen stays as it is
	if err := json.Unmarshal(body, &own); err != nil {
		t.Fatal(err)
	}
	out.Content = s.normalize(own)
	return out
}

var (
	uidText     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timeText    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	addresses   = regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`)
	versionText = regexp.MustCompile(`(ResourceVersion in (?:the )?(?:record|object meta|precondition):? ?\(?)\d+`)
	// a template of pods is printed by its internal type
	templateText = regexp.MustCompile(`Invalid value: \{.*?"(?:restartPolicy|RestartPolicy)".*?\}: field is immutable`)
	ownVersion   = regexp.MustCompile(`resourceVersion(\\*":\\*")\d+`)
	storeKey     = regexp.MustCompile(`StorageError: invalid object, Code: 4, Key: [^,]*, ResourceVersion: 0, AdditionalErrorMsg: `)
)

// normalize replaces what must differ: UIDs, versions, times, addresses.
func (s *side) normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(mapsKeys(v)) {
			switch name {
			case "resourceVersion", "continue":
				v[name] = "?"
			case "managedFields", "causes": // in the order of their time, or of no consequence
				list := s.normalize(v[name]).([]any)
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			default:
				v[name] = s.normalize(v[name])
			}
		}
	case []any:
		for i := range v {
			v[i] = s.normalize(v[i])
		}
		return v
	case string:
		v = uidText.ReplaceAllStringFunc(v, func(uid string) string {
			if s.uids[uid] == "" {
				s.uids[uid] = fmt.Sprintf("uid-%d", len(s.uids))
			}
			return s.uids[uid]
		})
		v = versionText.ReplaceAllString(storeKey.ReplaceAllString(v, ""), "${1}?")
		v = ownVersion.ReplaceAllString(v, `resourceVersion$1?`)
		if before, flaws, ok := strings.Cut(v, " is invalid: ["); ok {
			all := strings.Split(strings.TrimSuffix(flaws, "]"), ", ")
			slices.Sort(all)
			v = before + " is invalid: [" + strings.Join(all, ", ") + "]"
		}
		v = templateText.ReplaceAllString(v, "Invalid value: TEMPLATE: field is immutable")
		return addresses.ReplaceAllString(timeText.ReplaceAllString(v, "TIME"), "ADDRESS")
	}
	return v
}

func mapsKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestAgainstServer sends the same random requests to a simulator and to a real API
// server, and compares the answers. SWELL_REQUESTS is how many; more than the
// usual 2,000 are other ones each time, and SWELL_SEED repeats them.
func TestAgainstServer(t *testing.T) {
	requests := 2000
	if text := os.Getenv("SWELL_REQUESTS"); text != "" {
		var err error
		if requests, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(1)
	if requests > 2000 {
		seed = uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("SWELL_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("SWELL_SEED=%d", seed)
	sim := New()
	both := []*side{newSide(t, sim.Config()), newSide(t, realServer(t))}
	t.Run("discovery", func(t *testing.T) { compareDiscovery(t, both[1]) })
	for _, o := range prologue() {
		for _, s := range both {
			if out := s.send(t, o); out.Code != http.StatusCreated {
				t.Fatalf("%v: %v", o, out)
			}
		}
	}
	awaitWidgets(t, both[1])
	awaitWidgets(t, both[0])
	sim.still = true
	watched := []*watched{follow(t, both[0]), follow(t, both[1])}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	different, unmodelled, codes := 0, 0, map[int]int{}
	for i := range requests {
		o := g.operation()
		got, want := both[0].send(t, o), both[1].send(t, o)
		codes[want.Code]++
		if got.Code == http.StatusNotImplemented {
			unmodelled++
			continue
		}
		ownWords(&got, &want)
		if strings.Contains(o.path, "/persistentvolumeclaims") { // see the package's comment
			got.Changed = want.Changed
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("request %d: %v\n-server +simulator\n%s", i, o, diff)
			if different++; different == 10 {
				t.Fatal("too many differences")
			}
		}
	}
	t.Logf("%d requests, answers of the server by code: %v; %d are not modelled", requests, codes, unmodelled)
	if unmodelled > requests/20 {
		t.Errorf("%d of %d requests are not modelled", unmodelled, requests)
	}
	t.Run("pages", func(t *testing.T) {
		if diff := gocmp.Diff(both[1].pages(t), both[0].pages(t)); diff != "" {
			t.Errorf("-server +simulator\n%s", diff)
		}
	})
	t.Run("watch", func(t *testing.T) {
		if diff := gocmp.Diff(watched[1].end(t), watched[0].end(t)); diff != "" {
			t.Errorf("-server +simulator\n%s", diff)
		}
	})
}

// watched is a watch under way.
type watched struct {
	*side
	done   chan struct{}
	events []any
}

const watchedPath = "/api/v1/configmaps"

// follow watches the metadata of some ConfigMaps from now on.
func follow(t *testing.T, s *side) *watched {
	t.Helper()
	list := s.send(t, operation{method: http.MethodGet, path: watchedPath, query: "limit=1&labelSelector=none", accept: jsonType})
	if list.Code != http.StatusOK {
		t.Fatal(list)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.host+watchedPath+"?watch=true&labelSelector=app%3Da&resourceVersion="+s.version, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", jsonType+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	response, err := s.client.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	w := &watched{side: s, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer response.Body.Close()
		for decoder := json.NewDecoder(response.Body); ; {
			var event map[string]any
			if decoder.Decode(&event) != nil {
				return
			}
			w.events = append(w.events, event)
			if strings.Contains(fmt.Sprint(event), "name:last") {
				return
			}
		}
	}()
	return w
}

// end makes one more ConfigMap, and returns what the watch has seen up to that.
func (w *watched) end(t *testing.T) []any {
	t.Helper()
	last := operation{method: http.MethodPost, path: "/api/v1/namespaces/default/configmaps", contentType: jsonType, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"last","labels":{"app":"a"}}}`}
	if out := w.send(t, last); out.Code != http.StatusCreated {
		t.Fatal(out)
	}
	<-w.done
	if len(w.events) < 2 {
		t.Errorf("only %d events", len(w.events))
	}
	for i := range w.events {
		w.events[i] = w.normalize(w.events[i])
	}
	return w.events
}

// pages lists what is there two at a time.
func (s *side) pages(t *testing.T) (all []outcome) {
	t.Helper()
	for query := "limit=2&labelSelector=made"; ; {
		out := s.send(t, operation{method: http.MethodGet, path: "/api/v1/configmaps", query: query, accept: jsonType})
		all = append(all, out)
		if s.next == "" || len(all) > 100 {
			return all
		}
		query = "limit=2&labelSelector=made&continue=" + s.next
	}
}

// ownWords leaves the text out of both answers when the simulator says in its own
// words what is wrong, and it is at the same fields.
func ownWords(got, want *outcome) {
	if got.Code != http.StatusUnprocessableEntity || want.Code != got.Code || !strings.Contains(fmt.Sprint(got.Content), OwnText) {
		return
	}
	ours, theirs := fieldsOfCauses(got), fieldsOfCauses(want)
	got.Content, want.Content = ours, theirs
	for _, field := range ours {
		if !slices.ContainsFunc(theirs, func(other string) bool { return strings.HasPrefix(other, field) || strings.HasPrefix(field, other) }) {
			return
		}
	}
	got.Content, want.Content = nil, nil
}

func fieldsOfCauses(o *outcome) (fields []string) {
	details, _ := o.Content.(map[string]any)["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	for _, c := range causes {
		fields = append(fields, strings.ReplaceAll(fmt.Sprint(c.(map[string]any)["field"]), ".metadata.", "."))
	}
	return fields
}

// awaitWidgets waits until custom resources are served.
func awaitWidgets(t *testing.T, s *side) {
	t.Helper()
	path := "/apis/example.com/v1/namespaces/default/widgets/none"
	for range 600 {
		out := s.send(t, operation{method: http.MethodGet, path: path})
		if m, ok := out.Content.(map[string]any); ok && strings.Contains(fmt.Sprint(m["message"]), `"none" not found`) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the custom resource is not served")
}

const widgetDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","required":["size"],"properties":{
"size":{"type":"integer","minimum":1},"color":{"type":"string","enum":["red","green"],"default":"red"},
"labels":{"type":"object","additionalProperties":{"type":"string"}},
"parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"count":{"type":"integer","default":1}}}},
"tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
"port":{"x-kubernetes-int-or-string":true},
"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}}}]}}`

func prologue() []operation {
	all := []operation{{method: http.MethodPost, path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", contentType: jsonType, body: widgetDefinition}}
	for _, ns := range spaces {
		all = append(all, operation{method: http.MethodPost, path: "/api/v1/namespaces", contentType: jsonType, body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + ns + `"}}`})
	}
	return all
}

var spaces = []string{"one", "two"}
