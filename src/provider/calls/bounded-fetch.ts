// Calls to the provider: a deadline that includes the body, a size limit, no redirects. A call has a connection of its own;
// those of one sign-in can follow one another over the same one.
import type { LookupFunction } from 'node:net'
import { buildConnector, Client } from 'undici'
import { MenshenError } from '../../errors.ts'
import { phrase, phrasedError, phraseIn } from '../../phrases.ts'
import { type Deadline, startDeadline } from './call-deadline.ts'
import { sendAndRead, type WholeAnswer } from './whole-answer.ts'

/** Some providers refuse whoever does not say who it is. */
export const USER_AGENT = 'menshen'

/** A status and what was read of the body: `undefined` where it is not JSON. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** The request could not have arrived: sending it again cannot do anything twice. */
export class NeverArrived extends MenshenError {
  constructor(code: string, cause: unknown) {
    const said = phrase('no_connection_made', { code })
    super('provider_unreachable', phraseIn('en', said), cause, said)
  }
}

/** Header names in small letters. */
export interface CallInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: URLSearchParams | string
}

/** What it returns has been read completely and within the limits. */
export type BoundedFetch = (url: string, init?: CallInit) => Promise<WholeAnswer>

/** Calls for one user, one after the other. Nobody else's words ever pass over its connections. */
export interface Conversation extends Disposable {
  readonly fetch: BoundedFetch
}

export interface BoundedCalls {
  /** Over a connection of its own. */
  readonly fetch: BoundedFetch
  converse(): Conversation
  close(): void
}

/** `lookup` can refuse where a name leads, each time that a connection is opened. */
export function createBoundedFetch(timeoutMs: number, lookup?: LookupFunction): BoundedCalls {
  // One connector for all, so that a TLS session can be resumed. With HTTP/2, requests of several users could meet. It has a
  // deadline of its own, because undici leaves a socket alone that is still connecting when its client is destroyed.
  const connect = buildConnector({ timeout: timeoutMs, keepAlive: false, allowH2: false, ...(lookup && { lookup }) })
  const open = new Set<Conversation>()

  function converse(): Conversation {
    /** By origin: another host, port or scheme has to prove itself anew. */
    const kept = new Map<string, Client>()
    const clients = new Set<Client>()

    function connectTo(origin: string): Client {
      const client = new Client(origin, { connect, headersTimeout: 0, bodyTimeout: 0 })
      clients.add(client)
      kept.set(origin, client)
      return client
    }

    const conversation: Conversation = {
      async fetch(url, init = {}) {
        const { origin, pathname, search } = new URL(url)
        const { method = 'GET', body = null } = init
        const request = {
          path: pathname + search,
          method,
          headers: { 'user-agent': USER_AGENT, accept: 'application/json', ...typeOf(body), ...init.headers },
          body: body === null ? null : String(body),
        }
        const deadline = startDeadline(timeoutMs)
        const send = (client: Client) => sendAndRead(client, request, deadline)
        // The provider may just have closed it, and nobody can tell whether a request arrived. What changes something
        // there, a code above all, is not sent over it.
        const used = method === 'GET' ? kept.get(origin) : undefined
        try {
          const again = () => send(connectTo(origin))
          return await (used ? send(used).catch(error => retry(error, deadline, again)) : again())
        } catch (error) {
          throw deadline.passed ?? asMenshenError(error)
        } finally {
          deadline.clear()
        }
      },

      [Symbol.dispose]() {
        open.delete(conversation)
        for (const client of clients) client.destroy(OVER, () => {})
      },
    }
    open.add(conversation)
    return conversation
  }

  return {
    converse,
    async fetch(url, init) {
      using conversation = converse()
      return await conversation.fetch(url, init)
    },
    close() {
      for (const conversation of open) conversation[Symbol.dispose]()
    },
  }
}

function typeOf(body: CallInit['body'] | null): Record<string, string> {
  return body instanceof URLSearchParams ? { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' } : {}
}

/** Only where the connection broke: what the provider has answered stands. */
function retry<T>(error: unknown, { passed }: Deadline, again: () => Promise<T>): Promise<T> {
  if (passed || error instanceof MenshenError) throw error
  return again()
}

/** Made once: undici would make one with its stack for each connection that it closes. */
const OVER = new Error('the conversation is over')

export async function readAnswer(response: WholeAnswer): Promise<Answer> {
  const type = response.headers.get('content-type') ?? ''
  const text = decode(await response.bytes())
  const body = text === undefined ? undefined : (readJson(text) ?? readForm(text, type))
  return { status: response.status, body }
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const LARGE_NUMBER = /\d{16}/
/** No answer has so many lists and objects; one that nests them may be too deep for whoever looks at it later. */
const MOST_OPENED = 1000

/** A whole number that is too large for a number stays the text that it is: it is somebody's id. */
export function readJson(text: string): unknown {
  try {
    // To look at every value takes five times as long, and hardly any answer has such a number. It throws where it is too deep.
    if (!LARGE_NUMBER.test(text) && openedIn(text) <= MOST_OPENED) return JSON.parse(text)
    return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown)
  } catch {
    return undefined
  }
}

function openedIn(text: string): number {
  return (text.match(/[[{]/g) ?? []).length
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
  if (BEFORE_SENDING.has(code)) return new NeverArrived(code, error)
  return phrasedError('provider_unreachable', phrase('connection_broke', { code }), error)
}

function innermostCode(error: unknown): string {
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] }
  if (cause !== undefined) return innermostCode(cause)
  if (errors?.[0] !== undefined) return innermostCode(errors[0])
  return typeof code === 'string' ? code : 'unknown'
}
