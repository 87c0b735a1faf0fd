# Every target prepares what it needs; a fresh machine needs only Python (3.11 or later), pip and make.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

ARGS ?=
PARAMETERS ?=
ENV ?= dev
# Colours and caches of an outer environment must not change what the tools find.
unexport VIRTUAL_ENV PYTHONPATH
export SAM_CLI_TELEMETRY := 0

RUN := .venv/bin/python
# Functions are built with the Python of this environment, so it comes first on the path.
SAM := PATH="$(CURDIR)/.tools/sam/bin:$(CURDIR)/.tools/uv/bin:$$PATH" .tools/sam/bin/sam

# ENV's own parameters, PARAMETERS over them: sam alone would take either. Run by the Python that builds, which it names.
merge_parameters = overrides=$$(.tools/sam/bin/python scripts/parameters.py "$(ENV)" $(PARAMETERS))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9.]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: dev-environment sam-environment emulator-environment lambda-environment ## Prepare all tools, from the lock file, inside this folder

environments := $(addsuffix -environment,uv dev sam emulator lambda checkov fuzz)
.PHONY: $(environments)
$(environments): %-environment:
	@scripts/bootstrap $*

.PHONY: demo
demo: setup ## Run 50 orders on a local stack, kill workers meanwhile, and count ghosts, lost and duplicates
	@$(RUN) scripts/demo.py $(ARGS)

.PHONY: load
load: setup ## Load a local stack, kill workers and double commands meanwhile, count lost and duplicates (SECONDS=180)
	@$(RUN) scripts/load.py

.PHONY: local
local: setup ## Serve the deployed stack on this machine (PORT=4566 WORKFLOWS_DIR=path LOCAL_PARAMETERS="Key=Value ...")
	@exec $(RUN) scripts/local.py

.PHONY: env.json
env.json: dev-environment ## Name the stack that make local serves to sam local (PORT=4566 HOST=host.docker.internal)
	@$(RUN) scripts/env_json.py

.PHONY: test
test: dev-environment ## Run the unit and integration tests (ARGS="..." goes to pytest)
	@$(RUN) -m pytest -n auto $(ARGS)

.PHONY: simulate
simulate: dev-environment ## Crash at every write of every scenario, then at random ones (SIM_RUNS, SIM_SEED)
	@$(RUN) -m tests.simulation $(ARGS)

.PHONY: e2e
e2e: setup ## Test a stack deployed on this machine (ARGS="..." goes to pytest)
	@$(RUN) -m pytest -o testpaths=tests/e2e $(ARGS)

.PHONY: openapi
openapi: dev-environment ## Write the description of the HTTP API to docs/openapi.json
	@$(RUN) -m scripts.openapi

.PHONY: fuzz
fuzz: setup fuzz-environment ## Call a local stack with whatever docs/openapi.json permits and forbids (EXAMPLES=20 SEED=1 PORT=4566)
	@$(RUN) -m scripts.fuzz

.PHONY: bench
bench: dev-environment ## Count requests, units, time and dollars per workload, into bench/results/
	@$(RUN) -m bench $(ARGS)

.PHONY: check
check: dev-environment sam-environment ## Lint, check formatting and types, validate and scan the template
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.tools/uv/bin/uv export --quiet --locked $(export_options) | diff layers/runtime/requirements.txt - \
		|| { echo "layers/runtime/requirements.txt is not what uv.lock says: run make lock"; exit 1; }
	@$(SAM) validate --lint --config-env prod --region us-east-1
	@$(MAKE) --no-print-directory scan

.PHONY: scan
scan: checkov-environment ## Ask Checkov what is insecure in the template (.checkov.yaml says what does not apply)
	@.tools/checkov/bin/python .tools/checkov/bin/checkov --config-file .checkov.yaml

# What the functions get, at the versions that the tests ran with.
export_options := --no-default-groups --no-hashes --no-emit-project --no-header --no-annotate

.PHONY: lock
lock: uv-environment ## Renew uv.lock and the runtime layer's requirements (ARGS="--upgrade")
	@.tools/uv/bin/uv lock $(ARGS)
	@.tools/uv/bin/uv export --quiet --locked $(export_options) > layers/runtime/requirements.txt

.PHONY: format
format: dev-environment ## Format the code, and fix what ruff can
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

.PHONY: build
build: sam-environment ## Build functions and layers for AWS (sam build)
	@$(merge_parameters); $(SAM) build --config-env "$(ENV)" --parameter-overrides "$$overrides"

.PHONY: deploy
deploy: build ## Deploy to your AWS account, as samconfig.toml says (ENV=dev|prod PARAMETERS="Key=Value ...")
	@$(merge_parameters); $(SAM) deploy --config-env "$(ENV)" --parameter-overrides "$$overrides" $(ARGS)

.PHONY: clean
clean: ## Remove everything that was built or installed here
	@rm -rf .venv .tools .build .aws-sam dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
