ARG PYTHON_IMAGE=python:3.12-slim

FROM ${PYTHON_IMAGE} AS build
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PROJECT_ENVIRONMENT=/opt/callgrade \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /src
COPY .ci/uv.txt .ci/uv.txt
RUN pip install --no-cache-dir --require-hashes --requirement .ci/uv.txt
# The dependencies first: a layer of their own, rebuilt only when the lock changes.
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-dev --all-extras --no-install-project --no-cache
COPY README.md LICENSE ./
COPY rubrics rubrics
COPY calibration/labels calibration/labels
COPY callgrade.py ./
COPY pytest_callgrade.py ./
COPY service service
RUN uv sync --frozen --no-dev --all-extras --no-editable --no-cache

FROM ${PYTHON_IMAGE} AS run
LABEL org.opencontainers.image.title="callgrade" \
      org.opencontainers.image.description="Scores what language models do with tools" \
      org.opencontainers.image.licenses="Apache-2.0"
# Whoever reaches the port needs a key; the first start makes one and prints it once (`docker logs`).
# Everything is compiled and nothing is written but CALLGRADE_HOME, so the root file system may be read-only.
ENV PATH=/opt/callgrade/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    CALLGRADE_HOME=/data \
    CALLGRADE_FIRST_KEY=true
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin callgrade \
    && install --directory --owner=callgrade --group=callgrade --mode=0700 /data
COPY --from=build /opt/callgrade /opt/callgrade
VOLUME /data
WORKDIR /data
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8000, timeout=2); c.request('GET', '/livez'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["callgrade", "serve", "--host", "0.0.0.0", "--port", "8000"]
