# The whole command surface. Every target sets up what it needs first.
PYTHON ?= python3
BIN := .venv/bin
JAR := spark_udfs/strata-spark.jar
RUNS ?= 70
PARALLEL ?= -n 3 --dist loadgroup --no-loadscope-reorder
CONSTRAINTS ?= constraints.txt
TESTS ?= tests
# Tests start hundreds of processes; each would compile Strata anew where Python is told to keep no compiled code.
export PYTHONDONTWRITEBYTECODE =
EXTRAS := server,kafka,postgres,arrow,rules,pyspark

.PHONY: help setup serve demo check format test test-long test-fast test-all test-faults coverage screenshots bench constraints clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: .venv/.installed $(JAR)  ## create .venv with the strata command in it, fetch and build the jars

.venv/.installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit("Strata needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]' --group dev $(addprefix --constraint ,$(CONSTRAINTS))
	$(BIN)/python -m harness.jars
	$(BIN)/python -m harness.kafka
	$(BIN)/python -m harness.spark_jvm >/dev/null
	$(BIN)/python -m harness.compiled_code
	touch $@

$(JAR): .venv/.installed $(shell find spark_udfs/jvm -name "*.java")
	$(BIN)/python -m harness.spark_jar
	touch $@

serve: setup  ## the registry on http://127.0.0.1:8081, log in sqlite:///strata.db
	$(BIN)/strata serve

demo: setup  ## the main job: real broker, evolving flights, Spark, dead letters
	$(BIN)/python -m demo

check: setup  ## format, lint, types, import contracts, plain English; Java, if it has changed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	$(BIN)/python -m harness.words
	$(BIN)/python -m harness.java_check

format: setup  ## rewrite what the formatter and the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m harness.java_check format

# What fails runs again, alone: both results are shown. A test that passes then fails the run too, unless the list in
# harness/failed_tests.py names it. Status 1 is that of failed tests; whatever else went wrong stays wrong. What failed in
# an earlier run is forgotten first: a test that is gone since would end the second run.
QUICK := -m 'not slow and not long'
FAILED := .pytest_cache/failed.args
test: setup  ## the whole suite: real Kafka, PostgreSQL and Spark included; what fails runs again, alone
	@rm -f .pytest_cache/v/cache/lastfailed
	$(BIN)/pytest $(QUICK) $(PARALLEL) || { [ $$? = 1 ] && $(BIN)/python -m harness.failed_tests write $(FAILED) && $(BIN)/pytest -n 0 @$(FAILED) && $(BIN)/python -m harness.failed_tests judge $(FAILED); }

# One after the other: most of them start services and queries of their own, which take both cores.
test-long: setup  ## what takes seconds of whole services, queries and pages, and would not fit into `make test`
	$(BIN)/pytest -n 0 -m "long and not slow"

# They wait for nothing, so a third process on two cores would only import everything once more.
test-fast: setup  ## the tests that start no service, in about a minute
	$(BIN)/pytest @tests/fast.args $(PARALLEL:3=2)

coverage: setup  ## the whole suite with a report of the lines that it runs, in coverage/index.html
	$(BIN)/pytest $(QUICK) $(PARALLEL) --cov --cov-report=term:skip-covered --cov-report=html

test-all: setup  ## the same (or TESTS) on new examples each time, and what takes longer; with Go, on Vault's own engine
	if command -v go >/dev/null; then $(BIN)/python -m harness.transit; fi
	$(BIN)/pytest --hypothesis-profile=explore $(TESTS)

test-faults: setup  ## RUNS (70) seeded runs with faults on each log, and their tables in docs/faults.md
	$(BIN)/python -m faults --runs $(RUNS) --report docs/faults.md

screenshots: setup  ## the pictures of the pages in docs/images
	mkdir -p docs/images
	SCREENSHOTS=docs/images $(BIN)/pytest -q -n 0 tests/browser/test_views.py -k screenshots

constraints: setup  ## write the exact versions of the environment into constraints.txt
	echo '# The exact versions with which the tests passed on Python 3.11; `make constraints` writes them.' > constraints.txt
	$(BIN)/python -m pip freeze --exclude-editable >> constraints.txt

bench: setup  ## side-by-side measurements
	$(BIN)/python -m bench

clean:  ## forget the environment and the caches
	rm -rf .venv .cache .coverage coverage .mypy_cache .pytest_cache .ruff_cache
