// What `node:http` is to every import in the tests (resolve-quickly.js): all but the classes for WebSockets, which load Node's
// copy of undici, 60 ms of processor time in each process.
const http = process.getBuiltinModule('node:http')

export default http
export const {
  Agent,
  ClientRequest,
  createServer,
  get,
  globalAgent,
  IncomingMessage,
  maxHeaderSize,
  METHODS,
  OutgoingMessage,
  request,
  Server,
  ServerResponse,
  setMaxIdleHTTPParsers,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = http
