# The registry alone: no client serdes extras, no Spark, no tests.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY strata strata
COPY registry registry
COPY compat compat
COPY storage storage
COPY serdes serdes
COPY spark_udfs spark_udfs
COPY gitops gitops
RUN python -m venv /opt/strata \
    && /opt/strata/bin/pip install --no-cache-dir '.[server,kafka,postgres,otel]'

FROM python:3.13-slim
RUN useradd --system --uid 8081 --create-home --home-dir /var/lib/strata strata
COPY --from=build /opt/strata /opt/strata
ENV PATH=/opt/strata/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    STRATA_LISTEN=0.0.0.0:8081 \
    STRATA_LOG=sqlite:////var/lib/strata/strata.db
USER strata
WORKDIR /var/lib/strata
VOLUME /var/lib/strata
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8081/health/live', timeout=2)"]
ENTRYPOINT ["strata"]
CMD ["serve"]
