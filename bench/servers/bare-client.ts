// The fastest that a sign-in or a refresh can be in plain Node: the same calls to the provider, as Menshen makes them, over a
// new connection for each sign-in or refresh, their answers read, and the same answer to every request.
// `node bench/servers/bare-client.ts PORT FILE PROVIDER sign-in|refresh`, where the file has what `bare-twin.ts` recorded.

import { createServer } from 'node:http'
import { Client } from 'undici'
import { CLIENT_SECRET } from './client-secret.ts'
import { readRecorded } from './recorded-answer.ts'

const [port = '', file = '', provider = '', kind = ''] = process.argv.slice(2)
const { status, rawHeaders, body, keepAliveMs } = readRecorded(file)
/** Created once: undici would create one with a stack for each connection. */
const OVER = new Error('the calls are over')
let number = 0

const server = createServer(async (_request, response) => {
  const client = new Client(provider)
  if (kind === 'sign-in') await signIn(client)
  else await refresh(client)
  client.destroy(OVER, () => {})
  response.writeHead(status, rawHeaders)
  response.end(body)
})
server.keepAliveTimeout = keepAliveMs
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))

async function signIn(client: Client): Promise<void> {
  const { access_token } = await askForTokens(client, {
    grant_type: 'authorization_code',
    code: 'user',
    redirect_uri: '/callback',
  })
  const headers = { authorization: `Bearer ${access_token}`, accept: 'application/json' }
  const { body } = await client.request({ method: 'GET', path: '/api/bff/v1.2/oauth2/userinfo', headers })
  await body.json()
}

async function refresh(client: Client): Promise<void> {
  await askForTokens(client, { grant_type: 'refresh_token', refresh_token: `user.bare-${number++}` })
}

async function askForTokens(client: Client, form: Record<string, string>): Promise<{ access_token: string }> {
  const body = new URLSearchParams({ ...form, client_id: 'bench', client_secret: CLIENT_SECRET }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  const answer = await client.request({ method: 'POST', path: '/oauth/token', headers, body })
  if (answer.statusCode !== 200) throw new Error(`the provider answered ${answer.statusCode}`)
  return (await answer.body.json()) as { access_token: string }
}
