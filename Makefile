# make demo   a router on built-in data: what it does and why
# make check  while working: formatting, lints, unit tests
# make test   everything that must hold: formatting, lints, tests, documentation, licences
# make paper  every experiment of the paper, and the pages written from them (about an hour on two cores)
# make pages  those pages again, from results that are already there
# make docs   the book, in docs/book
# make wheel  the Python package, in target/wheels
# make api    the public interface of the libraries, in docs/api
# make bench  speed, as ratios to a peer in the same run (ROWS=10000000); then the race
# make race   the Python package against what people use instead; the book's page on it

.DEFAULT_GOAL := help
.PHONY: help demo check features reproduction test python wheel paper pages docs bench bench-serve bench-spark race install picture audit api api-check publish-check fuzz
ROWS ?= 10000000

help:
	@sed -n 's/^# make/make/p' Makefile

# Rust is all that is needed; its formatter and linter may be missing from a minimal installation.
COMPONENTS = cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy

# The report is also tested in a browser, which is installed in a container. Without one, or without Python, tests print SKIPPED; with
# CI=true nothing is skipped and they fail.
BROWSER = command -v chromium || command -v chromium-browser || command -v google-chrome || test -x "$$CHROME" || \
	{ test "$$(id -u)" = 0 && { apt-get install -qy chromium || { apt-get update -q && apt-get install -qy chromium; }; }; }

# The Spark tests need Java, which is installed in the same way.
JAVA = command -v java || test -x "$$JAVA_HOME/bin/java" || { test "$$(id -u)" = 0 && \
	{ apt-get install -qy default-jre-headless || { apt-get update -q && apt-get install -qy default-jre-headless; }; }; }

# The service's stores are tested against a private PostgreSQL server, too, which the tests start and stop; POINTSMAN_TEST_POSTGRES names
# another one.
POSTGRES = test -n "$$POINTSMAN_TEST_POSTGRES" || command -v initdb || ls /usr/lib/postgresql/*/bin/initdb || { test "$$(id -u)" = 0 && \
	{ apt-get install -qy postgresql || { apt-get update -q && apt-get install -qy postgresql; }; }; }

# Without the service, which the demo does not need, and quick to build.
demo:
	cargo run --profile demo --locked -p pointsman-cli --no-default-features -- demo

# One selection of features for lints, tests and documentation, so that no crate is built twice.
FEATURES = --workspace --features pointsman-cli/lab --locked

check:
	@$(COMPONENTS)
	cargo fmt --all --check
	cargo clippy $(FEATURES) --all-targets -- -D warnings
	cargo test $(FEATURES) --lib

# The core without its features, and with each alone; without rayon the pinned numbers are the same. The fuzz targets, a workspace apart.
features:
	cargo check -p pointsman --no-default-features --locked --target-dir target/features
	cargo check -p pointsman --no-default-features --features rayon --locked --target-dir target/features
	cargo test -p pointsman-trees --no-default-features --locked --target-dir target/features
	cargo test -p pointsman --no-default-features --features serde --test core --locked --target-dir target/features -- stability:: golden::
	cargo check --manifest-path fuzz/Cargo.toml --all-targets --locked --target-dir target/features

# Tests that take seconds each are in modules of this name: the paper's experiments, coverage in simulated worlds, public data sets.
REPRODUCTION = reproduction::

reproduction:
	cargo test $(FEATURES) --test '*' -- $(REPRODUCTION)

test:
	@$(COMPONENTS)
	@{ $(BROWSER); } >/dev/null 2>&1 || { echo "SKIPPED: no Chromium: set CHROME to a browser to test the report in it"; test "$$CI" != true; }
	@{ $(POSTGRES); } >/dev/null 2>&1 || { echo "SKIPPED: no PostgreSQL: install it, or set POINTSMAN_TEST_POSTGRES to the address of a server"; test "$$CI" != true; }
	cargo fmt --all --check
	cargo clippy $(FEATURES) --all-targets -- -D warnings
	cargo test $(FEATURES) -- --skip $(REPRODUCTION)
	@$(MAKE) --no-print-directory reproduction
	RUSTDOCFLAGS="-D warnings" cargo doc $(FEATURES) --no-deps
	@$(MAKE) --no-print-directory api-check
	@$(MAKE) --no-print-directory python

# The Python package is tested as users get it: a wheel in a fresh environment.
PYTHON := $(firstword $(foreach name,$(POINTSMAN_PYTHON) python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(name) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
VENV = target/python-venv
WHEELS = target/wheels

python:
ifeq ($(PYTHON),)
	@echo "SKIPPED: the Python tests need Python 3.11 or newer with venv: set POINTSMAN_PYTHON to one"; test "$$CI" != true
else
	@{ $(JAVA); } >/dev/null 2>&1 || { echo "SKIPPED: no Java: install a JRE, version 17 or newer, to test Spark"; test "$$CI" != true; }
	rm -rf $(VENV) $(WHEELS)/test
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install -q --disable-pip-version-check -r python/requirements-test.txt
	cd python && ../$(VENV)/bin/maturin build -q --profile dev -o ../$(WHEELS)/test
	$(VENV)/bin/pip install -q --disable-pip-version-check --no-deps $(WHEELS)/test/*.whl
	$(VENV)/bin/python -m pytest python/tests
	$(VENV)/bin/python bench/race/page.py --check
	$(VENV)/bin/python bench/capacity.py --check
	$(VENV)/bin/python bench/spark.py --check
endif

wheel:
	rm -rf $(WHEELS)/tools
	$(PYTHON) -m venv $(WHEELS)/tools
	$(WHEELS)/tools/bin/pip install -q --disable-pip-version-check "$$(grep ^maturin python/requirements-test.txt)"
	cd python && ../$(WHEELS)/tools/bin/maturin build --profile dist -o ../$(WHEELS)

MDBOOK = target/tools/bin/mdbook

$(MDBOOK):
	cargo install mdbook --version 0.5.4 --locked --no-default-features --features search --root target/tools

docs: $(MDBOOK)
	$(MDBOOK) build docs

paper:
	cargo run --release --locked -p pointsman-cli --features lab -- reproduce all -o target/paper --publish docs

# The pages and figures of the results that are already there, as after a change of words.
pages:
	POINTSMAN_TEST_WRITE_PAGES=1 cargo test $(FEATURES) --test lab published_pages_match_results

bench:
	cargo run --release --locked -p pointsman-bench -- $(ROWS)
ifeq ($(filter forest opening what-if,$(ROWS)),)
	@$(MAKE) --no-print-directory race
	@$(MAKE) --no-print-directory bench-spark
endif

# The service under load, as it is shipped; generator and service share the machine.
OHA = target/tools/bin/oha

$(OHA):
	cargo install oha --version 1.16.0 --locked --no-default-features --features rustls --root target/tools

SERVE = target/serve-venv

bench-serve: $(OHA)
	cargo build --profile dist --locked -p pointsman-cli -p pointsman-bench
	test -x $(SERVE)/bin/python || $(PYTHON) -m venv $(SERVE)
	$(SERVE)/bin/pip install -q --disable-pip-version-check -r bench/serve-requirements.txt
	$(SERVE)/bin/python bench/serve.py
	$(SERVE)/bin/python bench/capacity.py

# Ten million rows through two executors of Spark, by the package as users get it; needs Java.
SPARK = target/spark-venv

bench-spark:
	test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/pip install -q --disable-pip-version-check -r python/requirements-test.txt
	rm -rf $(WHEELS)/spark
	cd python && ../$(SPARK)/bin/maturin build -q --release -o ../$(WHEELS)/spark
	$(SPARK)/bin/pip install -q --disable-pip-version-check --no-deps --force-reinstall $(WHEELS)/spark/*.whl
	$(SPARK)/bin/python bench/spark.py

# The race has an environment of its own. xgboost comes without what its wheel asks for: a GPU library that nothing here uses.
RACE = target/race-venv

race:
	test -x $(RACE)/bin/python || $(PYTHON) -m venv $(RACE)
	$(RACE)/bin/pip install -q --disable-pip-version-check -r bench/race/requirements.txt
	$(RACE)/bin/pip install -q --disable-pip-version-check --no-deps -r bench/race/requirements-alone.txt
	rm -rf $(WHEELS)/race
	cd python && ../$(RACE)/bin/maturin build -q --release -o ../$(WHEELS)/race
	$(RACE)/bin/pip install -q --disable-pip-version-check --no-deps --force-reinstall $(WHEELS)/race/*.whl
	$(RACE)/bin/python bench/race/race.py --rows $(ROWS)
	$(RACE)/bin/python bench/race/page.py

install:
	cargo install --locked --profile dist --path crates/pointsman-cli

# The pictures of the README, drawn from what the program prints and writes.
picture:
	cargo build --release --locked -p pointsman-cli
	python3 docs/picture.py target/release/pointsman docs/terminal.svg
	target/release/pointsman --quiet demo -o target/demo
	cp target/demo/figures/landscape.svg docs/figures/landscape.svg

# What users of the libraries may call, one list per crate: a change of the public interface shows in the diff.
PUBLIC_API = target/tools/bin/cargo-public-api

$(PUBLIC_API):
	cargo install cargo-public-api --version 0.52.0 --locked --root target/tools

api: $(PUBLIC_API)
	sh docs/api/list.sh docs/api
	POINTSMAN_TEST_WRITE_API=1 cargo test $(FEATURES) --test server api_page

# The tool takes minutes to build, so that it is not needed for the tests; `make api` installs it.
api-check:
	@if test -x $(PUBLIC_API); then rm -rf target/api && sh docs/api/list.sh target/api && diff -ru -x list.sh docs/api target/api || \
	{ echo "the public interface changed: see what changed above, then write it anew with make api"; exit 1; }; \
	else echo "SKIPPED: the lists of the public interface in docs/api were not compared: make $(PUBLIC_API) gets the tool"; fi

# Packs every crate that is to be published as the registry would get it, without uploading: needs a clean tree and the registry's index.
publish-check:
	cargo publish --workspace --dry-run --no-verify --locked

# Known vulnerabilities: needs cargo-deny and the network.
audit:
	cargo deny check

# Ten minutes per parser: needs cargo-fuzz and a nightly toolchain.
fuzz:
	cd fuzz && cargo run --example seeds && for target in table router part policy task decide arrow infer query config; do \
	dict=; test ! -f $$target.dict || dict=-dict=$$target.dict; \
	ASAN_OPTIONS=detect_odr_violation=0 cargo +nightly fuzz run $$target -- $$dict -max_total_time=600 -max_len=65536 -rss_limit_mb=4096 -timeout=25 || exit 1; done
