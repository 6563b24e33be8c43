# Sidestage in a container: docs/operations.md, "Docker", says how to run it and what it
# cannot do. The server discovers processes and files of its host, which a container is
# made to hide; an installation without one is simpler.
FROM node:22-slim AS client
WORKDIR /src
COPY . .
RUN scripts/build-client

FROM python:3.12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/*
COPY --from=client /src /src
RUN pip install --no-cache-dir /src && rm -rf /src
# The owner of the mounted home; give another with --build-arg.
ARG OWNER_ID=1000
RUN useradd --uid "$OWNER_ID" --create-home owner
USER owner
EXPOSE 8787
# Inside, loopback is the container's own: what may reach it is Docker's -p to decide.
ENTRYPOINT ["sidestage", "serve", "--host", "0.0.0.0", "--insecure-bind"]
