// better-auth: an issuer with a path, id_tokens signed by EdDSA, refresh tokens that rotate, and no nonce in what it refreshes.
import assert from 'node:assert/strict'
import test from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { CAROL, CLIENT, startBetterAuth, TOKEN_SECONDS } from '../kit/live/better-auth.ts'
import { openLiveGateway } from '../kit/live/live-set-up.ts'

test('sign-in, refresh and sign-out work with better-auth', async t => {
  const port = await freePort()
  const provider = await startBetterAuth(`http://localhost:${port}`)
  if (!provider) return t.skip('better-auth cannot be installed: there is no way to the npm registry.')
  t.after(() => provider.close())
  const { person, passSeconds, url } = await openLiveGateway(t, {
    port,
    issuer: provider.issuer,
    client: CLIENT,
    env: { SCOPE: 'openid profile email offline_access groups', REVOKE: 'always' },
  })
  const carol = person(CAROL)
  assert.match((await carol.signIn()).text, /Carol Example/)
  assert.deepEqual(provider.calls.take(), [
    'GET /api/auth/.well-known/openid-configuration',
    'POST /api/auth/oauth2/token',
    'GET /api/auth/jwks',
    'GET /api/auth/oauth2/userinfo',
  ])

  for (const round of ['with the first refresh token', 'with the one that took its place']) {
    passSeconds(TOKEN_SECONDS / 2 + 1)
    assert.equal((await carol.get('/')).status, 200, round)
    assert.deepEqual(provider.calls.take(), ['POST /api/auth/oauth2/token', 'GET /api/auth/oauth2/userinfo'], round)
  }

  const out = new URL((await carol.signOut()).url)
  assert.equal(out.origin + out.pathname, `${url}/login`)
  assert.deepEqual(provider.calls.take(), ['POST /api/auth/oauth2/revoke'])
  assert.equal((await carol.get('/')).headers.location, '/login')
})
