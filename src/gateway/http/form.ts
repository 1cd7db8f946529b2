// Reads the form that a request brings, up to a limit.
import type { IncomingMessage } from 'node:http'

const BODY_LIMIT = 16 * 1024

/** `undefined` if it is larger. Whoever takes longer is cut off. */
export async function readForm(
  request: IncomingMessage,
  deadlineMs: number,
  onCutOff: () => void,
): Promise<URLSearchParams | undefined> {
  const deadline = setTimeout(() => {
    onCutOff()
    request.destroy()
  }, deadlineMs)
  try {
    return await readBody(request)
  } finally {
    clearTimeout(deadline)
  }
}

async function readBody(request: IncomingMessage): Promise<URLSearchParams | undefined> {
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
