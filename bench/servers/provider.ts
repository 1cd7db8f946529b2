// A fast identity provider: `node bench/servers/provider.ts PORT EXPIRES_IN REFRESHED_EXPIRES_IN`. A code signs in the user whom it
// names, with a token that lives for EXPIRES_IN seconds. A refresh token is valid once; any that was not used yet is accepted.
// GET /refreshes returns the number of refresh requests.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { newToken, userInfoOf, usernameOf } from './users.ts'

const [port, expiresIn, refreshedExpiresIn] = process.argv.slice(2).map(Number)
const used = new Set<string>()
let refreshes = 0

createServer(async (request, response) => {
  if (request.url === '/oauth/token') return sendJson(response, ...grant(new URLSearchParams(await text(request))))
  if (request.url === '/refreshes') return sendJson(response, 200, { refreshes })
  sendJson(response, 200, { success: true, code: '200', data: userInfoOf(usernameOf(bearerOf(request))) })
}).listen(port, '127.0.0.1', () => process.stdout.write('ready\n'))

function grant(form: URLSearchParams): [status: number, body: object] {
  const code = form.get('code')
  if (code !== null) return [200, newTokens(code, expiresIn)]
  refreshes++
  const token = form.get('refresh_token') ?? ''
  if (used.has(token)) return [400, { error: 'invalid_grant' }]
  used.add(token)
  return [200, newTokens(usernameOf(token), refreshedExpiresIn)]
}

function newTokens(username: string, expires_in: number | undefined): object {
  return { access_token: newToken(username), token_type: 'bearer', refresh_token: newToken(username), expires_in }
}

function bearerOf({ headers }: IncomingMessage): string {
  return headers.authorization?.replace(/^bearer /i, '') ?? ''
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
