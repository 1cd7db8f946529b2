// Puts our cookies on an answer of the application, whatever its type, and makes sure that no shared cache keeps it.

import type { ServerResponse } from 'node:http'
import { CACHE_HEADERS, SHARED_CACHE_HEADERS } from '../util/header-names.ts'

/** Where cookies can be put: a response of node:http, headers, or a Response whose headers can be changed. */
export type AnswerWithCookies =
  | Pick<ServerResponse, 'getHeader' | 'setHeader' | 'headersSent'>
  | Headers
  | { readonly headers: Headers }

/**
 * Sets the cookies and `cache-control: no-store`. On a response of node:http they are set once more when its head is
 * written, so that no header of the application replaces them. An answer whose head has been sent is not changed.
 */
export function addCookies(answer: AnswerWithCookies, cookies: readonly string[]): void {
  if (cookies.length === 0) return
  if ('setHeader' in answer) addToResponse(answer, cookies)
  else addToHeaders('getSetCookie' in answer ? answer : answer.headers, cookies)
}

function addToHeaders(headers: Headers, cookies: readonly string[]): void {
  const kept = without(headers.getSetCookie(), cookies)
  headers.delete('set-cookie')
  for (const cookie of [...kept, ...cookies]) headers.append('set-cookie', cookie)
  for (const name of SHARED_CACHE_HEADERS) headers.delete(name)
  headers.set('cache-control', 'no-store')
}

type NodeResponse = Pick<ServerResponse, 'getHeader' | 'setHeader' | 'headersSent'> &
  Partial<Pick<ServerResponse, 'removeHeader' | 'writeHead'>> & {
    readonly stream?: unknown
    [PENDING]?: readonly string[]
  }

/** The cookies that are set when the head of a response is written. */
const PENDING = Symbol('pending cookies')

function addToResponse(response: NodeResponse, cookies: readonly string[]): void {
  if (response.headersSent) return
  // A wrapper around the response inherits its properties.
  const pending = Object.hasOwn(response, PENDING) ? response[PENDING] : undefined
  const all = pending ? [...without(pending, cookies), ...cookies] : cookies
  Object.defineProperty(response, PENDING, { value: all, writable: true, configurable: true })
  setOn(response, response.getHeader('set-cookie'), all)
  if (pending) return
  setWithHead(response)
  setWithStream(response)
}

function setOn(response: NodeResponse, theirs: unknown, cookies: readonly string[]): void {
  response.setHeader('set-cookie', [...without(texts(theirs), cookies), ...cookies])
  for (const name of SHARED_CACHE_HEADERS) response.removeHeader?.(name)
  response.setHeader('cache-control', 'no-store')
}

/** `writeHead` is called for every head, by Node itself where the application does not. Its headers override earlier ones. */
function setWithHead(response: NodeResponse): void {
  const { writeHead } = response
  if (!writeHead) return
  Object.assign(response, {
    writeHead(...args: unknown[]) {
      if (response.headersSent) return Reflect.apply(writeHead, response, args)
      const given = typeof args[1] === 'string' ? args[2] : (args[2] ?? args[1])
      const theirs = valuesIn(given, 'set-cookie')
      setOn(response, theirs.length > 0 ? theirs : response.getHeader('set-cookie'), response[PENDING] ?? [])
      const rest = args.map(arg => (arg === given ? withoutOurs(arg) : arg))
      return Reflect.apply(writeHead, response, rest)
    },
  })
}

/** Node does not call `writeHead` for the head of an HTTP/2 response that the application leaves to it. */
function setWithStream(response: NodeResponse): void {
  const { stream } = response
  const { respond } = Object(stream)
  if (typeof respond !== 'function') return
  Object.assign(Object(stream), {
    respond(headers: Record<string, unknown> = {}, ...rest: unknown[]) {
      const cookies = response[PENDING] ?? []
      headers['set-cookie'] = [...without(texts(headers['set-cookie']), cookies), ...cookies]
      for (const name of SHARED_CACHE_HEADERS) delete headers[name]
      headers['cache-control'] = 'no-store'
      return Reflect.apply(respond, stream, [headers, ...rest])
    },
  })
}

/** Headers as `writeHead` takes them: an object, names and values in turn, or pairs of them. */
function valuesIn(given: unknown, wanted: string): string[] {
  return entriesOf(given).flatMap(([name, value]) => (name.toLowerCase() === wanted ? texts(value) : []))
}

function withoutOurs(given: unknown): unknown {
  if (typeof given !== 'object' || given === null) return given
  const kept = entriesOf(given).filter(
    ([name]) => name.toLowerCase() !== 'set-cookie' && !CACHE_HEADERS.has(name.toLowerCase()),
  )
  return Array.isArray(given) ? kept.flat() : Object.fromEntries(kept)
}

function entriesOf(given: unknown): [name: string, value: unknown][] {
  if (!Array.isArray(given)) return Object.entries(Object(given))
  if (given.every(pair => Array.isArray(pair))) return given.map(([name, value]) => [String(name), value])
  return Array.from({ length: Math.ceil(given.length / 2) }, (_, n) => [String(given[2 * n]), given[2 * n + 1]])
}

function texts(value: unknown): string[] {
  return [value ?? []].flat().map(String)
}

/** Each cookie is set once. */
function without(before: readonly string[], cookies: readonly string[]): string[] {
  const names = cookies.map(nameOf)
  return before.filter(cookie => !names.includes(nameOf(cookie)))
}

function nameOf(cookie: string): string {
  return cookie.slice(0, cookie.indexOf('='))
}
