// Tokens of machines, which only the provider can read: it is asked what they are (RFC 7662).
import assert from 'node:assert/strict'
import test from 'node:test'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { createProvider } from '../../src/provider/provider.ts'
import { CLIENTS, startOidcProvider } from '../kit/live/oidc-provider.ts'

const BASE_URL = 'http://localhost:3000'

test('introspection at oidc-provider returns the client of a valid token, and active: false for a made-up one', async t => {
  const { issuer, close } = await startOidcProvider({ gateway: BASE_URL })
  t.after(close)
  const { id: clientId, secret: clientSecret } = CLIENTS.basic
  const plan = planNamedProvider('live', { preset: 'oidc', vars: { auth_url: issuer }, clientId, clientSecret })
  const provider = createProvider(plan, {
    settings: { BASE_URL, LOGIN_PATH: '/login', PROVIDER_TIMEOUT_MS: 5000, PROVIDER_PARALLEL_CALLS: 4 },
    now: Date.now,
    report: () => {},
  })
  t.after(() => provider.close())
  const said = await provider.introspect(await machineToken(issuer))
  assert.partialDeepStrictEqual(said, { active: true, client_id: CLIENTS.post.id, token_type: 'Bearer' })
  assert.deepEqual(await provider.introspect('made-up'), { active: false })
})

async function machineToken(issuer: string): Promise<string> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: CLIENTS.post.id,
    client_secret: CLIENTS.post.secret,
  })
  const response = await fetch(`${issuer}/token`, { method: 'POST', body })
  const { access_token }: { access_token: string } = JSON.parse(await response.text())
  return access_token
}
