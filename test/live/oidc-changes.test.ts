// What happens to a provider while users are signed in: it comes back with other keys, or is away.
import assert from 'node:assert/strict'
import test from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { OFFLINE, openLiveGateway, openLiveScene } from '../kit/live/live-scene.ts'
import { CLIENTS, DUE_SECONDS, newSigningKey, startOidcProvider, TOKEN_SECONDS } from '../kit/live/oidc-provider.ts'

test('a provider that comes back with new keys is believed at once', async t => {
  const [port, providerPort] = [await freePort(), await freePort()]
  const gateway = `http://localhost:${port}`
  const before = await startOidcProvider({ gateway, port: providerPort })
  const { person } = await openLiveGateway(t, { port, issuer: before.issuer, client: CLIENTS.basic })
  assert.match((await person().signIn()).text, /Alice Example/)
  await before.close()
  const keys = [newSigningKey('RS256', 'new')]
  const after = await startOidcProvider({ gateway, port: providerPort, configuration: { jwks: { keys } } })
  t.after(() => after.close())
  assert.match((await person().signIn()).text, /Alice Example/)
  assert.deepEqual(after.calls.take(), ['POST /token', 'GET /jwks', 'GET /me'])
})

test('while the provider is away, who is signed in stays so until the token ends, and can sign out', async t => {
  const { provider, person, passSeconds } = await openLiveScene(t, {
    ...OFFLINE,
    env: { ...OFFLINE.env, REFRESH_FAILURE: 'keep' },
  })
  const [alice, again] = [person(), person()]
  await alice.signIn()
  await again.signIn()
  await provider.close()
  passSeconds(DUE_SECONDS)
  assert.equal((await alice.get('/')).status, 200)
  const out = await alice.pressSignOut()
  assert.ok(out.headers.location?.startsWith(`${provider.issuer}/session/end?`))
  assert.equal((await alice.get('/')).headers.location, '/login')
  passSeconds(TOKEN_SECONDS)
  assert.equal((await again.get('/')).headers.location, '/login')
})
