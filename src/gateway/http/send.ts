// Writes a Response to a node:http response.
import type { ServerResponse } from 'node:http'
import { drain } from './drain.ts'
import { REQUEST_ID } from './request-id.ts'

export async function send(response: ServerResponse, answer: Response, requestId: string): Promise<void> {
  const { 'set-cookie': _, ...headers } = Object.fromEntries(answer.headers)
  const cookies = answer.headers.getSetCookie()
  const body = Buffer.from(await answer.arrayBuffer())
  response.writeHead(answer.status, {
    ...headers,
    ...(cookies.length > 0 ? { 'set-cookie': cookies } : {}),
    'content-length': body.length,
    [REQUEST_ID]: requestId,
  })
  response.end(body)
  drain(response.req)
}

/**
 * Asks for the body. Not while an earlier answer of the same connection is still on its way: Node would put the words
 * between the head and the body of this one.
 */
export function sayContinue(response: ServerResponse): void {
  if (response.socket) response.writeContinue()
}
