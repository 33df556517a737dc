# On a machine with Python 3.11 or newer, pip and make: `make verify` or `make test`, nothing else by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: verify test mutants lint compiled jvm-kit install clean

verify: $(INSTALLED) ## the main job: drive real subjects, record, judge, write report/index.html
	$(BIN)/purgatorio verify --report report/index.html

test: $(INSTALLED) ## all tests but the slow ones (make test ARGS=--slow for those)
	$(BIN)/python -m pytest -n auto $(ARGS)

mutants: $(INSTALLED) ## known bugs put back one by one, and which layer finds them (make mutants ARGS=--all)
	PYTHONPATH=tests $(BIN)/python -m mutants $(ARGS)

lint: $(INSTALLED) ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

compiled: $(INSTALLED) ## the reference compiled by mypyc, in the user's cache; prints the directory, for PYTHONPATH
	@$(BIN)/python -m benchmarks.compiled_package

jvm-kit: ## the kit for the JVM as one jar, for Java 11 and newer; needs a JDK
	mkdir -p build/jvm-kit
	javac --release 11 -Xlint:all,-cast -d build/jvm-kit conformance/purgatorio_conformance/kits/jvm/purgatorio/kit/*.java
	jar --create --file purgatorio-jvm-kit.jar -C build/jvm-kit .

install: $(INSTALLED)

# The stamp comes last, so an install that was cut off is done again.
$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=/path/to/it")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) report build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
