# Each target makes .venv and installs what it needs when something is missing or out of date.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python -P
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Two cores: one worker a core, one thread a worker, so that figures mean something.
WORKERS ?= 2
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
STAMP := $(VENV)/.installed
comma := ,

.PHONY: tour test test-all lint bench docs clean

define install
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip  # an old resolver takes minutes over this many pins
	$(PIP) -e "$(1)"
	touch $@
endef

$(STAMP)-tour: pyproject.toml constraints.txt
	$(call install,.)

$(STAMP)-test: pyproject.toml constraints.txt
	$(call install,.[test$(comma)peers])

$(STAMP)-docs: pyproject.toml constraints.txt
	$(call install,.[docs])

tour: $(STAMP)-tour
	$(THREADS) $(PY) examples/tour.py --output tour.html

test: $(STAMP)-test
	$(THREADS) $(PY) -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

# One of the slow tests builds the documentation.
test-all: $(STAMP)-test $(STAMP)-docs
	$(THREADS) $(PY) -m pytest -n $(WORKERS) --dist worksteal

# mypy sees the package through a tree of links: build/lint/equipoise holds every room at its import name.
lint: $(STAMP)-test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	rm -rf build/lint && mkdir -p build/lint/equipoise
	for item in equipoise/* estimators explainers games datasets; do \
		ln -s "$(CURDIR)/$$item" build/lint/equipoise/; done
	$(PY) -m mypy

bench: $(STAMP)-test
	$(THREADS) $(PY) benchmarks/harness.py --output benchmarks/results.md

docs: $(STAMP)-docs
	$(PY) -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf build dist docs/_build docs/gallery docs/api tour.html *.egg-info
