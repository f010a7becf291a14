# syntax=docker/dockerfile:1
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin tidegate && cp target/release/tidegate /tidegate

FROM debian:12-slim
# Certificates to reach Postgres and Redis over TLS; a user without rights, and a folder for SQLite that is its own.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin tidegate \
    && install -d -o tidegate -g tidegate -m 0750 /data
COPY --from=build /tidegate /usr/local/bin/tidegate
USER 10001:10001
# What is stored without other settings: sqlite:tidegate.db in here.
WORKDIR /data
VOLUME /data
EXPOSE 8080 9090
# SIGTERM drains: give it longer than server.drain_within.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["curl", "-fsS", "http://127.0.0.1:9090/readyz"]
ENTRYPOINT ["tidegate"]
CMD ["serve"]
