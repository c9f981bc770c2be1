# The registry alone: no client serdes extras, no Spark, no tests. The versions are those that the tests ran with.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY strata strata
COPY registry registry
COPY compat compat
COPY storage storage
COPY serdes serdes
COPY spark_udfs spark_udfs
COPY gitops gitops
RUN python -m venv /opt/strata \
    && /opt/strata/bin/pip install --no-cache-dir --constraint constraints.txt '.[server,kafka,postgres,otel]'

FROM python:3.13-slim
RUN groupadd --system --gid 8081 strata \
    && useradd --system --uid 8081 --gid 8081 --create-home --home-dir /var/lib/strata strata
COPY --from=build /opt/strata /opt/strata
ENV PATH=/opt/strata/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    STRATA_LISTEN=0.0.0.0:8081 \
    STRATA_LOG=sqlite:////var/lib/strata/strata.db
# A number, so that Kubernetes can see that it is not root.
USER 8081:8081
WORKDIR /var/lib/strata
VOLUME /var/lib/strata
EXPOSE 8081
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["strata", "health", "/health/live"]
ENTRYPOINT ["strata"]
CMD ["serve"]
