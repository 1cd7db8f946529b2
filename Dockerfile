# Menshen in a container: docs/deploying.md. Nothing of it needs root, a writable root file system or a development dependency.
FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:26-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN node scripts/build.ts

FROM node:26-slim
WORKDIR /app
# Where the sessions are unless STORE says otherwise: a volume.
RUN install -d -o 1000 -g 1000 -m 700 /data
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json menshen.schema.json LICENSE ./
COPY bin bin
COPY browser browser
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 STORE=sqlite:/data/menshen.db
EXPOSE 3000
# As a number, so that Kubernetes can tell that it is not root.
USER 1000:1000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/_menshen/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node itself, not npm or a shell: it gets SIGTERM, and finishes what is in flight.
ENTRYPOINT ["node", "/app/bin/menshen.js"]
