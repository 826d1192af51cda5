# On a machine with only Python (3.11 or newer) and make: `make demo`, `make test`. Everything lands in .venv and build.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check --no-input
PYTEST := $(PY) -m pytest
WORKERS ?= 2
# A file stays on one worker: what its tests share is played, and compiled, once.
SHARED := -n $(WORKERS) --dist loadfile

# Compiled kernels are kept in a folder named after the sources they were compiled from.
ifndef NUMBA_CACHE_DIR
NUMBA_CACHE_DIR := $(shell $(PYTHON) tests/support/kernel_cache.py)
endif
export NUMBA_CACHE_DIR
# Containers forbid Python to keep bytecode; then each of a suite's many processes compiles the sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test slow thorough browser kernels check format lint types imports bench docs dist mesa newest coverage dev clean links

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## /: /' | while IFS=: read -r t d; do printf 'make %-10s%s\n' "$$t" "$$d"; done

demo: $(VENV)/.core ## install into .venv and run a busy day of recurring jobs at bid prices; tables and a figure in build/demo
	@rm -rf build/demo
	@mkdir -p build
	$(PY) -m marketsched run synthetic-pipelines -m bid-price --set workload.utilisation=1.25 --out build/demo

test: $(VENV)/.test ## install into .venv and run the tests (without the slow ones)
	$(PYTEST) -m "not slow" $(SHARED)

# One worker more than cores: tests with Slurm's daemons and those that kill processes wait for most of their time.
slow: $(VENV)/.test ## the slow tests, with a quarter of the cases that they draw; the longest are in `make thorough`
	$(PYTEST) -m "slow and not long" -n $$(($(WORKERS) + 1)) --dist worksteal

thorough: $(VENV)/.test ## the slow tests and all that draw cases, with all of them (an hour or more)
	MARKETSCHED_TESTS=all $(PYTEST) -m "slow or many" -n $(WORKERS) --dist worksteal

browser: $(VENV)/.browser ## the tests of the dashboard and of a live market's page, in the Chromium on the PATH (skipped without one)
	$(PYTEST) tests/dashboard/test_dashboard_browser.py tests/dashboard/test_dashboard_server.py \
		tests/live/test_live_page_browser.py

# The tests of the rooms that hold kernels, and of replay, which drives those of the mechanisms; a test of imports
# holds that no room with a kernel is missing.
KERNELS := tests/agents/test_whole_markets.py tests/mechanisms tests/relaxed_lp tests/play tests/truthfulness/certificates tests/results/test_overtaking.py tests/recorded tests/worlds/logs tests/cores

# Plain kernels index NumPy arrays, which refuse what lies outside: bounds checks are for the tests left out there.
kernels: $(VENV)/.test ## tests that reach kernels once more: kernels as plain Python, else compiled with bounds checks
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow and not compiled" $(SHARED) $(KERNELS)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(NUMBA_CACHE_DIR)-bounds $(PYTEST) -m "compiled and not slow" $(SHARED) $(KERNELS)

check: format lint types imports ## format, lint, types, import direction (`make -k check` does not stop at the first)

format: $(VENV)/.dev
	$(VENV)/bin/ruff format --check --output-format concise .

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check --output-format concise .

types: $(VENV)/.dev links
	MYPYPATH=build/src $(PY) -m mypy -p marketsched
	MYPYPATH=build/src:benchmarks $(PY) -m mypy benchmarks/*.py

imports: $(VENV)/.dev
	$(PYTEST) -q tests/house/test_import_direction.py

bench: $(VENV)/.core ## every benchmark with its spread: a table, build/bench.json, and changes since the figures last kept
	$(PY) benchmarks/run.py --out build/bench.json

docs: $(VENV)/.docs ## the documentation site in build/site; a warning is an error
	$(PY) -m sphinx -W --keep-going -q -j 2 -c docs -d build/doctrees -b html . build/site
	@echo "open build/site/index.html"

dist: $(VENV)/.dev ## wheel and sdist in dist/; the wheel is installed into an empty environment and runs a market
	@rm -rf dist
	$(PY) -m build --no-isolation --outdir dist . > /dev/null
	$(PY) tests/support/fresh_install.py dist/*.whl -c constraints.txt

# An environment of its own: build/mesa or build/newest.
LATER = $(shell for p in python3.13 $(HOME)/.pyenv/versions/3.13.*/bin/python python3.12 $(HOME)/.pyenv/versions/3.12.*/bin/python; \
	do "$$p" -c "" 2> /dev/null && echo "$$p" && break; done)

mesa: ## tests of agents on the newest Mesa 3.x and the newest Python found (skipped without one)
	$(if $(LATER),$(LATER) -m venv build/mesa,@echo "skipped: no Python 3.13 or 3.12 was found")
	$(if $(LATER),grep -vi '^mesa==' constraints.txt > build/mesa/constraints.txt)
	$(if $(LATER),build/mesa/bin/pip install --quiet -c build/mesa/constraints.txt -e . pytest pytest-timeout pytest-xdist hypothesis)
	$(if $(LATER),build/mesa/bin/python -m pytest -q -m "not slow" $(SHARED) tests/agents)

newest: ## newest versions of everything on the newest Python found: what breaks?
	$(or $(LATER),$(PYTHON)) -m venv build/newest
	build/newest/bin/pip install --quiet --upgrade -e '.[viz,test]'
	build/newest/bin/python -m pytest -q -m "not slow" $(SHARED) tests/agents tests/worlds tests/results tests/play

coverage: $(VENV)/.dev ## lines and branches the fast tests reach, kernels as plain Python
	@mkdir -p build/coverage
	-NUMBA_DISABLE_JIT=1 $(PY) -m coverage run -m pytest -m "not slow" -q
	$(PY) -m coverage combine -q
	$(PY) -m coverage report

dev: $(VENV)/.dev links ## everything to work on the code, and the link tree build/src for editors

clean: ## remove what the other targets made
	rm -rf $(VENV) build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis marketsched.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The packages as they are imported, for tools that do not know the mapping in pyproject.toml.
links:
	@mkdir -p build/src/marketsched
	@for f in marketsched/*; do case $$f in */__pycache__) ;; *) ln -sfn "../../../$$f" build/src/marketsched/;; esac; done
	@for p in agents mechanisms relaxed_lp; do ln -sfn "../../../$$p" build/src/marketsched/$$p; done
	@find -L build/src/marketsched -maxdepth 1 -type l -exec rm {} +

# One stamp for each set of extras; a larger set stamps the smaller ones too. Installed anew when a requirement changes.
$(VENV)/.core: EXTRAS :=
$(VENV)/.test: EXTRAS := [test]
$(VENV)/.test: SMALLER := $(VENV)/.core
$(VENV)/.dev: EXTRAS := [test,dev]
$(VENV)/.dev: SMALLER := $(VENV)/.core $(VENV)/.test
$(VENV)/.browser: EXTRAS := [test,viz,browser]
$(VENV)/.browser: SMALLER := $(VENV)/.core $(VENV)/.test
$(VENV)/.docs: EXTRAS := [docs]
$(VENV)/.docs: SMALLER := $(VENV)/.core
$(VENV)/.core $(VENV)/.test $(VENV)/.dev $(VENV)/.browser $(VENV)/.docs: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "marketsched needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0])'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@echo "installing marketsched$(EXTRAS) into $(VENV) (about a minute the first time)"
	@$(PIP) install -c constraints.txt -e '.$(EXTRAS)'
	@touch $@ $(SMALLER)
