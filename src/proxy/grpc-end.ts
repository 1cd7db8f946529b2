// Ends a gRPC call in place of the application, with a status that its client can read. HTTP/1.1 has no such end, so the answer
// breaks off there.

import type { ServerResponse } from 'node:http'
import { Http2Response } from '../server/http2-messages.ts'
import { destroyAfter } from '../util/deadline.ts'
import { encodeGrpcMessage, type GrpcStatus } from '../util/grpc.ts'

/** A client that does not read within this time loses it. */
const READ_MS = 1000

export function endGrpc(response: ServerResponse, status: GrpcStatus, message: string): void {
  if (!(response instanceof Http2Response)) return void response.destroy()
  if (response.destroyed || response.writableEnded) return
  const end: [string, string][] = [
    ['grpc-status', status],
    ['grpc-message', encodeGrpcMessage(message)],
  ]
  if (response.headersSent) response.addTrailers(end)
  else response.writeHead(200, ['content-type', 'application/grpc', ...end.flat()])
  response.end()
  destroyAfter(response.req.stream, READ_MS)
}
