# Everything a fresh Debian machine with Go, git and make needs to be
# productive. Each target does its own set-up.

GO ?= go
TOOLS = $(GO) tool -modfile=deploy/tools/go.mod
# make lint has vet look at all of it, and nobody debugs what is linked here. Without cgo,
# as in a release, Go links by itself, which takes a third of the time.
TEST = CGO_ENABLED=0 $(GO) test -vet=off -ldflags=-w -timeout 60m
RACE = CGO_ENABLED=1 $(GO) test -vet=off -ldflags=-w -timeout 60m -race

# Those with clusters: each begins with new ones.
BENCH = $(GO) test -run '^$$' -benchtime 1x -timeout 30m -bench

# What runs goroutines of its own is tested with the race detector, the rest at full
# strength without it, which is five times as fast. Tests with real clusters wait more
# than they compute, so that many run at a time; with the race detector (-short) the same
# daemon runs in simulated ones. Rendering is on all cores: some tests of it run both ways.
WAITING = ./sync ./sync/apply
CONCURRENT = ./sync/announce ./sync/executor ./sync/fleet ./sync/forge ./sync/informer ./sync/preview ./sync/serve ./sync/source ./sync/store ./render/cache
RENDERED = 'TestSameBytes|TestRandomEdits|TestHidden|TestDataThere|TestBad|TestManyCommits'
# Tests of sync with one goroutine.
ALONE = 'TestPreview|TestACanaryWithoutItsWorkload|TestALargeRelease|TestPendingOfManyUnits|TestCacheOff|TestImports|TestRooms|TestOnlyOneDoor|TestWhatIsSaid'

# What a release is called, and for which platforms it is.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
IMAGE_ARCH ?= $(shell $(GO) env GOARCH)
STATIC = CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X=main.version=$(VERSION) -X=main.commit=$(COMMIT)"

.PHONY: all build test test-computing test-waiting test-long sim lint bench demo generate clean committed release image manifests cross

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

# The program that sync/helm is held against. Nothing else uses it.
bin/helm: deploy/helm/go.mod
	cd deploy/helm && $(GO) build -ldflags "-s -w" -o ../../bin/helm helm.sh/helm/v4/cmd/helm

# The forge that sync/forge is held against. Modules with replacements cannot be installed by
# name, so it is built in the folder that it was downloaded to, where its templates are, too.
# Its pages have no styles: nothing builds them here. Some hundred modules are downloaded, so
# that is tried again.
GITEA = code.gitea.io/gitea@$(shell cat deploy/gitea.version)
bin/gitea: deploy/gitea.version
	mkdir -p bin
	ln -sfn "$$($(GO) mod download -json $(GITEA) | sed -n 's/^.*"Dir": "\(.*\)",*$$/\1/p')" bin/gitea.src
	@for try in 1 2 3; do echo "build Gitea, try $$try"; cd $(CURDIR)/bin/gitea.src/ && CGO_ENABLED=1 $(GO) build -mod=readonly -buildvcs=false -tags "sqlite sqlite_unlock_notify" -ldflags "-s -w" -o $(CURDIR)/bin/gitea . && exit; done; exit 1

# What computes and what waits run beside each other.
test: bin/devcluster bin/sops bin/helm bin/kustomize-controller bin/gitea
	+@$(MAKE) --no-print-directory -j 2 --output-sync=line test-computing test-waiting

test-computing:
	$(TEST) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(WAITING) $(CONCURRENT))")
	$(RACE) -run $(RENDERED) ./render
	$(RACE) -short -parallel 4 -skip $(ALONE) $(WAITING)

test-waiting:
	$(TEST) -parallel 8 $(WAITING)
	$(RACE) $(CONCURRENT)
	cd deploy/devcluster && $(GO) test ./...
	cd deploy/release && $(GO) test ./...

# The long forms: hours.
test-long: bin/devcluster bin/sops bin/helm bin/kustomize-controller bin/gitea
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
	cd deploy/release && $(GO) vet ./...
	$(TOOLS) staticcheck ./...
	sh deploy/tools/govulncheck.sh

bench: bin/devcluster bin/helm bin/gitea
	$(GO) test -run '^$$' -bench . -benchtime 3x ./render/... ./sync/source ./sync/store
	$(GO) test -run '^$$' -bench 'Chart' -benchtime 20x ./sync/helm
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
	$(BENCH) 'Process|Check|Previewer|WebhookToComment|PushToApplied|MovingBase' ./cmd/swell
	$(BENCH) 'Many' ./cmd/swell

demo: bin/swell bin/devcluster
	bin/swell demo --devcluster bin/devcluster

# Static binaries with checksums, bills of materials and completions, in bin/release. The same
# commit gives the same bytes.
release: committed bin/swell bin/release-tool
	rm -rf bin/release && mkdir -p bin/release/completion
	@set -e; for p in $(PLATFORMS); do \
		out=bin/release/swell-$(VERSION)-$${p%/*}-$${p#*/}; echo "$$out"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} $(STATIC) -o $$out ./cmd/swell; \
		bin/release-tool sbom $(VERSION) $$out > $$out.cdx.json; \
	done
	bin/swell completion bash > bin/release/completion/swell.bash
	bin/swell completion zsh > bin/release/completion/_swell
	bin/swell completion fish > bin/release/completion/swell.fish
	cd bin/release && sha256sum swell-* completion/* > SHA256SUMS

# The container image, as a file that docker load and podman load take; where there is a
# docker that works, it is loaded. bin/image/root is what deploy/Containerfile takes.
image: committed bin/release-tool
	rm -rf bin/image && mkdir -p bin/image/root
	GOOS=linux GOARCH=$(IMAGE_ARCH) $(STATIC) -o bin/image/swell ./cmd/swell
	bin/release-tool image -root bin/image/root $(VERSION) bin/image/swell bin/image/swell-$(VERSION)-$(IMAGE_ARCH).tar
	@rm bin/image/swell
	@if docker info > /dev/null 2>&1; then docker load -i bin/image/swell-$(VERSION)-$(IMAGE_ARCH).tar; \
	else echo "no docker here: load bin/image/swell-$(VERSION)-$(IMAGE_ARCH).tar where there is one"; fi

# Builds of one version take each other's cache, so a version is one state of the files.
committed:
	@case "$(VERSION)" in *-dirty) echo "there are changes that are not committed: commit them, or set VERSION"; exit 1;; esac

bin/release-tool: FORCE
	cd deploy/release && $(GO) build -o ../../bin/release-tool .

# deploy/manifests is the chart as Helm renders it.
manifests:
	$(GO) test ./cmd/swell -run 'TestManifests' -update

# What compiles only elsewhere.
cross:
	GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/swell ./sync/...

generate:
	$(GO) generate ./...

clean:
	rm -rf bin

FORCE:
