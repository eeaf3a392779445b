# A server for one model, which is mounted at /model:
#
#   docker build -t xmtc .
#   docker run -p 8000:8000 -v "$PWD/served:/model:ro" -e XMTC_TOKEN xmtc
#
# The image has no torch: it serves linear, knn and exported neural models (`xmtc export`). For models of torch, build with
#   --build-arg EXTRAS=serve,neural

FROM python:3.12-slim AS build
ARG EXTRAS=serve,onnx
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/xmtc \
    && /opt/xmtc/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[${EXTRAS}]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home xmtc
COPY --from=build /opt/xmtc /opt/xmtc
ENV PATH=/opt/xmtc/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XMTC_CACHE=/home/xmtc/.cache/xmtc
USER xmtc
# kernels are compiled now, not when the first document comes
RUN xmtc warmup
VOLUME ["/model"]
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["xmtc"]
CMD ["serve", "/model", "--host", "0.0.0.0", "--port", "8000"]
