# Each target is a line or two; what is longer is a program or a script with a
# name. The flags are the same everywhere, so that nothing is compiled twice,
# and every module is built with its own choice of versions.
export GOWORK = off
export GOFLAGS = -trimpath -buildvcs=false

BIN      ?= bin
CACHE    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/metalbus
MODULES  := . integration integration/kubeapi
LINTER   := v2.12.2
LINT     := $(CACHE)/golangci-lint-$(LINTER)
LEFT_OUT := $(abspath $(BIN))/left-out
COMPOSE  ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)
# The linter remembers what it found by content, with the path of the checkout that it
# was found in, and no longer knows what to leave out once that is gone.
export GOLANGCI_LINT_CACHE = $(CACHE)/lint$(subst /,-,$(CURDIR))
# What the tests run as processes and in containers.
export METALBUS_BIN = $(abspath $(BIN))

.DEFAULT_GOAL := help
.PHONY: help build test unit integration integration-replicas integration-ironic integration-agent lint fmt generate verify tidy images up down demo bench bench-path bench-ironic ci clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## all programs, into bin; the first time compiles Kubernetes' own code, about ten minutes of a CPU
	cd integration && CGO_ENABLED=0 go run ./cmd/build -o $(METALBUS_BIN)

test: unit integration ## everything, under the race detector; without a container engine the last line counts what is left out

unit: ## the tests that need no other process
	CGO_ENABLED=1 go test -race -timeout 20m ./...

# Go does not know a test's result by the programs that it ran, so they are named to it.
integration: build ## real programs, a real Kubernetes API, real NATS, containers
	@rm -f $(LEFT_OUT)
	cd integration && METALBUS_PROGRAMS="$$(cat $(METALBUS_BIN)/* | cksum)" METALBUS_LEFT_OUT=$(LEFT_OUT) CGO_ENABLED=1 go test -race -p 1 -timeout 40m ./...
	@.ci/left-out $(LEFT_OUT)

integration-replicas: build ## 200 hosts: replicas that die under them, and a move to another cluster; without the race detector
	cd integration && METALBUS_FLEET=200 CGO_ENABLED=0 go test -count=1 -v -timeout 30m -run 'TestReplicas|TestAFleet' ./system

integration-ironic: ## what the fake Ironic promises, on real Ironics of all releases, and all stories for one; an hour, the first time needs root
	cd integration && CGO_ENABLED=0 go test -count=1 -v -timeout 150m -run TestConformance ./ironic -full 21,29,39
	cd integration && CGO_ENABLED=0 go test -count=1 -v -timeout 60m -parallel 8 -run TestOnARealIronic ./stories -real .

integration-agent: ## one machine's way with the real ironic-python-agent; needs root
	cd integration && CGO_ENABLED=0 go test -count=1 -v -tags realagent -timeout 60m ./ironic/realagent

# The first two modules at once, as most of the work is reading what they share.
# The third would have the linter read all of Kubernetes from its sources.
lint: $(LINT) ## the linter, with the import rules
	GOWORK=$(CURDIR)/go.work CGO_ENABLED=0 $(LINT) run ./... ./integration/...
	cd integration/kubeapi && CGO_ENABLED=0 $(LINT) run --fast-only && CGO_ENABLED=0 go vet .

fmt: $(LINT) ## format the tree
	for m in $(MODULES); do (cd $$m && $(LINT) fmt ./...) || exit 1; done

generate: ## what follows from the sources: deep copies, CRDs, schemas, pages
	go run ./api/internal/apigen
	go run ./api/event/internal/gen
	cp deploy/crds/*.yaml charts/metalbus/crds/
	go test ./pkg/lifecycle -update

verify: lint tidy ## fail if generated or formatted files are not what they should be
	.ci/unchanged $(MAKE) --no-print-directory generate fmt
	.ci/same-versions

tidy: ## fail if a go.mod or go.sum is not what it should be
	for m in $(MODULES); do (cd $$m && go mod tidy -diff) || exit 1; done

images: build ## container images of every program, named metalbus/PROGRAM:dev
	deploy/images/build $(METALBUS_BIN)

up: images ## the whole system in containers; "make down" ends it
	$(COMPOSE) up -d
	docker cp "$$($(COMPOSE) ps -q kube)":/data/kubeconfig.local kubeconfig

down: ## end what "make up" began, and forget its state
	$(COMPOSE) down -v

demo: build ## 50 simulated machines from nothing to provisioned
	$(BIN)/metalbus demo

bench: build ## what things cost
	cd integration && CGO_ENABLED=0 go test -run '^$$' -bench . -benchtime 2000x ./apiserver

bench-ironic: build ## what a fleet of 1,000 hosts on an Ironic costs
	cd integration && CGO_ENABLED=0 go test -run '^$$' -bench Fleet -benchtime 1x -timeout 150m ./ironic/bench

bench-path: build ## what the way of a host costs, for 1, 100 and 1,000 hosts; the table is at the end
	cd integration && CGO_ENABLED=0 go test -run '^$$' -bench Path -benchtime 1x -timeout 60m ./bench/path

ci: verify test ## what a change has to pass

clean: ## remove what was built, and what an interrupted test left in the container engine
	.ci/sweep
	rm -rf $(BIN)

# Named after its version, so that another checkout's pin does not disturb it.
$(LINT):
	GOBIN=$(CACHE)/build CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER)
	mv $(CACHE)/build/golangci-lint $@
