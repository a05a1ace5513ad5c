# On Debian, Go 1.26, git and make are enough: each target does its own set-up. make test
# installs the packages that it needs and that are missing, as root; elsewhere it says which.

# One variant of all packages for builds, tests and lint. Only the race detector needs C.
export CGO_ENABLED = 0

# Without the path of the checkout, what Go has built is of use in every checkout, and to a
# release, which is built like that.
export GOFLAGS := $(GOFLAGS) -trimpath

GO ?= go
TOOLS = $(GO) tool -modfile=deploy/tools/go.mod

# Those with clusters: each begins with new ones.
BENCH = $(GO) test -run '^$$' -benchtime 1x -timeout 30m -bench

# What a release is called, and for which platforms it is.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
IMAGE_ARCH ?= $(shell $(GO) env GOARCH)
STATIC = $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X=main.version=$(VERSION) -X=main.commit=$(COMMIT)"

.PHONY: all help build quick test fuzz test-long sim mutants golden lint bench demo generate clean committed release image manifests cross

# Plain make builds, as everywhere.
all: build

## help: this list, made of the lines of the Makefile that begin with two #
help:
	@echo "make TARGET:"
	@awk -F ': ' '/^## /{printf "  %-35s %s\n", substr($$1, 4), substr($$0, length($$1) + 3)}' Makefile

## build: bin/swell (plain make does the same)
build: bin/swell

bin/swell: FORCE
	$(GO) build -o $@ ./cmd/swell

# Programs that tests run, and the demonstration: built once for each state of their sources,
# in whatever checkout. deploy/testrun/tools.go says what they are made of.
BUILT = bin/devcluster bin/sops bin/helm bin/buf bin/kustomize-controller bin/gitea
$(BUILT): bin/%: bin/testrun FORCE
	@bin/testrun tool $*

bin/testrun: $(wildcard deploy/testrun/*.go)
	cd deploy/testrun && $(GO) build -o ../../bin/testrun .

## quick: vet, and the tests that need no server, within a minute
# The loop beside the editor, within a minute: vet, and the tests that need no server. Results
# of packages that did not change come from Go's cache.
quick: bin/testrun
	$(GO) vet ./...
	@bin/testrun quick

## test [PKG=./sync/apply]: every test, with real API servers, Git servers and a forge
# Everything in test.plan, or what it has of some packages.
test: bin/testrun
	@bin/testrun run $(PKG)

## fuzz: the fuzz test whose turn it is with the commit, for 30 s
fuzz: bin/testrun
	@bin/testrun fuzz

## test-long: the long forms of the tests; takes hours
# The long forms: hours.
test-long: $(BUILT)
	SWELL_DEMO=all SWELL_KILLS=200 SWELL_FAILURES=all SWELL_EDITS=all SWELL_SERVER_EDITS=200 SWELL_REFUSALS=20000 SWELL_POLICIES=20000 SWELL_REQUESTS=40000 SWELL_SOPS=2000 SWELL_MUTANTS=all SWELL_WEEK=168h SWELL_FLEETS=2000 CGO_ENABLED=1 $(GO) test -race -timeout 6h ./...
	$(GO) test -timeout 6h -rapid.checks 5000 ./config ./render/override ./render/schema ./render/schema/easy ./sync/rollout ./sync/approval

## sim [TIME=1h] [SEED=4711]: random histories of the whole daemon with faults, or one of them again
# Histories of the whole daemon, with faults: make sim TIME=1h, or SEED=4711 TIME=1ms to play one again.
sim: TIME = 10m
sim:
	SWELL_SIM_TIME=$(TIME) SWELL_SIM_SEED=$(SEED) SWELL_SIM_STEPS=$(STEPS) $(GO) test -timeout 24h -run 'TestSim$$|TestSameSeed' -v ./sync/sim

## golden [PKG=./render]: writes the golden files of tests anew; read the difference before you commit it
# Of all packages with a flag -update but config, whose golden files are the released documents:
# a release writes those (make golden PKG=./config). RUN=TestReference is one test.
GOLDEN = TestScripts|TestReference|TestManifests|TestPictures|TestGolden|TestCharts|TestBlame|TestExamples|TestBuild|TestRules|TestGood|TestBuf|TestReleasedDocuments
golden: PKG = $(filter-out ./config,$(addprefix ./,$(sort $(patsubst %/,%,$(dir $(shell git grep -l 'flag.Bool."update"' -- '*_test.go'))))))
golden: RUN = ^($(GOLDEN))$$
golden:
	$(GO) test -vet=off -count=1 -run '$(RUN)' $(PKG) -update

## mutants: looks again for broken rules whose files or judge have changed, and keeps the seeds
# Looks again for the broken rules whose files, or whose judge, have changed, and keeps what finds them.
mutants:
	SWELL_MUTANTS=changed $(GO) test -vet=off -run 'TestMutants|TestWorldFindsBrokenRules' -v ./sync/sim ./sync/rollout

## lint: gofmt, vet, staticcheck, known vulnerabilities, long lines and words (deploy/style)
lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "gofmt: run gofmt -w on these"; exit 1; }
	$(GO) run ./deploy/style
	$(GO) vet ./...
	cd deploy/devcluster && $(GO) vet ./...
	cd deploy/release && $(GO) vet ./...
	cd deploy/testrun && $(GO) vet ./...
	$(TOOLS) staticcheck ./...
	sh deploy/tools/govulncheck.sh

## bench: all benchmarks
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

## demo: swell at work on three real clusters, told in eight scenes
demo: bin/swell bin/devcluster
	bin/swell demo --devcluster bin/devcluster

## release [PLATFORMS=linux/amd64]: static binaries, checksums and bills of materials, in bin/release
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

## image: the container image, in bin/image
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

## manifests: deploy/manifests anew from deploy/chart
# deploy/manifests is the chart as Helm renders it.
manifests:
	$(GO) test ./cmd/swell -run 'TestManifests' -update

## cross: vet for macOS
# What compiles only elsewhere.
cross:
	GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/swell ./sync/...

## generate: what go generate writes: the schemas of Kubernetes releases, the time zones
generate:
	$(GO) generate ./...

## clean: removes bin
clean:
	rm -rf bin

FORCE:
