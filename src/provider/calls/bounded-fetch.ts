// One call to the provider: a deadline that includes the body, a size limit, no redirects, a fresh connection.
import type { LookupFunction } from 'node:net'
import { Agent, fetch } from 'undici'
import { MenshenError } from '../../errors.ts'

const ANSWER_LIMIT = 1024 * 1024
/** Some providers refuse whoever does not say who it is. */
export const USER_AGENT = 'menshen'

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

/** Header names in small letters. */
export interface CallInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: URLSearchParams | string
}

/** `fetch` for oauth4webapi. What it returns has been read completely and within the limits. */
export type BoundedFetch = (url: string, init?: CallInit) => Promise<Response>

/** `lookup` can refuse where a name leads. */
export function createBoundedFetch(
  timeoutMs: number,
  lookup?: LookupFunction,
): { fetch: BoundedFetch; close(): Promise<void> } {
  // A reused connection that the provider has just closed would lose a code that can be redeemed only once.
  const agent = new Agent({ pipelining: 0, connect: { timeout: timeoutMs, ...(lookup && { lookup }) } })
  return {
    async fetch(url, init = {}) {
      const headers = { 'user-agent': USER_AGENT, accept: 'application/json', ...init.headers }
      const signal = AbortSignal.timeout(timeoutMs)
      try {
        const response = await fetch(url, { ...init, headers, redirect: 'manual', signal, dispatcher: agent })
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
  const type = response.headers.get('content-type') ?? ''
  const text = decode(await response.arrayBuffer())
  const body = text === undefined ? undefined : (readJson(text) ?? readForm(text, type))
  return { status: response.status, body }
}

function decode(bytes: ArrayBuffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** A whole number that is too large for a number stays the text that it is: it is somebody's id. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown)
  } catch {
    return undefined
  }
}

/** The types of TypeScript do not know yet that a reviver is told how the value was written. */
function keepDigits(_key: string, value: unknown, { source = '' }: { source?: string }): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? source : value
}

/** Some providers answer a token request as a form, and call it that or plain text. */
function readForm(text: string, type: string): unknown {
  if (!/^(application\/x-www-form-urlencoded|text\/(plain|html))\b/i.test(type)) return undefined
  if (!/^[\w.-]+=[^\s<>]*$/.test(text)) return undefined
  return Object.fromEntries(new URLSearchParams(text))
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
  // A lookup that refuses comes wrapped.
  if (error instanceof Error && error.cause instanceof MenshenError) return error.cause
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
