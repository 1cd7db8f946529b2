// Replaces `menshen`, `menshen/next` and `menshen/hono` in a runtime without Node's modules (Next's Edge runtime, workers) with one
// error message. It exports their names, so that a bundler does not stop earlier with its own message.
const SENTENCE =
  'Menshen needs Node and cannot run in an Edge runtime or a worker: run the application on Node; in Next remove `export const runtime = "edge"`, and use proxy.ts in place of middleware.ts.'

function refuse(): never {
  throw new Error(SENTENCE)
}

export {
  refuse as addCookies,
  refuse as createMenshen,
  refuse as defineConfig,
  refuse as isOwnPath,
  refuse as MenshenError,
  refuse as menshen,
  refuse as readSettings,
  refuse as requireRole,
  refuse as requireUser,
  refuse as sendAnswer,
}

refuse()
