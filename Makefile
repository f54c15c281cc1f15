# Two commands do everything: `make demo` (the main job) and `make test`.
PYTHON ?= python3
VENV := .venv
DEMO_VENV := .venv-demo
KERNEL_SOURCES := setup.py pyproject.toml $(wildcard codegen/*.py codegen/*/*.py codegen/*/*/*.py \
	codegen/programs/*.mlir codegen/models.csv templates/cython/*.j2 cpu/*.h moegrad/*.pyx moegrad/*.pxi)

.PHONY: demo test test-all lint format clean

demo: $(DEMO_VENV)/.installed
	$(DEMO_VENV)/bin/moegrad demo --html report/demo.html

test: $(VENV)/.installed
	$(VENV)/bin/pytest -m "not slow"

test-all: $(VENV)/.installed
	tests/install_tools.sh
	$(VENV)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(VENV)/bin/pytest

lint: $(VENV)/.installed .lint/moegrad
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	MYPYPATH=.lint $(VENV)/bin/mypy -p moegrad
	MYPYPATH=.lint $(VENV)/bin/mypy tests setup.py

format: $(VENV)/.installed
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# The rooms as one package, for mypy, which does not follow setuptools' mapping.
.lint/moegrad: Makefile $(wildcard moegrad/*)
	rm -rf .lint && mkdir -p .lint/moegrad
	for path in moegrad/*; do ln -s ../../$$path .lint/moegrad/; done
	for room in codegen templates generated cpu hostmodel tools; do ln -s ../../$$room .lint/moegrad/; done

$(VENV)/.installed: $(KERNEL_SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -e '.[dev,report]'
	touch $@

$(DEMO_VENV)/.installed: $(KERNEL_SOURCES) $(wildcard moegrad/*.py tools/* templates/*/* generated/*/* hostmodel/include/*/*)
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/pip install --quiet --disable-pip-version-check '.[compiler,report]'
	touch $@

clean:
	rm -rf build .lint .venv .venv-demo *.egg-info generated/cython/*/ moegrad/*.so report
