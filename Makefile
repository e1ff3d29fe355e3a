# Each target creates and reuses .venv and installs what it needs; nothing else has to be prepared.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# The oldest libraries we promise to work with have an environment of their own.
FLOOR := .venv-floor
FLOOR_PACKAGES := "numpy==1.26.*" "scipy==1.12.*" "scikit-learn==1.6.*" \
  "pytest<9" "pandas<3" narwhals hypothesis
FLOOR_TESTS := tests/conformance tests/topology tests/metrics tests/enhancers tests/model_selection \
  tests/test_labels.py

.PHONY: demo test floor lint bench docs clean
.DELETE_ON_ERROR:

demo: $(STAMPS)/all
	$(BIN)/lemll demo

test: lint $(STAMPS)/test floor
	$(BIN)/python -m pytest -n 2 --dist worksteal

floor: $(FLOOR)/.stamp
	$(FLOOR)/bin/python -m pytest -q -p no:cacheprovider $(FLOOR_TESTS)

lint: $(STAMPS)/test $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks

docs: $(STAMPS)/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf $(VENV) $(FLOOR) docs/_build demo-output

$(STAMPS)/base:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "lemll needs Python >= 3.11; $(PYTHON) is older. Run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

$(FLOOR)/.stamp: Makefile pyproject.toml $(STAMPS)/base
	$(PYTHON) -m venv $(FLOOR)
	$(FLOOR)/bin/python -m pip install --quiet --disable-pip-version-check $(FLOOR_PACKAGES) --editable .
	@touch $@

$(STAMPS)/%: Makefile pyproject.toml $(STAMPS)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@
