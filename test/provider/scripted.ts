// A provider of a sheet: it answers exactly as the sheet says, and writes down exactly what it was sent. Every https address
// of the sheet lives on one loopback port, with its host as the first part of the path.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { exportJWK, type JWTPayload, SignJWT } from 'jose'
import { type ProviderPlan, planNamedProvider } from '../../src/provider/plan.ts'

import { createProvider, type Provider } from '../../src/provider/provider.ts'
import { takeRs256Pair } from '../kit/rsa-keys.ts'
import { BASE_URL, CLIENT_ID, CLIENT_SECRET, type Reply, type Sent, type Sheet } from './sheet.ts'

export const NOW = Date.UTC(2026, 10, 15)
const KEY = takeRs256Pair()
const JWK = { ...(await exportJWK(KEY.publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }

export interface Scripted {
  readonly provider: Provider
  /** What was sent since the last time that somebody asked. */
  sent(): Sent[]
  /** The next call gets this answer. */
  next(reply: Reply): void
  /** A loopback address as the sheet would write it. */
  asWritten(address: string): string
}

export async function startScripted(t: TestContext, preset: string, sheet: Sheet): Promise<Scripted> {
  const calls: Sent[] = []
  const replies: Reply[] = []
  const server = createServer(take).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const local = (written: string) => written.replaceAll('https://', origin)
  const asWritten = (address: string) => address.replaceAll(origin, 'https://')

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await readSent(request)
    const address = `https://${sent.call.replace(/^\w+ /, '')}`
    if (address === `${sheet.issuer}/.well-known/openid-configuration`) return answer(sheet.metadata)
    if (address === sheet.metadata?.jwks_uri) return answer({ keys: [JWK] })
    calls.push(sent)
    const reply = replies.shift() ?? sheet.replies[sent.call]
    return reply ? answer(reply.body, reply) : answer({ error: `nothing is at ${sent.call}` }, { status: 404 })

    async function answer(body: unknown, { status = 200, type = 'application/json' }: Partial<Reply> = {}) {
      const plain = typeof body === 'string' ? body : JSON.stringify(body)
      const filled = plain.replace('@id_token', plain.includes('@id_token') ? await idToken() : '')
      response.writeHead(status, { 'content-type': type }).end(local(filled))
    }
  }

  function idToken(): Promise<string> {
    const seconds = NOW / 1000
    const claims: JWTPayload = { iss: sheet.metadata?.issuer ?? '', aud: CLIENT_ID, iat: seconds, exp: seconds + 600 }
    const given: JWTPayload = { ...claims, nonce: 'the-nonce', ...sheet.claims }
    return new SignJWT({ ...given, iss: local(given.iss ?? '') })
      .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
      .sign(KEY.privateKey)
  }

  const config = { preset, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, ...sheet.config }
  const plan = moved(planNamedProvider('scene', config), local)
  assert.deepEqual(plan.missing, [])
  const provider = createProvider(plan, {
    settings: { BASE_URL, LOGIN_PATH: '/login', PROVIDER_TIMEOUT_MS: 5000, PROVIDER_PARALLEL_CALLS: 4 },
    now: () => NOW,
    report: () => {},
  })
  t.after(async () => {
    await provider.close()
    server.close()
    server.closeAllConnections()
  })
  return { provider, sent: () => calls.splice(0), next: reply => replies.push(reply), asWritten }
}

/** The same plan with its addresses on the loopback port. */
function moved(plan: ProviderPlan, local: (written: string) => string): ProviderPlan {
  const endpoints = Object.entries(plan.endpoints).map(([name, url]) => [name, url && local(url)])
  return {
    ...plan,
    issuer: plan.issuer && local(plan.issuer),
    alsoIssuers: plan.alsoIssuers.map(local),
    endpoints: Object.fromEntries(endpoints),
    emailStep: plan.emailStep && { ...plan.emailStep, url: local(plan.emailStep.url) },
  }
}

/** Headers that every HTTP client sends, and those that every call of ours must have. */
const USUAL = ['host', 'connection', 'accept-language', 'accept-encoding', 'sec-fetch-mode', 'content-length']

async function readSent(request: IncomingMessage): Promise<Sent> {
  const { pathname, searchParams } = new URL(`http://provider${request.url}`)
  const body = await text(request)
  const headers = { ...request.headers }
  for (const name of USUAL) delete headers[name]
  const { authorization, accept, 'user-agent': agent, 'content-type': type = '', ...extra } = headers
  assert.equal(accept, 'application/json')
  assert.equal(agent, 'menshen')
  return {
    call: `${request.method} ${pathname.slice(1)}`,
    ...(authorization ? { auth: readable(authorization) } : {}),
    ...(searchParams.size > 0 ? { query: Object.fromEntries(searchParams) } : {}),
    ...(type.startsWith('application/x-www-form-urlencoded')
      ? { form: Object.fromEntries(new URLSearchParams(body)) }
      : {}),
    ...(type.startsWith('application/json') ? { json: JSON.parse(body) } : {}),
    ...(Object.keys(extra).length > 0
      ? { headers: Object.fromEntries(Object.entries(extra).map(([name, value]) => [name, String(value)])) }
      : {}),
  }
}

function readable(authorization: string): string {
  const [scheme, given = ''] = authorization.split(' ')
  return scheme === 'Basic' ? `Basic ${Buffer.from(given, 'base64')}` : authorization
}
