// The requests and statuses of gRPC.

import type { IncomingHttpHeaders } from 'node:http'

/** gRPC, and gRPC-Web, which also works over HTTP/1.1. */
export function isGrpc({ 'content-type': type }: IncomingHttpHeaders): boolean {
  return type !== undefined && /^application\/grpc/i.test(type)
}

/** Calls are always sent with POST. Any client can send the content type with other methods. */
export function isGrpcCall({
  method,
  headers,
}: {
  readonly method?: string
  readonly headers: IncomingHttpHeaders
}): boolean {
  return method === 'POST' && isGrpc(headers)
}

/** The statuses that we return. */
export const GRPC_STATUS = {
  invalidArgument: '3',
  permissionDenied: '7',
  resourceExhausted: '8',
  unimplemented: '12',
  internal: '13',
  unavailable: '14',
  unauthenticated: '16',
} as const

export type GrpcStatus = (typeof GRPC_STATUS)[keyof typeof GRPC_STATUS]

/** The text of `grpc-message`: printable ASCII, and everything else escaped as in an address. */
export function encodeGrpcMessage(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent)
}
