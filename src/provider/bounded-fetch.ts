// One call to the provider: a deadline that includes the body, a size limit, no redirects, a fresh connection.
import { Agent, fetch } from 'undici'
import { MenshenError } from '../errors.ts'

const ANSWER_LIMIT = 1024 * 1024

/** A status and what was read of the body: `undefined` where it is not JSON. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** The request could not have arrived: sending it again cannot do anything twice. */
export class NeverArrived extends MenshenError {
  constructor(message: string, cause: unknown) {
    super('provider_unreachable', message, cause)
  }
}

/** `fetch` for oauth4webapi. What it returns has been read completely and within the limits. */
export type BoundedFetch = (url: string, init: object) => Promise<Response>

export function createBoundedFetch(timeoutMs: number): { fetch: BoundedFetch; close(): Promise<void> } {
  // A reused connection that the provider has just closed would lose a code that can be redeemed only once.
  const agent = new Agent({ pipelining: 0, connect: { timeout: timeoutMs } })
  return {
    async fetch(url, init) {
      const signal = AbortSignal.timeout(timeoutMs)
      try {
        const response = await fetch(url, { ...init, redirect: 'manual', signal, dispatcher: agent })
        const bytes = await readBytes(response.body)
        return new Response(hasBody(response.status) ? bytes : null, {
          status: response.status,
          headers: Object.fromEntries(response.headers),
        })
      } catch (error) {
        throw signal.aborted
          ? new MenshenError('provider_unreachable', `no whole answer within ${timeoutMs} ms`)
          : asMenshenError(error)
      }
    },
    close: () => agent.destroy(),
  }
}

export async function readAnswer(response: Response): Promise<Answer> {
  const bytes = await response.arrayBuffer()
  return { status: response.status, body: parseJson(bytes) }
}

function parseJson(bytes: ArrayBuffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

async function readBytes(body: AsyncIterable<Uint8Array> | null): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > ANSWER_LIMIT)
      throw new MenshenError('provider_answer', `the answer is larger than ${ANSWER_LIMIT} bytes`)
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

const hasBody = (status: number) => ![101, 204, 205, 304].includes(status)

const BEFORE_SENDING = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

function asMenshenError(error: unknown): MenshenError {
  if (error instanceof MenshenError) return error
  const code = innermostCode(error)
  if (BEFORE_SENDING.has(code)) return new NeverArrived(`no connection (${code})`, error)
  return new MenshenError('provider_unreachable', `the connection broke (${code})`, error)
}

function innermostCode(error: unknown): string {
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] }
  if (cause !== undefined) return innermostCode(cause)
  if (errors?.[0] !== undefined) return innermostCode(errors[0])
  return typeof code === 'string' ? code : 'unknown'
}
