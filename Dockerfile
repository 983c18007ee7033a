# Izzy in a container: the packages of requirements.lock, bubblewrap, and nothing that builds.
#   docker build -t izzy .
# compose.yaml starts web processes and workers of it, beside PostgreSQL, Redis and Caddy.

FROM python:3.11-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_NO_CACHE=1
WORKDIR /build
COPY requirements-uv.lock ./
RUN python -m venv /uv && /uv/bin/pip install --require-hashes -r requirements-uv.lock
COPY pyproject.toml requirements.lock requirements-words.lock scripts/runtime_lock.py ./
# Of the lock, what is needed at run time, in the locked versions and with their hashes; the tests' packages are left out.
RUN /uv/bin/uv pip compile pyproject.toml --extra otel --extra s3 --constraints requirements.lock --no-header --no-annotate -q -o names.txt \
    && python runtime_lock.py requirements.lock names.txt > runtime.lock \
    && /uv/bin/uv venv --python /usr/local/bin/python /izzy/.venv \
    && /uv/bin/uv pip sync --python /izzy/.venv/bin/python --require-hashes runtime.lock \
    && /uv/bin/uv pip install --python /izzy/.venv/bin/python --no-deps --require-hashes -r requirements-words.lock
COPY manage.py README.md CHANGELOG.md /izzy/
COPY apps /izzy/apps
COPY benchmarks /izzy/benchmarks
COPY integrations /izzy/integrations
COPY izzysite /izzy/izzysite
COPY static /izzy/static
COPY templates /izzy/templates
COPY docs /izzy/docs
WORKDIR /izzy
RUN .venv/bin/python -m compileall -q apps izzysite .venv/lib \
    && .venv/bin/python -m apps.search.proactive

FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin izzy \
    && install -d -o izzy -g izzy -m 0700 /data /sandbox
COPY --from=build /izzy /izzy
ENV PATH=/izzy/.venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MALLOC_ARENA_MAX=2 \
    IZZY_ENV_FILE="" IZZY_DATA_DIR=/data IZZY_SANDBOX_DIR=/sandbox IZZY_HOST=0.0.0.0 IZZY_PORT=8000
WORKDIR /izzy
USER 10001:10001
VOLUME /data
EXPOSE 8000
# bubblewrap makes a user namespace for each tool, which Docker's own filter of system calls refuses: start the container with
# deploy/seccomp.json, as compose.yaml does, or set IZZY_SANDBOX to e2b or none.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-S", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["python", "manage.py"]
CMD ["serve"]
