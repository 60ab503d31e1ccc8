# The targets that the contract names. Everything installs into .venv from lock files with hashes; the machine needs
# only make and Python 3.11 or later with venv and pip.
PYTHON ?= python3
BIN := .venv/bin
SERVE ?= 1
# Without compiled files, each worker of the tests takes 10 s longer to start, and each process of `assay` 1 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow check bench pictures tokens lock clean

help: ## List these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: .venv/installed-base ## Run the main job end to end on recordings; SERVE=0 ends by itself
	@$(BIN)/assay demo $(if $(filter 0,$(SERVE)),--no-serve)

test: .venv/installed-test ## Run the tests; six minutes on two cores
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not slow"

test-slow: .venv/installed-test ## Run the slow tests, and properties with every example
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m "slow or hypothesis" --hypothesis-profile=full

check: .venv/installed-test ## Lint, types, misspelt names, the import contract, the English rules, licences and vulnerabilities
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/python tools/check_words.py
	@$(BIN)/python tools/check_types.py
	@$(BIN)/python tools/check_supply.py

bench: .venv/installed-test ## Benchmarks and long simulations; minutes, not seconds
	@$(BIN)/python -m pytest -q --hypothesis-profile=anew tests/property
	@for file in bench/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

pictures: .venv/installed-test ## Renew the pictures of every page in docs/pictures/pages
	@ASSAY_PICTURES=docs/pictures/pages $(BIN)/python -m pytest -q -n 2 tests/web/pages/test_every_page.py -k whole

tokens: .venv/installed-test ## Count the tokens of each package into ARCHITECTURE.md
	@$(BIN)/python tools/count_tokens.py --write

lock: ## Pin every dependency with hashes (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
		pyproject.toml requirements/build.in -o requirements/base.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" \
		--extra dev -c requirements/base.lock pyproject.toml requirements/build.in -o requirements/test.lock

clean: ## Remove what was installed and built
	rm -rf .venv dist build

.venv/installed-base: requirements/base.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing Assay into .venv (once; about a minute)" >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/base.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

.venv/installed-test: requirements/test.lock .venv/installed-base
	@echo "installing what the tests need into .venv (once)" >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/test.lock
	@touch $@
