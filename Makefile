# Everything a fresh Debian machine with Go, git and make needs to be
# productive. Each target does its own set-up.

GO ?= go
TOOLS = $(GO) tool -modfile=deploy/tools/go.mod
# make lint has vet look at all of it, and nobody debugs what is linked here.
TEST = $(GO) test -vet=off -ldflags=-w -timeout 60m

# Those with clusters: each begins with new ones.
BENCH = $(GO) test -run '^$$' -benchtime 1x -timeout 30m -bench

# What runs goroutines of its own is tested with the race detector, the rest at full
# strength without it, which is five times as fast. Tests with real clusters wait more
# than they compute, so that many run at a time; with the race detector (-short) the same
# daemon runs in simulated ones. Rendering is on all cores: some tests of it run both ways.
WAITING = ./sync ./sync/apply
CONCURRENT = ./sync/executor ./sync/fleet ./sync/informer ./sync/serve ./sync/source ./sync/store ./render/cache
RENDERED = 'TestSameBytes|TestRandomEdits|TestHidden|TestDataThere|TestBad|TestManyCommits'
# Tests of sync with one goroutine.
ALONE = 'TestPreview|TestACanaryWithoutItsWorkload|TestALargeRelease|TestPendingOfManyUnits|TestCacheOff|TestImports|TestRooms|TestOnlyOneDoor|TestWhatIsSaid'

.PHONY: all build test test-computing test-waiting test-long sim lint bench demo generate clean

all: build

build: bin/swell

bin/swell: FORCE
	$(GO) build -o $@ ./cmd/swell

# A real etcd, kube-apiserver, controller-manager, scheduler and kwok in one
# binary. The first build takes some minutes; after that Go's cache has it.
bin/devcluster: FORCE
	cd deploy/devcluster && $(GO) build -ldflags "-s -w" -o ../../bin/devcluster .

# The program that sync/sops is held against. Nothing else uses it.
bin/sops: deploy/sops/go.mod
	cd deploy/sops && $(GO) build -ldflags "-s -w" -o ../../bin/sops github.com/getsops/sops/v3/cmd/sops

# The controller of Flux that swell takes over from in tests, and the definition of what
# it reads.
bin/kustomize-controller: deploy/flux/go.mod
	cd deploy/flux && $(GO) build -ldflags "-s -w" -o ../../bin/kustomize-controller github.com/fluxcd/kustomize-controller
	cp "$$(cd deploy/flux && $(GO) list -m -f '{{.Dir}}' github.com/fluxcd/kustomize-controller)"/config/crd/bases/*.yaml bin/kustomize-controller.yaml
	chmod 0644 bin/kustomize-controller.yaml

# What computes and what waits run beside each other.
test: bin/devcluster bin/sops bin/kustomize-controller
	+@$(MAKE) --no-print-directory -j 2 --output-sync=line test-computing test-waiting

test-computing:
	$(TEST) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(WAITING) $(CONCURRENT))")
	$(TEST) -race -run $(RENDERED) ./render
	$(TEST) -race -short -parallel 4 -skip $(ALONE) $(WAITING)

test-waiting:
	$(TEST) -parallel 8 $(WAITING)
	$(TEST) -race $(CONCURRENT)
	cd deploy/devcluster && $(GO) test ./...

# The long forms: hours.
test-long: bin/devcluster bin/sops bin/kustomize-controller
	SWELL_DEMO=all SWELL_KILLS=200 SWELL_FAILURES=all SWELL_EDITS=all SWELL_REFUSALS=20000 SWELL_POLICIES=20000 SWELL_REQUESTS=40000 SWELL_SOPS=2000 $(GO) test -race -timeout 6h ./...
	$(GO) test -timeout 6h -rapid.checks 5000 ./config ./render/override ./render/schema ./render/schema/easy ./sync/rollout ./sync/approval

# Histories of the whole daemon, with faults: make sim TIME=1h, or SEED=4711 TIME=1ms to play one again.
sim: TIME = 10m
sim:
	SWELL_SIM_TIME=$(TIME) SWELL_SIM_SEED=$(SEED) SWELL_SIM_STEPS=$(STEPS) $(GO) test -timeout 24h -run 'TestSim$$|TestSameSeed' -v ./sync/sim

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "gofmt: run gofmt -w on these"; exit 1; }
	$(GO) vet ./...
	cd deploy/devcluster && $(GO) vet ./...
	$(TOOLS) staticcheck ./...
	sh deploy/tools/govulncheck.sh

bench: bin/devcluster
	$(GO) test -run '^$$' -bench . -benchtime 3x ./render/... ./sync/source ./sync/store
	$(GO) test -run '^$$' -bench 'SpecChanged|CommitToPlan' -benchtime 100x ./sync
	$(GO) test -run '^$$' -bench 'LargeFleet' -benchtime 10x ./sync/rollout
	$(GO) test -run '^$$' -bench 'Restart' -benchtime 1x ./sync
	$(GO) test -run '^$$' -bench 'KindChanged' -benchtime 1x -timeout 30m ./sync
	$(BENCH) 'FirstApply' ./sync/apply
	$(BENCH) 'FirstRelease' ./sync
	$(BENCH) 'NothingChanged' ./sync
	$(BENCH) 'DriftOfOne' -benchtime 5x ./sync
	$(BENCH) 'OneOfTwenty' -benchtime 5x ./sync
	$(BENCH) 'Waves200' ./sync
	$(BENCH) 'Sweep|Unchanged|LostState' ./sync/apply
	$(BENCH) 'Process' ./cmd/swell
	$(BENCH) 'Many' ./cmd/swell

demo: bin/swell bin/devcluster
	bin/swell demo --devcluster bin/devcluster

generate:
	$(GO) generate ./...

clean:
	rm -rf bin

FORCE:
