# Every target sets up what it needs (tools/setup.py), prints what it does, and is quick the second time.
# The plain commands behind each target stand in README.md.

.DEFAULT_GOAL := help
.PHONY: help serve site test lint format check lock graph demo megatron megatron-all rank bench pin clean distclean

# The first Python >= 3.11 on this machine; another one: make PYTHON=/path/to/python3.12 …
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
endif

BIN := .venv/bin
PORT ?= 8000
NP ?= 4
TP ?= 2
PP ?= 2
DP ?= 2
RANK ?= 0
WHAT ?= build
TYPESCRIPT ?= 5.9.3

# mkdocs 1.x is pinned: Material's banner about 2.x tells a reader of the log nothing to act on.
export NO_MKDOCS_2_WARNING := 1
export CHROMIUM

define setup
@"$(PYTHON)" -c '$(NEW_ENOUGH)' >/dev/null 2>&1 || { \
	echo "make: needs Python 3.11 or newer, found $$("$(or $(PYTHON),python3)" --version 2>&1 | head -n 1); install one, or name it: make PYTHON=/path/to/python3.12 $@" >&2; \
	exit 1; }
@"$(PYTHON)" tools/setup.py $(1)
endef

help: ## Show this list
	@echo "make TARGET [NAME=value …]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 16

serve: ## Build the site and serve it, rebuilding on each save (PORT=8000)
	$(call setup,site)
	$(BIN)/mkdocs serve --livereload --dev-addr 127.0.0.1:$(PORT) $(ARGS)

site: ## Build the site into site/; any warning fails
	$(call setup,site)
	$(BIN)/mkdocs build --strict $(ARGS)

test: ## Run every test, those in a real Chromium too (ARGS='tests/test_api.py -x')
	$(call setup,test browser)
	$(BIN)/python -m pytest $(ARGS)

lint: ## Style, types (Python, and the browser code where npx exists)
	$(call setup,lint)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if [ ! -f jsconfig.json ]; then echo "skipped: tsc --checkJs (no jsconfig.json)"; \
	elif ! command -v npx >/dev/null; then echo "skipped: tsc --checkJs (npx not found; install Node.js to run it)"; \
	else set -x; npx --yes --package typescript@$(TYPESCRIPT) tsc --project jsconfig.json; fi

format: ## Rewrite Python files in the house style
	$(call setup,lint)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: ## Verify every source link of the notes, without building the site (ARGS=--json)
	$(call setup,site)
	$(BIN)/sourcepanel check $(ARGS)

lock: ## Write sourcepanel.lock anew from the pinned source
	$(call setup,site)
	$(BIN)/sourcepanel lock $(ARGS)

graph: ## Build, and keep where the nodes of the graph stand, so that later builds move none (sourcepanel.graph)
	$(call setup,site)
	$(BIN)/mkdocs build --strict $(ARGS)
	cp site/sourcepanel/graph.json sourcepanel.graph

demo: ## Run a chapter's script: make demo CH=10 NP=4 (ranks; ARGS=… goes to the script)
	@test -n "$(CH)" || { echo "make demo needs a chapter: make demo CH=10 NP=4" >&2; exit 2; }
	$(call setup,lab)
	$(BIN)/python -m runnable.demo $(CH) --np $(NP) $(ARGS)

megatron: ## Run the real Megatron at the pin on CPU: make megatron TP=2 PP=2 DP=2
	$(call setup,megatron)
	$(BIN)/python -m runnable.megatron_cpu --tp $(TP) --pp $(PP) --dp $(DP) $(ARGS)

megatron-all: ## Compare the real Megatron in every known layout with one process (some minutes)
	$(call setup,megatron)
	$(BIN)/python -m runnable.megatron_cpu --all

rank: ## What one rank of a large job sends: make rank RANK=137 TP=8 PP=4 DP=16 ARGS='--heads 8 --layers 32 --global-batch 128'
	$(call setup,megatron)
	$(BIN)/python -m runnable.megatron_cpu --tp $(TP) --pp $(PP) --dp $(DP) --only $(RANK) $(ARGS)

bench: ## Measure against peers: make bench WHAT=build (or panel, scale, xref, lab, audit; some minutes each)
	$(call setup,bench $(if $(filter lab,$(WHAT)),megatron))
	$(BIN)/python bench/$(WHAT).py $(ARGS)

pin: ## Resolve all dependencies anew and write constraints.txt
	$(call setup,site)
	$(BIN)/python tools/pin.py

clean: ## Remove what builds and tests leave; keep .venv and the fetched source
	rm -rf site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## Remove .venv and the fetched source too: back to a fresh clone
	rm -rf .venv .cache
