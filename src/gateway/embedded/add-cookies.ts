// Puts our cookies on an answer of the application, whichever kind of answer it is.
import type { ServerResponse } from 'node:http'

/** Where cookies can be put: a response of node:http, headers, or a Response whose headers can be changed. */
export type AnswerWithCookies =
  | Pick<ServerResponse, 'getHeader' | 'setHeader' | 'headersSent'>
  | Headers
  | { readonly headers: Headers }

/** Nobody else may be given an answer that brings a cookie, so it is not kept anywhere. What is on its way stays as it is. */
export function addCookies(answer: AnswerWithCookies, cookies: readonly string[]): void {
  if (cookies.length === 0) return
  if ('setHeader' in answer) addToResponse(answer, cookies)
  else addToHeaders('getSetCookie' in answer ? answer : answer.headers, cookies)
}

function addToHeaders(headers: Headers, cookies: readonly string[]): void {
  const kept = without(headers.getSetCookie(), cookies)
  headers.delete('set-cookie')
  for (const cookie of [...kept, ...cookies]) headers.append('set-cookie', cookie)
  headers.set('cache-control', 'no-store')
}

function addToResponse(
  response: Pick<ServerResponse, 'getHeader' | 'setHeader' | 'headersSent'>,
  cookies: readonly string[],
): void {
  if (response.headersSent) return
  const before = [response.getHeader('set-cookie') ?? []].flat().map(String)
  response.setHeader('set-cookie', [...without(before, cookies), ...cookies])
  response.setHeader('cache-control', 'no-store')
}

/** Whoever asks twice gets each cookie once. */
function without(before: readonly string[], cookies: readonly string[]): string[] {
  const names = cookies.map(nameOf)
  return before.filter(cookie => !names.includes(nameOf(cookie)))
}

function nameOf(cookie: string): string {
  return cookie.slice(0, cookie.indexOf('='))
}
