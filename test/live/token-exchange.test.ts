// oidc-provider gives tokens for applications in exchange for those of the users.

import assert from 'node:assert/strict'
import test from 'node:test'
import { OFFLINE, setUpLive } from '../kit/live/live-set-up.ts'
import { DUE_SECONDS, TOKEN_EXCHANGE, TOKEN_SECONDS } from '../kit/live/oidc-provider.ts'
import { startUpstream } from '../kit/upstream.ts'

const CLIENT = { id: 'gw-exchange', secret: 'exchange-secret' }

test('oidc-provider exchanges the token of a user once per application, and again after a refresh', async t => {
  const app = await startUpstream(t)
  const upstreamFor = (audience: string) => ({ url: app.url, accessToken: { audience, scope: 'openid profile' } })
  const { provider, person, passSeconds, lines } = await setUpLive(t, {
    client: CLIENT,
    registered: {
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code', 'refresh_token', TOKEN_EXCHANGE],
    },
    audiences: ['one', 'two'],
    env: OFFLINE.env,
    config: {
      ...OFFLINE.config,
      upstreams: { '/one': upstreamFor('one'), '/two': upstreamFor('two'), '/three': upstreamFor('three') },
    },
  })
  const alice = person()
  await alice.signIn()
  provider.calls.take()
  const tokenAt = async (path: string) => {
    assert.equal((await alice.get(path)).status, 200)
    return app.last().headers.authorization
  }
  const [one, two] = [await tokenAt('/one'), await tokenAt('/two')]
  assert.equal(await tokenAt('/one'), one)
  assert.notEqual(one, two)
  assert.deepEqual(provider.calls.take(), ['POST /token', 'POST /token'])
  const me = await fetch(`${provider.issuer}/me`, { headers: { authorization: String(one) } })
  assert.partialDeepStrictEqual(JSON.parse(await me.text()), { sub: 'alice' })
  const before = app.received.length
  assert.equal((await alice.get('/three')).status, 502)
  assert.equal(app.received.length, before)
  assert.equal(lines.at(-1)?.fields.reason, 'invalid_target')
  assert.ok(DUE_SECONDS < TOKEN_SECONDS)
  provider.calls.take()
  passSeconds(DUE_SECONDS)
  assert.notEqual(await tokenAt('/one'), one)
  assert.deepEqual(provider.calls.take().sort(), ['GET /me', 'POST /token', 'POST /token'])
  assert.deepEqual(provider.failures, [])
})
