# extgate's entry points. Everything is made from nothing on the first call and found again on the second.
#   make PYTHON=/path/to/python3.12 ...   another Python than `python3`
#   make run NODE=1                       fetch Node from PyPI for the servers that need one

PYTHON ?= python3
BIN := .venv/bin
BENCH := .cache/bench
# uv trusts its own list of authorities; a company's own is in the system's.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS ?= true
endif
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

.DEFAULT_GOAL := help
.PHONY: help venv run smoke test explore lint bench e2e clean

help: ## what can be made
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

venv: .venv/.installed ## .venv with extgate and what its tests need

# uv where its wheel installs and it reaches the registry; else pip, which takes longer and reads pip.conf.
.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'extgate needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3.12' >&2; exit 1; }
	@test -x $(BIN)/python || { echo 'venv: making .venv'; $(PYTHON) -m venv .venv; } || \
	  { rm -rf .venv; echo 'no virtual environment; on Debian: apt-get install python3-venv' >&2; exit 1; }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install -q --disable-pip-version-check uv || \
	  echo 'venv: uv did not install; going on with pip, which takes longer'
	@echo 'venv: installing extgate and its tools'
	@{ test -x $(BIN)/uv && $(BIN)/uv pip install -q --python $(BIN)/python -e '.[dev]'; } || \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

# Exit 3 of servers.py: some server did not install. It has said so, and what the agents see without it is worth seeing.
servers = $(BIN)/python examples/servers.py $(1) $(if $(NODE),--node) || test $$? -eq 3

# Exit 4 of `explain`: the agent is unavailable, which it has explained.
define explain
@echo; echo '$$ $(BIN)/extgate -w examples/$(1) explain $(2) --trust'
@$(BIN)/extgate -w examples/$(1) explain $(2) --trust || test $$? -eq 4
endef

run: venv ## the three agents of examples/office over real servers
	@$(call servers,office)
	@echo; echo '$$ $(BIN)/extgate -w examples/office list --trust --refresh'
	@$(BIN)/extgate -w examples/office list --trust --refresh
	$(call explain,office,customer-service)
	$(call explain,office,devops)
	$(call explain,office,research)

smoke: venv ## the agent of examples/smoke; 35 MB more to download
	@$(call servers,smoke)
	$(call explain,smoke,msagent-filter-smoke)

test: venv ## all tests but the end-to-end ones
	@$(call servers,all)
	$(BIN)/python -m pytest -n 2 -m 'not e2e'

explore: venv ## the tests that make up their own examples, with new ones
	@$(call servers,all)
	$(BIN)/python -m pytest -n 2 -m 'hypothesis and not e2e' --hypothesis-profile=explore

lint: venv ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/servers.py

bench: $(BENCH)/.installed ## every benchmark, beside its peers
	@set -e; for file in benchmarks/*.py; do echo; echo "== $$file"; $(BENCH)/bin/python "$$file"; done

$(BENCH)/.installed: .venv/.installed $(wildcard benchmarks/requirements.txt)
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	@echo 'bench: installing extgate and its peers'
	@{ test -x $(BIN)/uv && $(BIN)/uv pip install -q --python $(BENCH)/bin/python -e . $(peers); } || \
	  $(BENCH)/bin/python -m pip install -q --disable-pip-version-check -e . $(peers)
	@touch $@

peers = $(if $(wildcard benchmarks/requirements.txt),-r benchmarks/requirements.txt)

e2e: venv ## real clients against the gate; 1.7 GB of them the first time
	@$(call servers,all)
	$(BIN)/python -m tests.e2e.table --write || test $$? -eq 3
	$(BIN)/python -m pytest -m e2e

clean: ## everything that was made
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
