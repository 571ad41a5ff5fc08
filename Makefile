# `make help` lists the targets. Everything is installed into .venv, nothing outside it.

PYTHON ?= python3

# Order matters: lint before tests, tests before kills. Each of them uses both cores by itself.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test lint unit crash test-clients test-programs docs docs-agents rules surface bench clean bytecode

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s  %s\n", $$1, $$2 }' Makefile

demo: bytecode ## see a task outlive its session
	@.venv/bin/python demo/demo.py

test: lint unit crash ## everything that must hold before a commit

lint: .venv/.stamp-test ## style, types, layers
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --quiet --check . || \
		{ echo "hint: .venv/bin/ruff format . puts them in form" >&2; exit 1; }
	@.venv/bin/mypy --no-error-summary
	@cd bench && MYPYPATH=.:../src ../.venv/bin/mypy --no-error-summary --config-file ../pyproject.toml bench.py plot.py
	@.venv/bin/lint-imports --no-logo

# Without bytecode pytest would rewrite the assertions of every test, and of its plugins, each time.
unit: .venv/.stamp-test bytecode ## all tests but the crash tests and those with real clients
	@PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -q -n 2 --ignore=tests/crash --ignore=tests/clients \
		--ignore=tests/programs

crash: .venv/.stamp-test bytecode ## kill every process before every system call
	@.venv/bin/python -m pytest -q tests/crash

# Real agent clients and the official MCP suite, pinned, against a model on loopback: nothing leaves the
# machine once they are installed. Node itself comes from npm, for some need a newer one than many systems have.
agent_clients := node=node@24.21.0 claude=@anthropic-ai/claude-code@2.1.327 codex=@openai/codex@0.169.0 \
	gemini=@google/gemini-cli@0.61.0 opencode=opencode-ai@1.18.33 openclaw=openclaw@2026.9.6

test-clients: .venv/.stamp-test bytecode ## Outlive in real agent clients, and the official MCP suite, offline
	@if ! command -v npm >/dev/null; then echo "test-clients: skipped, npm is not installed"; exit 0; fi; \
	for each in $(agent_clients) "mcp=$$(tr '\n' ' ' < tests/clients/mcp_packages.txt)"; do \
		place=tests/clients/.clients/$${each%%=*}; \
		[ "$$(cat $$place/.version 2>/dev/null)" = "$${each#*=}" ] || { \
			echo "installing $${each#*=}"; rm -rf $$place; mkdir -p $$place; \
			case $$place in */openclaw) scripts=--ignore-scripts;; *) scripts=;; esac; \
			npm install $$scripts --fetch-retries=1 --silent --no-audit --no-fund --no-save --prefix $$place $${each#*=} >/dev/null 2>&1 && \
			echo "$${each#*=}" > $$place/.version || \
			{ echo "note: $${each#*=} could not be installed; its tests are skipped"; rm -rf $$place; }; }; \
	done; \
	.venv/bin/python -m pytest -q tests/clients || \
		{ echo "once more what failed: these programs stumble over themselves now and then"; \
		  .venv/bin/python -m pytest -q --last-failed --last-failed-no-failures none tests/clients; }

# Programs that people run as tasks, pinned: servers and watchers from npm.
npm_programs := vite=vite@8.3.8

test-programs: .venv/.stamp-test bytecode ## Outlive with real servers such as vite, offline
	@if ! command -v npm >/dev/null; then echo "test-programs: skipped, npm is not installed"; exit 0; fi; \
	for each in $(npm_programs); do \
		place=tests/programs/.programs/$${each%%=*}; \
		[ "$$(cat $$place/.version 2>/dev/null)" = "$${each#*=}" ] || { \
			echo "installing $${each#*=}"; rm -rf $$place; mkdir -p $$place; \
			npm install --fetch-retries=1 --silent --no-audit --no-fund --no-save --prefix $$place $${each#*=} >/dev/null 2>&1 && \
			echo "$${each#*=}" > $$place/.version || \
			{ echo "note: $${each#*=} could not be installed; its tests are skipped"; rm -rf $$place; }; }; \
	done; \
	.venv/bin/python -m pytest -q tests/programs

docs: .venv/.stamp-test bytecode docs/site/mermaid.min.js ## write the reference from the code, and build the site
	@.venv/bin/python docs/generate.py
	@.venv/bin/python -m sphinx -q -W --keep-going docs build/docs
	@.venv/bin/python -m pytest -q tests/architecture/test_docs.py
	@echo "open build/docs/index.html"

# The clients are those of `make test-clients`.
docs-agents: .venv/.stamp-test bytecode ## paste what real agents print into docs/how-to/agents.md
	@.venv/bin/python -m tests.clients.agents_page

# Draws the diagrams of the site. It is not kept in the repository, and without npm the diagrams are shown as text.
docs/site/mermaid.min.js:
	@if command -v npm >/dev/null && \
		npm install --silent --no-audit --no-fund --no-save --prefix build/mermaid mermaid@12.3.0 >/dev/null 2>&1; then \
		cp build/mermaid/node_modules/mermaid/dist/mermaid.min.js $@; \
	else echo "note: mermaid could not be installed; the site shows diagrams as text"; fi

rules: .venv/.stamp-run ## compile rules/*.toml, which say what commands change
	@.venv/bin/python rules/compile.py

surface: .venv/.stamp-test bytecode ## record what users script against; a change of it is theirs to see
	@.venv/bin/python -m tests.surface.surface

bench: bytecode .venv/.stamp-test .venv/.stamp-bench ## measure beside the peers, as ratios
	@command -v strace >/dev/null || \
		{ echo "outlive: bench counts system calls with strace, which is not installed" >&2; \
		  echo "hint: install your distribution's strace package" >&2; exit 1; }
	@.venv/bin/python bench/bench.py

clean: ## remove .venv and every cache
	rm -rf .venv bench/.peers tests/clients/.clients tests/programs/.programs build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment may forbid Python to write bytecode; every launch would then compile all sources
# anew. compileall writes it nevertheless, and costs nothing where no source has changed.
bytecode: .venv/.stamp-run
	@.venv/bin/python -m compileall -q src

# The constraints are also passed by the environment, because that is how they reach the isolated
# environment in which pip builds us (PIP_BUILD_CONSTRAINT from pip 25.3 on). -qq: no warnings, only
# errors.
pip_install := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	.venv/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt

.venv/.stamp-run: pyproject.toml constraints.txt bin/outlive
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "outlive: Python 3.11 or newer is needed, and $(PYTHON) is" \
		       "$$($(PYTHON) --version 2>/dev/null || echo not there)" >&2; \
		  echo "hint: name another one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "installing into .venv"
	@$(PYTHON) -m venv .venv >&2 || \
		{ echo "hint: Debian and Ubuntu keep it in the package python3-venv" >&2; exit 1; }
	@$(pip_install) -e .
	@touch $@

# Some tests need Debian's packages, and one of them root: without these they are skipped.
test_packages := bindfs zsh fish bash-completion strace rsync

.venv/.stamp-test: .venv/.stamp-run
	@echo "installing what the tests need"
	@$(pip_install) -e '.[test]'
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		! dpkg -s $(test_packages) >/dev/null 2>&1; then \
		{ apt-get update -qq && apt-get install -y -qq $(test_packages); } >/dev/null 2>&1 || \
		echo "note: $(test_packages): not all could be installed; the tests that need them are skipped"; fi
	@touch $@

# The peers. What cannot be installed here is left out of the table, and the table says so. Two of
# Debian's packages bring a service along: they are installed only where a policy, as in every
# container, keeps it from being started.
.venv/.stamp-bench: .venv/.stamp-run
	@echo "installing the peers"
	@$(pip_install) -e '.[bench]'
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		wanted="nq strace task-spooler tmux"; \
		! [ -x /usr/sbin/policy-rc.d ] || wanted="$$wanted redis-server supervisor"; \
		apt-get update -qq >/dev/null 2>&1; \
		for package in $$wanted; do \
			apt-get install -y -qq $$package >/dev/null 2>&1 || echo "note: $$package could not be installed"; \
		done; fi
	@if command -v npm >/dev/null; then \
		npm install --silent --no-audit --no-fund --no-save --prefix bench/.peers pm2@7.0.4 >/dev/null 2>&1 || \
		echo "note: pm2 could not be installed"; fi
	@touch $@
