// Reads the form that a request brings, up to a limit.
import type { IncomingMessage } from 'node:http'

const BODY_LIMIT = 16 * 1024

/** A form is sent at once, or by somebody who only wants to keep a connection busy. */
const BODY_DEADLINE_MS = 10_000

/** `undefined` if it is larger. */
export async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const deadline = setTimeout(() => request.destroy(), BODY_DEADLINE_MS)
  try {
    return await read(request)
  } finally {
    clearTimeout(deadline)
  }
}

/** What nobody reads is thrown away, so that the next request on the connection is heard; but not for ever. */
export function drain(request: IncomingMessage): void {
  if (request.complete) return
  const deadline = setTimeout(() => request.destroy(), BODY_DEADLINE_MS).unref()
  request.once('close', () => clearTimeout(deadline))
  request.once('end', () => clearTimeout(deadline))
  request.resume()
}

async function read(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop must not destroy the connection: the answer still has to go out.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length
    if (size > BODY_LIMIT) return undefined
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString())
}
