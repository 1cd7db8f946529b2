// Our own answers to gRPC calls. A gRPC client does not understand pages or HTTP statuses: it reads `grpc-status` from an answer
// that has only a head (trailers-only), with HTTP status 200.
//
// Not for forward-auth checks, where the proxy takes 200 for yes.

import type { OwnAnswer, ResponseAnswer } from '../http/answers.ts'
import type { RequestHead } from '../http/request.ts'
import { encodeGrpcMessage, GRPC_STATUS, type GrpcStatus, isGrpc } from '../util/grpc.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'

/** Converts an error response for gRPC clients. Successful responses, and those to other clients, stay as they are. */
export function toGrpcResponse<Answer extends OwnAnswer>(
  { headers }: Pick<RequestHead, 'headers'>,
  answer: MaybePromise<Answer>,
): MaybePromise<Answer | ResponseAnswer> {
  return isGrpc(headers) ? andThen(answer, answer => toGrpc(headers['content-type'] ?? '', answer)) : answer
}

async function toGrpc<Answer extends OwnAnswer>(type: string, answer: Answer): Promise<Answer | ResponseAnswer> {
  if (!('response' in answer) || answer.response.ok) return answer
  const { response, outcome } = answer
  const headers = new Headers(response.headers)
  for (const name of ['content-length', 'content-security-policy', 'location']) headers.delete(name)
  headers.set('content-type', mediaType(type))
  headers.set('grpc-status', statusOf(response.status))
  headers.set('grpc-message', encodeGrpcMessage(await messageIn(response)))
  return { outcome, response: new Response(null, { status: 200, headers }) }
}

/** The media type without its parameters. */
function mediaType(type: string): string {
  return /^application\/grpc[\w.+-]*/i.exec(type)?.[0] ?? 'application/grpc'
}

const STATUSES: Readonly<Record<number, GrpcStatus>> = {
  302: GRPC_STATUS.unauthenticated,
  303: GRPC_STATUS.unauthenticated,
  401: GRPC_STATUS.unauthenticated,
  403: GRPC_STATUS.permissionDenied,
  404: GRPC_STATUS.unimplemented,
  405: GRPC_STATUS.unimplemented,
  429: GRPC_STATUS.resourceExhausted,
  500: GRPC_STATUS.internal,
}

function statusOf(status: number): GrpcStatus {
  return STATUSES[status] ?? (status < 500 ? GRPC_STATUS.invalidArgument : GRPC_STATUS.unavailable)
}

/** A gRPC client is treated as a script, so that the body is JSON with a message. */
async function messageIn(response: Response): Promise<string> {
  try {
    const { message } = (await response.json()) as { message?: unknown }
    return typeof message === 'string' ? message : ''
  } catch {
    return ''
  }
}
