// Every answer of a provider is hostile until it is read: whatever comes, from whichever endpoint, is the right error on
// /login, within the deadline, with no call before its check.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Answer } from '../kit/answers.ts'
import type { OidcEndpoint } from '../kit/oidc/oidc-calls.ts'
import { newSigningKey, publicPem, signedWithSecret, signWith, unsigned } from '../kit/oidc/oidc-keys.ts'
import { OIDC_CLIENT, OIDC_SECRETS, OIDC_SECRETS_OF_USER, OIDC_USER } from '../kit/oidc/strict-oidc-server.ts'
import { isIn, openRelyingParty, type RelyingParty } from './relying-party.ts'

const ENV = { RATE_LIMIT_PER_MINUTE: '0', PROVIDER_TIMEOUT_MS: '2000' }
const LEVELS = 100_000
const HUGE = `{"x":"${'y'.repeat(10_000_000)}"}`

const bytes = (body: string | Uint8Array, status = 200, type = 'application/json'): Answer => ({
  kind: 'bytes',
  body,
  status,
  headers: { 'content-type': type },
})

const HOSTILE: Record<string, Answer> = {
  nothing: bytes(''),
  null: bytes('null'),
  'a number': bytes('7'),
  'a text': bytes('"x"'),
  'an empty list': bytes('[]'),
  'an empty object': bytes('{}'),
  'half an object': bytes('{"a":'),
  'a page': bytes('<!doctype html><p>sign in</p>', 200, 'text/html'),
  'no UTF-8': bytes(Buffer.from([0xff, 0xfe, 0x7b, 0x7d])),
  'null bytes': bytes('\0'.repeat(1000)),
  '10 MB': bytes(HUGE),
  'lists 100,000 deep': bytes('['.repeat(LEVELS) + ']'.repeat(LEVELS)),
  'objects 100,000 deep': bytes(`${'{"a":'.repeat(LEVELS)}1${'}'.repeat(LEVELS)}`),
  'a field 5,000 deep': bytes(`{"error":${'['.repeat(5000)}${']'.repeat(5000)}}`),
  'everything in __proto__': bytes(`{"__proto__":${JSON.stringify({ ...OIDC_USER, access_token: 'a', keys: [] })}}`),
  'an error with a phone number': bytes('{"error":"86 13811111111","error_description":"CANARY"}', 400),
  'an error with status 200': bytes('{"error":"invalid_client"}'),
  'status 500': bytes('{}', 500),
  'status 204': { kind: 'bytes', body: '', status: 204 },
  'status 101': {
    kind: 'wire',
    bytes: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
  },
  'no HTTP': { kind: 'wire', bytes: 'SSH-2.0-OpenSSH\r\n' },
  'a redirect': { kind: 'redirect', to: '/evil' },
  'a redirect that repeats the request': { kind: 'redirect', to: '/evil', status: 307 },
  'a redirect for ever': { kind: 'redirect', to: '/evil', status: 308 },
  'a broken connection': { kind: 'cut', when: 'at once' },
  'half an answer': { kind: 'cut', when: 'in the body' },
  'no answer': { kind: 'hang' },
  'an answer without end': { kind: 'endless' },
  'an answer that drips': { kind: 'drip' },
}

/** In the order in which they are asked; nothing behind the hostile one is. */
const ORDER: readonly OidcEndpoint[] = ['token', 'keys', 'userinfo']

async function assertRefused(scene: RelyingParty, endpoint: OidcEndpoint, name: string): Promise<void> {
  const before = scene.op.calls.length
  // After a few failures of the keys they are everybody's for a second.
  scene.rp.passSeconds(2)
  await scene.refuses(endpoint === 'userinfo' ? 'userinfo_error' : 'token_error', name)
  const asked = scene.op.calls.slice(before).map(call => call.endpoint)
  for (const later of ORDER.slice(ORDER.indexOf(endpoint) + 1)) assert.ok(!asked.includes(later), `${name}: ${later}`)
}

suite('a hostile response', { concurrency: true }, () => {
  for (const endpoint of ORDER)
    test(`any hostile response from the ${endpoint} endpoint fails only that sign-in`, async t => {
      const scene = await openRelyingParty(t, ENV)
      for (const [name, answer] of Object.entries(HOSTILE)) {
        scene.op.answer(endpoint, answer)
        await assertRefused(scene, endpoint, name)
      }
      scene.op.answer(endpoint, { kind: 'normal' })
      await scene.accepts()
      assert.ok(!('access_token' in {}))
    })

  test('any hostile response from discovery makes the provider unavailable until discovery works again', async t => {
    const { op, rp, visitor, accepts } = await openRelyingParty(t, ENV)
    for (const [name, answer] of Object.entries(HOSTILE)) {
      op.answer('discovery', answer)
      rp.passSeconds(2)
      const { headers } = await visitor().post('/login')
      assert.equal(headers.location, '/login?error=temporarily_unavailable', name)
      assert.equal((await visitor().get('/login?error=temporarily_unavailable')).status, 200)
    }
    const others = op.calls.filter(({ endpoint }) => endpoint !== 'discovery').map(({ url }) => url)
    assert.deepEqual(others, ['/evil', '/evil', '/evil'], 'one redirect within the same origin is followed, once')
    op.complaints.length = 0
    for (const secret of OIDC_SECRETS) assert.ok(!JSON.stringify(rp.lines).includes(secret), secret)
    op.answer('discovery', { kind: 'normal' })
    rp.passSeconds(2)
    await accepts()
  })

  test('after any hostile response to a refresh, the session stays with REFRESH_FAILURE=keep and ends with clear', async t => {
    const forgiving = await openRelyingParty(t, { ...ENV, REFRESH_FAILURE: 'keep' })
    const strict = await openRelyingParty(t, { ...ENV, REFRESH_FAILURE: 'clear' })
    for (const [name, answer] of Object.entries(HOSTILE)) {
      for (const { op, rp, accepts } of [strict, forgiving]) {
        op.answer('refresh', { kind: 'normal' })
        const user = await accepts()
        op.answer('refresh', answer)
        rp.passSeconds(7000)
        assert.equal(await isIn(user), rp === forgiving.rp, name)
        const told = JSON.stringify(rp.lines.filter(({ event }) => event !== 'sign_in'))
        for (const secret of OIDC_SECRETS_OF_USER) assert.ok(!told.includes(secret), `${name}: ${secret}`)
      }
    }
  })
})

test('token and user info responses with fields of wrong types or values are refused', async t => {
  const scene = await openRelyingParty(t, ENV)
  const odd = [null, 7, true, '', ' ', 'a b', 'a\r\nb: c', [], {}, ['x']]
  for (const value of odd) {
    scene.op.bend = { token: right => ({ ...right, access_token: value }) }
    await assertRefused(scene, 'token', `access_token ${JSON.stringify(value)}`)
    if (value !== null && value !== '') {
      scene.op.bend = { token: right => ({ ...right, refresh_token: value }) }
      await assertRefused(scene, 'token', `refresh_token ${JSON.stringify(value)}`)
    }
    scene.op.bend = { userinfo: right => ({ ...right, sub: value }) }
    await assertRefused(scene, 'userinfo', `sub ${JSON.stringify(value)}`)
  }
  for (const value of [undefined, null, '', 'mac', 'DPoP', 7, ['Bearer']]) {
    scene.op.bend = { token: right => ({ ...right, token_type: value }) }
    await assertRefused(scene, 'token', `token_type ${JSON.stringify(value)}`)
  }
  for (const value of [0, -1, 1.5, 1e300, '', 'soon', '1e3', [], {}, true]) {
    scene.op.bend = { token: right => ({ ...right, expires_in: value }) }
    await assertRefused(scene, 'token', `expires_in ${JSON.stringify(value)}`)
  }
})

test('signed user info has to be signed by the provider, for this client, about the user of the id_token', async t => {
  const { op, rp, accepts, refuses } = await openRelyingParty(t, ENV)
  const claims = { iss: op.issuer, aud: OIDC_CLIENT.id, ...OIDC_USER }
  const say = (token: string) => op.answer('userinfo', bytes(token, 200, 'application/jwt'))
  for (const [name, token] of Object.entries({
    unsigned: unsigned(claims),
    'signed with the public key': signedWithSecret(claims, publicPem(op.key), 'key-1'),
    'signed with the client secret': signedWithSecret(claims, OIDC_CLIENT.secret, 'key-1'),
    'signed by somebody else': await signWith(await newSigningKey('key-1'), claims),
    'of another issuer': await op.sign({ ...claims, iss: `${op.issuer}1` }),
    'for somebody else': await op.sign({ ...claims, aud: `${OIDC_CLIENT.id}1` }),
    'about somebody else': await op.sign({ ...claims, sub: `${OIDC_USER.sub}1` }),
    'about nobody': await op.sign({ iss: claims.iss, aud: claims.aud }),
    expired: await op.sign({ ...claims, exp: rp.now() / 1000 - 60 }),
    'not signed at all': JSON.stringify(OIDC_USER),
    empty: '',
  })) {
    say(token)
    await refuses('userinfo_error', name)
  }
  say(`${await op.sign(claims)}\n`)
  await accepts()
})

test('user info with invalid optional fields still identifies the user of the id_token', async t => {
  const { op, accepts } = await openRelyingParty(t, ENV)
  const deep = JSON.parse('['.repeat(1000) + ']'.repeat(1000))
  for (const odd of [null, 7, [], {}, deep, { __proto__: null }]) {
    op.bend.userinfo = ({ sub }) => ({ sub, preferred_username: odd, email: odd, name: odd, groups: odd })
    const user = await accepts(JSON.stringify(odd).slice(0, 20))
    const { userInfo, userRole } = (await user.get('/_menshen/me')).json<{
      userInfo: Record<string, string>
      userRole: string
    }>()
    assert.equal(userInfo.sub, OIDC_USER.sub)
    assert.equal(userInfo.username, odd === 7 ? '7' : OIDC_USER.sub)
    assert.equal(userRole, 'common')
  }
})

test('metadata with fields of wrong types, or without required fields, makes the provider unavailable', async t => {
  const { op, rp, visitor, accepts } = await openRelyingParty(t, ENV)
  const must = ['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri']
  const may = ['userinfo_endpoint', 'end_session_endpoint', 'revocation_endpoint', 'introspection_endpoint']
  const lists = ['id_token_signing_alg_values_supported', 'token_endpoint_auth_methods_supported']
  const refuses = async (name: string, value: unknown) => {
    op.bend.discovery = right => ({ ...right, [name]: value })
    rp.passSeconds(2)
    const { headers } = await visitor().post('/login')
    assert.equal(
      headers.location,
      '/login?error=temporarily_unavailable',
      `${name} ${JSON.stringify(value)?.slice(0, 40)}`,
    )
  }
  for (const name of must) for (const value of [undefined, null, '']) await refuses(name, value)
  for (const name of [...must, ...may])
    for (const value of [
      7,
      true,
      {},
      ['http://127.0.0.1/x'],
      'x',
      '/token',
      'file:///etc/passwd',
      'javascript:alert(1)',
    ])
      await refuses(name, value)
  for (const name of lists)
    for (const value of [7, 'RS256', {}, [7], [null], Array(10_000).fill('RS256')]) await refuses(name, value)
  assert.ok(op.calls.every(({ endpoint }) => endpoint === 'discovery'))
  op.bend = {}
  rp.passSeconds(2)
  await accepts()
})

test('no sign-in succeeds with 10,000 keys or with unusable keys', async t => {
  const { op, rp, rejects, accepts } = await openRelyingParty(t, ENV)
  const [key] = op.published
  const many = Array.from({ length: 10_000 }, (_, n) => ({ kty: 'RSA', kid: `k${n}`, n: 'AQAB', e: 'AQAB' }))
  for (const [name, keys] of Object.entries({
    many: [...many, key?.jwk],
    none: [],
    'no list': { '0': key?.jwk },
    'odd ones': [null, 7, 'x'],
    'without a kind': [{ ...key?.jwk, kty: undefined }],
    'of another kind': [{ ...key?.jwk, kty: 'oct', k: 'AAAA' }],
    'for encryption': [{ ...key?.jwk, use: 'enc' }],
    'for another algorithm': [{ ...key?.jwk, alg: 'RS512' }],
    'too weak': [{ kty: 'RSA', kid: 'key-1', n: 'AQAB', e: 'AQAB' }],
    broken: [{ kty: 'RSA', kid: 'key-1', n: 7, e: {} }],
    'two of one name': [key?.jwk, { ...key?.jwk, n: `${key?.jwk.n?.slice(0, -4)}AAAA` }],
  })) {
    op.bend.keys = () => ({ keys })
    rp.passSeconds(4000)
    await rejects('token_error', name)
  }
  op.bend = {}
  rp.passSeconds(4000)
  await accepts()
})
