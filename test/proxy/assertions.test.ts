// Each application gets assertions of its own: what one was told is of no use at another.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { join } from 'node:path'
import test from 'node:test'
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import { checkConfig } from '../../src/config/file.ts'
import { readSettings } from '../../src/config/read.ts'
import type { Caller } from '../../src/http/caller.ts'
import { createIdentityIssuer, type IdentityIssuer } from '../../src/proxy/identity-headers.ts'
import { newDataKeys } from '../../src/session/data-keys.ts'
import { createSigningKeys } from '../../src/session/signing-keys.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Environment } from '../kit/instance.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { startUpstream, type Upstream, watch } from '../kit/upstream.ts'

const OBSERVED = { requestId: 'r', startedAt: 0, method: 'GET', path: '/', outcome: 'admitted', address: '' } as const

/** Fails if the last assertion that this application was sent is not for this audience. */
async function verify(scene: Scene, application: Pick<Upstream, 'last'>, audience: string) {
  const keys = createLocalJWKSet((await scene.visitor().get('/_menshen/jwks.json')).json<JSONWebKeySet>())
  const assertion = String(application.last().headers['x-menshen-assertion'])
  return jwtVerify(assertion, keys, { issuer: scene.baseUrl, audience, currentDate: new Date(scene.now()) })
}

test('an assertion for one application fails verification at another', async t => {
  const [wiki, forum] = [await startUpstream(t), await startUpstream(t)]
  const upstreams = { '/wiki': { url: wiki.url, audience: 'wiki' }, '/forum': { url: forum.url } }
  const scene = await setUp(t, { config: { upstreams } })
  const user = await scene.user()
  const applications = [
    ['/', scene.upstream, scene.upstream.url],
    ['/wiki', wiki, 'wiki'],
    ['/forum', forum, forum.url],
  ] as const
  // Twice, so that what was made for one application is there when another is visited.
  for (const [path] of [...applications, ...applications]) assert.equal((await user.get(path)).status, 200)
  for (const [path, application, own] of applications)
    for (const [, , audience] of applications) {
      const verified = verify(scene, application, audience)
      if (audience === own) assert.equal((await verified).payload.aud, own)
      else await assert.rejects(verified, { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED', claim: 'aud' }, path)
    }
})

test('an assertion is created once per session and application, and reused for 239 seconds but not for 241', async t => {
  const wiki = await startUpstream(t)
  const scene = await setUp(t, { config: { upstreams: { '/wiki': wiki.url } } })
  const user = await scene.user()
  const ask = async (path: string, application: Upstream) => {
    await user.get(path)
    return application.last().headers['x-menshen-assertion']
  }
  const [first, ofWiki] = [await ask('/', scene.upstream), await ask('/wiki', wiki)]
  assert.equal(await ask('/', scene.upstream), first)
  assert.equal(await ask('/wiki', wiki), ofWiki)
  assert.notEqual(first, ofWiki)
  scene.passSeconds(239)
  assert.equal(await ask('/', scene.upstream), first)
  scene.passSeconds(2)
  assert.notEqual(await ask('/', scene.upstream), first)
})

/** Who makes headers, for somebody who is signed in. */
function openIdentities() {
  const now = () => Date.parse('2026-03-01T08:00:00Z')
  const dataKeys = newDataKeys()
  const keys = createSigningKeys(createMemoryStore({ now }), { current: async () => dataKeys }, now)
  const userInfo = { sub: '1', ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '', username: 'lisi' }
  const user: Caller = {
    user: { userInfo, userRole: 'common' },
    who: { role: 'common', username: 'lisi', groups: [], sub: '1' },
  }
  const identitiesOf = (env: Environment) =>
    createIdentityIssuer({ settings: readSettings(env), keys, now, report: () => {} })
  return { user, identitiesOf }
}

test('each of ten applications gets its own assertion, and the session keeps those of four', async () => {
  const { user, identitiesOf } = openIdentities()
  const identities = identitiesOf({})
  const ask = async (audience: string) => {
    const { pairs } = await identities.headersFor(user, audience, OBSERVED)
    return pairs[pairs.indexOf('x-menshen-assertion') + 1] ?? ''
  }
  const audiences = Array.from({ length: 10 }, (_, n) => `app-${n}`)
  for (const audience of [...audiences, ...audiences]) assert.equal(decodeJwt(await ask(audience)).aud, audience)
  assert.equal(user.identityHeaders?.length, 4)
  const [sixth, ninth] = [await ask('app-6'), await ask('app-9')]
  assert.deepEqual([await ask('app-6'), await ask('app-9')], [sixth, ninth])
})

test('identity headers created with the names of an old configuration are not reused after a change', async () => {
  const { user, identitiesOf } = openIdentities()
  const [former, present] = [identitiesOf({}), identitiesOf({ IDENTITY_USER: 'x-who' })]
  const ask = async (identities: IdentityIssuer) => (await identities.headersFor(user, 'app', OBSERVED)).pairs
  // It was still under way, for a slow refresh, when the names changed.
  assert.ok((await ask(former)).includes('x-forwarded-user'))
  const names = await ask(present)
  assert.ok(names.includes('x-who') && !names.includes('x-forwarded-user'), names.join())
})

test('with IDENTITY_ASSERTION=none, a user header named x-menshen-assertion is sent once', async () => {
  const { user, identitiesOf } = openIdentities()
  const identities = identitiesOf({ IDENTITY_ASSERTION: 'none', IDENTITY_USER: 'x-menshen-assertion' })
  const { pairs } = await identities.headersFor(user, 'app', OBSERVED)
  assert.deepEqual(pairs.slice(0, 3), ['x-menshen-assertion', 'lisi', 'x-forwarded-email'])
})

test('ASSERTION_AUDIENCE sets the audience of UPSTREAM, but not of other applications', async t => {
  const wiki = await startUpstream(t)
  const scene = await setUp(t, {
    env: { ASSERTION_AUDIENCE: 'portal' },
    config: { upstreams: { '/wiki': wiki.url } },
  })
  const user = await scene.user()
  await user.get('/')
  await user.get('/wiki')
  await verify(scene, scene.upstream, 'portal')
  await verify(scene, wiki, wiki.url)
})

test('the assertion for an application on a Unix socket has the address in the settings as its audience', async t => {
  const path = join(tempFolder(t), 'app.sock')
  const upstream = await watch(t, createServer().listen(path))
  const scene = await setUp(t, { env: { UPSTREAM: `unix:${path}` } })
  await (await scene.user()).get('/')
  await verify(scene, upstream, `unix:${path}`)
})

test('an upstream can be an address or an address with an audience, and errors name what was expected', () => {
  const check = (upstream: unknown) => checkConfig({ upstreams: { '/wiki': upstream } }, 'menshen.config.ts', 'it')
  const url = 'http://127.0.0.1:8081'
  for (const good of [url, { url }, { url, audience: 'wiki' }, { url: 'unix:/run/wiki.sock', audience: 'wiki' }])
    assert.deepEqual(check(good), { upstreams: { '/wiki': good } })
  for (const [bad, sentence] of [
    ['wiki', /: upstreams\.\/wiki: expected an http, https or h2c address .*, for example "http:/],
    [8081, /: upstreams\.\/wiki: expected text or an object\.$/],
    [{}, /: upstreams\.\/wiki\.url: expected text, but it is missing\.$/],
    [{ audience: 'wiki' }, /: upstreams\.\/wiki\.url: expected text, but it is missing\.$/],
    [{ url, audience: ' ' }, /: upstreams\.\/wiki\.audience: expected .*, for example /],
    [{ url, audiences: ['wiki'] }, /: upstreams\.\/wiki: there is no "audiences"; did you mean audience\?$/],
  ] as const)
    assert.throws(() => check(bad), { code: 'bad_settings', message: sentence })
})
