// oidc-provider, the certified one, through the whole gateway: sign-in, refresh and sign-out, and what happens when the
// provider is away or comes back with other keys.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { type LiveSetUpOptions, OFFLINE, openLiveGateway, setUpLive } from '../kit/live/live-set-up.ts'
import {
  BOB,
  CLIENT_KEY_PEM,
  CLIENTS,
  DUE_SECONDS,
  newSigningKey,
  startOidcProvider,
  TOKEN_SECONDS,
} from '../kit/live/oidc-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

/** At the moment of a refresh. */
const REQUESTS = 100
/** The longest pause between two attempts to refresh is over. */
const PAUSE_SECONDS = 31
const SECRET = 'a text of thirty-two characters or more'

test('the first sign-in fetches the metadata and keys of the provider, and each later one takes two calls', async t => {
  const { provider, person, url } = await setUpLive(t)
  const alice = person()
  assert.equal((await alice.open('/')).url, `${url}/login`)
  const page = await alice.signIn()
  assert.deepEqual([page.url, page.status], [`${url}/`, 200])
  assert.match(page.text, /Alice Example/)
  const asked = provider.calls.take()
  assert.deepEqual(asked.sort(), ['GET /.well-known/openid-configuration', 'GET /jwks', 'GET /me', 'POST /token'])
  assert.match((await person(BOB).signIn()).text, /Bob Example/)
  assert.deepEqual(provider.calls.take(), ['POST /token', 'GET /me'])
  assert.deepEqual(provider.failures, [])
})

const WAYS: Record<string, (t: TestContext) => LiveSetUpOptions> = {
  'client_secret_basic and a secret with characters that need encoding': () => ({ client: CLIENTS.basic }),
  'client_secret_post and an id_token signed with ES256': () => ({
    client: CLIENTS.post,
    env: { CLIENT_AUTH: 'post' },
  }),
  'private_key_jwt and the key in CLIENT_KEY_FILE': t => ({
    client: CLIENTS.key,
    env: { CLIENT_KEY_FILE: keyFile(t), SECRET },
  }),
  'CLIENT_AUTH=none and PKCE only': () => ({ client: CLIENTS.none, env: { CLIENT_AUTH: 'none', SECRET } }),
}

for (const [way, wishes] of Object.entries(WAYS))
  test(`sign-in, refresh and sign-out work with ${way}`, async t => {
    const { env, ...rest } = wishes(t)
    const scene = await setUpLive(t, { ...OFFLINE, ...rest, env: { ...OFFLINE.env, ...env } })
    const { provider, person, passSeconds } = scene
    const alice = person()
    assert.equal((await alice.signIn()).status, 200)
    provider.calls.take()
    passSeconds(DUE_SECONDS)
    assert.equal((await alice.get('/')).status, 200)
    assert.deepEqual(provider.calls.take(), ['POST /token', 'GET /me'])
    assert.equal(new URL((await alice.signOut()).url).pathname, '/login')
    assert.deepEqual(provider.calls.take(), ['POST /token/revocation'])
    assert.equal((await alice.get('/')).headers.location, '/login')
    assert.deepEqual(provider.failures, [])
  })

test('a sign-in leads back to the requested path with its query', async t => {
  const { person, url } = await setUpLive(t)
  const alice = person()
  const deep = '/_menshen/account?x=%E4%B8%AD%20%2B%26&y=2'
  assert.equal((await alice.open(deep)).url, `${url}/login`)
  assert.equal((await alice.signIn()).url, url + deep)
})

test('a sign-out ends the session at the provider with an id_token_hint and returns the browser to /login', async t => {
  const { provider, person, url } = await setUpLive(t)
  const alice = person()
  await alice.signIn()
  alice.opened.length = 0
  const page = await alice.signOut()
  assert.equal(page.status, 200)
  const [, ended = ''] = alice.opened
  const { searchParams } = new URL(ended)
  assert.ok(ended.startsWith(`${provider.issuer}/session/end?`))
  assert.equal(searchParams.get('post_logout_redirect_uri'), `${url}/login`)
  assert.equal(searchParams.get('id_token_hint')?.split('.').length, 3)
  const back = new URL(page.url)
  assert.deepEqual(
    [back.origin + back.pathname, back.searchParams.get('state')],
    [`${url}/login`, searchParams.get('state')],
  )
  // The session at the provider is over as well: it asks for the password again.
  alice.opened.length = 0
  await alice.signIn()
  assert.ok(alice.opened.filter(address => address.includes('/interaction/')).length > 0)
})

test('a sign-out revokes the refresh token, or the access token if there is no refresh token', async t => {
  const [online, offline] = [await setUpLive(t), await setUpLive(t, OFFLINE)]
  for (const { person } of [online, offline]) {
    const alice = person()
    await alice.signIn()
    await alice.signOut()
  }
  assert.deepEqual(online.provider.revoked, ['access token'])
  assert.deepEqual(offline.provider.revoked, ['refresh token'])
})

test('a user who signs out at the provider is signed out of that device only', async t => {
  const { provider, person, events } = await setUpLive(t)
  const [laptop, phone] = [person(), person()]
  await laptop.signIn()
  await phone.signIn()
  await laptop.leaveProvider(provider.signOutPage)
  await until(() => events().includes('session_ended'))
  assert.equal((await laptop.get('/')).headers.location, '/login')
  assert.equal((await phone.get('/')).status, 200)
  assert.deepEqual(provider.failures, [])
})

test('a group from the provider gives its members the developer role and admits them to a page for the group, and other users get 403', async t => {
  const { person } = await setUpLive(t, {
    env: { SCOPE: 'openid profile email groups' },
    config: {
      roles: [{ role: 'developer', groups: ['admins'] }],
      rules: [{ path: '/', groups: ['staff'] }],
    },
  })
  const [alice, bob] = [person(), person(BOB)]
  await alice.signIn()
  await bob.signIn()
  for (const path of ['/_menshen/console', '/']) {
    assert.equal((await alice.get(path)).status, 200, path)
    assert.equal((await bob.get(path)).status, 403, path)
  }
})

test('a user who leaves a group at the provider loses its role when the next refresh is due', async t => {
  const groups = ['admins']
  const findAccount = (_: unknown, id: string) => ({
    accountId: id,
    claims: () => ({ sub: id, name: 'Alice', groups }),
  })
  const { person, provider, passSeconds, lines } = await setUpLive(t, {
    env: OFFLINE.env,
    config: { ...OFFLINE.config, roles: [{ role: 'developer', groups: ['admins'] }] },
    configuration: { findAccount },
  })
  const alice = person()
  await alice.signIn()
  assert.equal((await alice.get('/_menshen/console')).status, 200)
  groups[0] = 'staff'
  assert.equal((await alice.get('/_menshen/console')).status, 200)
  provider.calls.take()
  passSeconds(DUE_SECONDS)
  assert.equal((await alice.get('/_menshen/console')).status, 403)
  assert.equal(provider.calls.take().filter(call => call === 'GET /me').length, 1)
  const changes = lines.filter(({ event }) => event === 'identity_changed').map(({ fields }) => fields.changed)
  assert.deepEqual(changes, ['role, groups'])
})

test('sign-in works with user info that the provider signs', async t => {
  const { person, provider } = await setUpLive(t, { client: CLIENTS.signed })
  assert.match((await person().signIn()).text, /Alice Example/)
  assert.deepEqual(provider.failures, [])
})

test('a wrong client secret leads to token_error and no session', async t => {
  const { person, provider } = await setUpLive(t, { client: { id: CLIENTS.basic.id, secret: 'wrong' } })
  const alice = person()
  assert.equal(new URL((await alice.signIn()).url).search, '?error=token_error')
  assert.deepEqual(
    provider.calls.take().filter(call => call !== 'POST /token'),
    ['GET /.well-known/openid-configuration'],
  )
  assert.equal((await alice.get('/')).headers.location, '/login')
  assert.deepEqual(provider.failures, [])
})

test('a hundred parallel requests share one refresh when it is due, three times in a row, and all of them succeed', async t => {
  const { provider, person, passSeconds } = await setUpLive(t, OFFLINE)
  const alice = person()
  await alice.signIn()
  for (const round of ['with the first refresh token', 'with the one that took its place', 'and with the third']) {
    provider.calls.take()
    passSeconds(DUE_SECONDS)
    const pages = await Promise.all(Array.from({ length: REQUESTS }, () => alice.get('/')))
    assert.deepEqual(new Set(pages.map(({ status }) => status)), new Set([200]), round)
    assert.deepEqual(provider.calls.take(), ['POST /token', 'GET /me'], round)
  }
  assert.deepEqual(provider.revoked, [])
  assert.deepEqual(provider.failures, [])
})

test('a user whose consent was withdrawn at the provider is signed out when the next refresh is due', async t => {
  const { provider, person, passSeconds, lines } = await setUpLive(t, OFFLINE)
  const alice = person()
  await alice.signIn()
  await provider.withdrawGrants()
  assert.equal((await alice.get('/')).status, 200)
  passSeconds(DUE_SECONDS)
  assert.equal((await alice.get('/')).headers.location, '/login')
  assert.ok(lines.some(({ event, fields }) => event === 'session_refresh_failed' && 'outcome' in fields))
})

test('without a refresh token a session lasts as long as its access token', async t => {
  const { provider, person, passSeconds } = await setUpLive(t)
  const alice = person()
  await alice.signIn()
  provider.calls.take()
  passSeconds(TOKEN_SECONDS - 1)
  assert.equal((await alice.get('/')).status, 200)
  passSeconds(2)
  assert.equal((await alice.get('/')).headers.location, '/login')
  assert.deepEqual(provider.calls.take(), [])
})

test('a sign-in after the provider restarts with new keys fetches them once and succeeds', async t => {
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

test('while the provider is down, a due session is served, sign-out works, and an expired token gets 503 until the provider is back', async t => {
  const { provider, person, passSeconds } = await setUpLive(t, {
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
  const page = await again.get('/')
  assert.deepEqual([page.status, page.setCookies], [503, []])
  const server = createServer(provider.listener).listen(Number(new URL(provider.issuer).port), '127.0.0.1')
  t.after(() => server.close())
  passSeconds(PAUSE_SECONDS)
  assert.match((await again.get('/')).text, /Alice Example/)
})

function keyFile(t: TestContext): string {
  const file = join(tempFolder(t), 'client-key.pem')
  writeFileSync(file, CLIENT_KEY_PEM)
  return file
}
