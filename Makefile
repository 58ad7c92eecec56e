# `make help` says what there is. Everything runs on Linux with Go 1.21 or newer and Python 3 with pip.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The Go that go.mod names: an installed one of 1.21 or newer fetches it by itself.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)
export GLIDEPATH_TOOLS := $(CURDIR)/.tools/bin

PORT ?= 8080
FUZZTIME ?= 20s
PKG ?= ./...
ROWS ?=
# The race detector needs a C compiler; without one the tests run all the same.
RACE := $(if $(shell command -v gcc || command -v clang),-race)
DEV := bin/glidepath-dev
SUITE := .ci/suite
# Prints the events of `go test -json`, and which tests took longest.
REPORT := go run ./test/report/cmd
# Packages of a minute or more begin first, so that none is left over at the end.
LONG := -e /test/edge$$ -e /test/bench$$ -e /internal/simulator$$ -e /internal/devenv$$ -e /internal/cache$$ -e /services/livehub$$ -e /services/runs$$ -e /cmd/glidepath-dev$$

##@ Run it

up: $(DEV) ## Start a whole gateway in the background and say what runs where (PORT=8080)
	@$(DEV) up --port=$(PORT)

down: $(DEV) ## Stop exactly what `make up` started
	@$(DEV) down

status: $(DEV) ## Say what runs where
	@$(DEV) status

##@ Check it

test: ## Every check there is; prints what each suite took
	@$(MAKE) --no-print-directory --keep-going suites

SUITES := $(addprefix suite-,fmt lint generate rules unit e2e chaos)
suites: $(SUITES)
# A static pattern: make looks for no implicit rule of a phony target, and would do nothing.
$(SUITES): suite-%:
	@$(SUITE) $* $(MAKE) --no-print-directory check-$*
.PHONY: suites $(SUITES)

check-fmt: linter
	@$(GLIDEPATH_TOOLS)/golangci-lint fmt --diff

lint check-lint: linter ## Linters (PKG=./...)
	@$(GLIDEPATH_TOOLS)/golangci-lint run $(PKG)

check-generate: go
	@.ci/generate-check

rules check-rules: go ## What the tests prove of the specification, rule by rule
	@go run ./internal/rules/cmd

# Vet is among the linters.
unit check-unit: tools ## Unit and integration tests, with the race detector (PKG=./...)
	@$(if $(RACE),,echo "no C compiler: the tests run without the race detector")
	@packages="$$(go list $(PKG) | grep -v -e /test/e2e -e /test/chaos)"; \
	go test -json $(RACE) -vet=off -shuffle=on -p=3 -timeout=20m \
		$$(grep $(LONG) <<<"$$packages") $$(grep -v $(LONG) <<<"$$packages") | $(REPORT)

# Not from the cache: it does not know what the tests start.
e2e check-e2e: tools ## The whole gateway from outside
	@.ci/shards 2 ./test/e2e "$(RACE)" -test.timeout=20m -test.parallel=4 | $(REPORT)

chaos check-chaos: tools ## Its parts killed, stopped and cut off under load; needs a Docker daemon
	@go test -json $(RACE) -vet=off -count=1 -p=2 -timeout=25m ./test/chaos/... | $(REPORT)

bench: tools ## Measure the gateway, row by row (ROWS="name ..." for some of them)
	@go build -buildvcs=false -o bin/bench ./test/bench/cmd
	@bin/bench $(ROWS)

fuzz: go ## Each fuzz target for a while (FUZZTIME=20s)
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

##@ Build it

build: go ## All programs, into bin/
	@go build -o bin/ ./cmd/...

tools: $(DEV) ## Fetch or build what is missing of Envoy, Redis, etcd and the API server, into .tools/
	@$(DEV) tools

linter: $(DEV)
	@$(DEV) tools golangci-lint

fmt: linter ## Format all code
	@$(GLIDEPATH_TOOLS)/golangci-lint fmt

generate: go ## Make the generated files again
	@go generate ./...

##@ Clean up

clean: ## Stop the gateway; remove what was built and what it wrote
	@if [[ -x $(DEV) ]]; then $(DEV) down; fi
	@rm -rf bin .run

distclean: clean ## The tools too: the next `make up` takes minutes
	@rm -rf .tools

##@

help: ## This text
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+( [a-z0-9-]+)*:.*## / { split($$1, names, " "); sub("^check-", "", names[1]); printf "  %-10s %s\n", names[1], $$2 }' $(MAKEFILE_LIST)

# Built each time: Go knows what is up to date.
$(DEV): go FORCE
	@[[ -x $@ ]] || echo "building $@ (the first time, Go also fetches its toolchain and modules: a minute or two)"
	@go build -buildvcs=false -o $@ ./cmd/glidepath-dev

go:
	@command -v go >/dev/null || { echo "go is not installed: install Go 1.21 or newer from go.dev/dl" >&2; exit 1; }
	@minor="$$(GOTOOLCHAIN=local go version | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p')"; \
	if [[ -n "$$minor" ]] && ((minor < 21)); then \
		echo "Go 1.$$minor is too old to fetch $(GOTOOLCHAIN): install Go 1.21 or newer from go.dev/dl" >&2; exit 1; \
	fi

FORCE:
.PHONY: up down status test check-fmt lint check-lint check-generate rules check-rules unit check-unit e2e check-e2e chaos check-chaos bench fuzz \
	build tools linter fmt generate clean distclean help go FORCE
