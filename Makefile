# Each target is a line or two; what is longer is a program or a script with a
# name. The flags are the same everywhere, so that nothing is compiled twice.
export GOWORK = off
export GOFLAGS = -trimpath -buildvcs=false

BIN       ?= bin
TOOLS     ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/metalbus/bin
LINT      := $(TOOLS)/golangci-lint-v2.12.2
MODULES   := . integration integration/kubeapi

.DEFAULT_GOAL := help
.PHONY: help build test integration lint generate verify tidy fmt images up down demo bench ci clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## the six programs, and the Kubernetes API and NATS server of laptops and tests
	CGO_ENABLED=0 go build -o $(BIN)/ ./services/*/cmd/*

test: ## everything: unit tests under the race detector, then integration
	go test -race ./...

lint: $(LINT) ## the linter, with the import rules
	for m in $(MODULES); do (cd $$m && $(LINT) run ./...) || exit 1; done

fmt: $(LINT) ## format the tree
	for m in $(MODULES); do (cd $$m && $(LINT) fmt ./...) || exit 1; done

# Named after its version, so that another checkout's pin does not disturb it.
$(LINT):
	GOBIN=$(TOOLS) CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2
	mv $(TOOLS)/golangci-lint $@
