// The provider's own session id: taken from an ID token that holds, and from no other; it ends one device and no more.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { exportJWK, SignJWT } from 'jose'
import { readSettings } from '../../src/config/read.ts'
import { planProvider } from '../../src/provider/plan.ts'
import { createProvider } from '../../src/provider/provider.ts'
import { createScene, START, signedIn, tokens } from '../faults/doubles.ts'
import { takeRsaPair } from '../kit/rsa-keys.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { CLIENT_ID, CLIENT_SECRET } from '../kit/strict-provider.ts'
import { startUpstream } from '../kit/upstream.ts'

const ISSUER = 'https://idp.example.com'
const SECONDS = START / 1000
const ours = takeRsaPair()
const stranger = takeRsaPair()

async function openProvider(t: TestContext, env: Record<string, string> = {}) {
  const scripted = await openScriptedProvider(t)
  const jwk = { ...(await exportJWK(ours.publicKey)), kid: 'key-1', alg: 'RS256', use: 'sig' }
  const keys = await startUpstream(t, (_, response) => void response.end(JSON.stringify({ keys: [jwk] })))
  const events: string[] = []
  const settings = readSettings({
    AUTH_URL: scripted.url,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    JWKS_URL: `${keys.url}/keys`,
    ...env,
  })
  const provider = createProvider(planProvider(undefined, settings), {
    settings,
    now: () => START,
    report: event => void events.push(event),
  })
  t.after(() => provider.close())
  const redeem = (idToken: unknown) => {
    scripted.behaviour.extras = { id_token: idToken }
    return provider.redeem({ code: scripted.codeFor(), state: 'state_idp' })
  }
  return { redeem, events, keys }
}

const idToken = (claims: Record<string, unknown> = {}, key = ours.privateKey) =>
  new SignJWT({ iss: ISSUER, aud: CLIENT_ID, sub: '1', iat: SECONDS, exp: SECONDS + 300, sid: 'device-1', ...claims })
    .setProtectedHeader({ alg: 'RS256', kid: 'key-1' })
    .sign(key)

test('the provider session id comes from an ID token that the provider signed for this client', async t => {
  const { redeem, events } = await openProvider(t)
  assert.deepEqual((await redeem(await idToken())).providerSession, { issuer: ISSUER, sid: 'device-1' })
  assert.equal((await redeem(await idToken({ sid: undefined }))).providerSession, undefined)
  assert.deepEqual(events, [])
})

test('an invalid ID token gives no provider session id and does not prevent the sign-in', async t => {
  const { redeem, events } = await openProvider(t)
  const wrong = [
    await idToken({ iss: 'https://evil.example' }),
    await idToken({ aud: 'another' }),
    await idToken({ exp: SECONDS - 3600 }),
    await idToken({ exp: undefined }),
    await idToken({}, stranger.privateKey),
    'a.b.c',
    '',
  ]
  for (const token of wrong) {
    const { accessToken, providerSession } = await redeem(token)
    assert.match(accessToken, /^at-/)
    assert.equal(providerSession, undefined)
  }
  assert.deepEqual(new Set(events), new Set(['id_token_unusable']))
  for (const odd of [await idToken({ sid: 1 }), await idToken({ sid: '' }), 7, null])
    assert.equal((await redeem(odd)).providerSession, undefined)
})

test('without ISSUER, an ID token gives no provider session id, and no keys are fetched', async t => {
  const { redeem, keys } = await openProvider(t, { ISSUER: '' })
  assert.equal((await redeem(await idToken())).providerSession, undefined)
  assert.equal(keys.received.length, 0)
})

test('ending a provider session ends only the session of that device, also after a refresh', async () => {
  const scene = createScene()
  const sessions = scene.instance('one')
  const open = async (issuer: string, sid: string) =>
    (await sessions.open(signedIn({ ...tokens('first', scene.now()), providerSession: { issuer, sid } }))).ticket
  const device = await open(ISSUER, 'device-1')
  const other = await open(ISSUER, 'device-2')
  const elsewhere = await open('https://another.example', 'device-1')
  const { ticket: without } = await sessions.open(signedIn(tokens('first')))
  scene.pass(7_000_000)
  const page = sessions.getFresh(device)
  ;(await scene.call(1)).give(tokens('second'))
  await page
  assert.equal((await sessions.endProviderSession({ issuer: ISSUER, sid: 'device-1' })).count, 1)
  assert.equal(await sessions.get(device), undefined)
  for (const ticket of [other, elsewhere, without]) assert.ok(await sessions.get(ticket))
  assert.equal((await sessions.endProviderSession({ issuer: ISSUER, sid: 'device-1' })).count, 0)
})
