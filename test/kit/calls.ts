// What a provider was asked.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

/** `token` redeems a code and `refresh` refreshes, though both are POST /oauth/token. */
export type Endpoint = 'authorize' | 'token' | 'refresh' | 'userinfo' | 'logout' | 'unknown'

export interface Call {
  endpoint: Endpoint
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingHttpHeaders
  body: string
  /** The body read as a form. */
  form: URLSearchParams
  /** When its last byte arrived, in milliseconds since the Unix epoch. */
  at: number
}

const ENDPOINTS: Record<string, Endpoint> = {
  'GET /oauth/authorize': 'authorize',
  'POST /oauth/token': 'token',
  'GET /api/bff/v1.2/oauth2/userinfo': 'userinfo',
  'GET /oauth/logout': 'logout',
  'POST /oauth/logout': 'logout',
}

export async function readCall(request: IncomingMessage): Promise<Call> {
  const { method = '', headers, url = '' } = request
  const { pathname: path, searchParams: query } = new URL(`http://provider${url}`)
  const body = await text(request)
  const form = new URLSearchParams(body)
  const place = ENDPOINTS[`${method} ${path}`] ?? 'unknown'
  const endpoint = place === 'token' && form.get('grant_type') === 'refresh_token' ? 'refresh' : place
  return { endpoint, method, path, query, headers, body, form, at: Date.now() }
}
