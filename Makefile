# Each target creates and reuses .venv and installs what it needs; nothing else has to be prepared.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# Tests on real data sets skip if this folder is neither named nor beside the project.
BESIDE := ../shared/data
ifneq ($(wildcard $(BESIDE)),)
export LEMLL_DATA_DIR ?= $(abspath $(BESIDE))
endif

# The oldest libraries we promise to work with have an environment of their own.
FLOOR := .venv-floor
FLOOR_TESTS := tests/conformance tests/topology tests/metrics tests/enhancers tests/model_selection \
  tests/test_labels.py

# The tests run on exactly the files named in the lock, by version and hash.
# Python compiles what is imported; compiling all packages would take longer than the installation.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
TOOLS := .venv-tools
LOCK := $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --upgrade requirements/build.in

# Two processes on two cores: further threads of the linear algebra would only wait for each other.
test nightly quick floor: export OMP_NUM_THREADS := 1
test nightly quick floor: export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test nightly quick floor lint bench docs lock audit clean
.DELETE_ON_ERROR:

demo: $(STAMPS)/all
	$(BIN)/lemll demo

test: lint $(STAMPS)/test floor
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Every seed, size, kill and check of every estimator, also with the oldest libraries; mutated files.
nightly: lint $(STAMPS)/test $(FLOOR)/.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal --nightly
	$(FLOOR)/bin/python -m pytest -q -n 2 -p no:cacheprovider --nightly $(FLOOR_TESTS)
	$(BIN)/python -m benchmarks fuzz bombs

# For the hand that is coding: no kills, browser, Dask, floor or published tables.
quick: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" tests --no-header \
	  -o faulthandler_timeout=60

floor: $(FLOOR)/.stamp
	$(FLOOR)/bin/python -m pytest -q -n 2 -p no:cacheprovider $(FLOOR_TESTS)

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks

docs: $(STAMPS)/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

lock: $(TOOLS)/.stamp
	$(LOCK) pyproject.toml --extra test --extra lint --output-file requirements/test.lock
	$(LOCK) requirements/floor.in --output-file requirements/floor.lock

audit: $(TOOLS)/.stamp
	$(TOOLS)/bin/python tools/audit.py $(TOOLS)/bin/pip-audit requirements/test.lock requirements/floor.lock

clean:
	rm -rf $(VENV) $(FLOOR) $(TOOLS) docs/_build demo-output

$(STAMPS)/base:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "lemll needs Python >= 3.11; $(PYTHON) is older. Run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

$(FLOOR)/.stamp: Makefile pyproject.toml requirements/floor.lock $(STAMPS)/base
	$(PYTHON) -m venv $(FLOOR)
	$(FLOOR)/bin/python $(INSTALL) --require-hashes --requirement requirements/floor.lock
	$(FLOOR)/bin/python $(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMPS)/test: Makefile pyproject.toml requirements/test.lock $(STAMPS)/base
	$(BIN)/python $(INSTALL) --require-hashes --requirement requirements/test.lock
	$(BIN)/python $(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(TOOLS)/.stamp: Makefile
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python $(INSTALL) uv pip-audit
	@touch $@

$(STAMPS)/%: Makefile pyproject.toml $(STAMPS)/base
	$(BIN)/python $(INSTALL) --editable ".[$*]"
	@touch $@
