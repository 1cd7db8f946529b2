// menshen/assertion: an application behind the gateway believes what was signed for it, and nothing else.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http'
import { before, suite, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { type Assertion, MenshenError, verifyAssertion } from '../../src/adapters/assertion.ts'
import { freePort } from '../kit/free-port.ts'
import { listen } from '../kit/listen.ts'
import { setUp } from '../kit/set-up.ts'

const AUDIENCE = 'http://127.0.0.1:8080'
const NOW = Date.parse('2026-03-01T08:00:00Z')
const now = () => NOW
const SECONDS = NOW / 1000

const CLAIMS = {
  sub: 'sub-zhangsan',
  username: 'zhangsan',
  nickname: '张三',
  email: 'zhangsan@example.com',
  role: 'common',
  groups: ['audit'],
  iat: SECONDS,
  exp: SECONDS + 300,
  aud: AUDIENCE,
}

type Pair = Awaited<ReturnType<typeof generateKeyPair>>
let own: Pair
let other: Pair

before(async () => {
  own = await generateKeyPair('ES256')
  other = await generateKeyPair('ES256')
})

test('an application can verify the gateway’s assertion in any kind of request, and never receives one that a visitor forged', async t => {
  const told: unknown[] = []
  const scene = await setUp(t, {
    config: { rules: [{ path: '/public', public: true }] },
    async answer(request, response) {
      const options = { issuer: scene.baseUrl, audience: scene.upstream.url, now: scene.now }
      told.push(await verifyAssertion(request, options).catch((error: MenshenError) => error.code))
      response.end()
    },
  })
  await (await scene.user('zhangsan')).get('/')
  await scene.visitor().get('/public', { headers: { 'x-menshen-assertion': 'forged' } })
  const [claims, visitor] = told
  assert.partialDeepStrictEqual(claims, {
    sub: 'sub-zhangsan',
    username: 'zhangsan',
    nickname: '张三',
    email: 'zhangsan@example.com',
    role: 'common',
    groups: [],
    iss: scene.baseUrl,
    aud: scene.upstream.url,
  })
  assert.equal(visitor, 'assertion_missing')
  // Frameworks have a Request or a record of headers instead of the message.
  const { headers } = scene.upstream.received[0] ?? assert.fail()
  const web = new Request(scene.upstream.url, {
    headers: { 'x-menshen-assertion': String(headers['x-menshen-assertion']) },
  })
  const options = { issuer: scene.baseUrl, audience: scene.upstream.url, now: scene.now }
  for (const each of [web, { headers: web.headers }, { headers }])
    assert.deepEqual(await verifyAssertion(each, options), claims)
})

suite('verifyAssertion', () => {
  test('verifyAssertion accepts a Request, an IncomingMessage, a Headers object, and a plain record with header names in any case', async t => {
    const issuer = await publish(t)
    const token = await sign({ ...CLAIMS, iss: issuer })
    for (const headers of [
      new Headers({ 'X-Menshen-Assertion': token }),
      { 'x-menshen-assertion': token },
      { 'X-Menshen-Assertion': [token], 'x-other': undefined },
    ])
      assert.equal((await verify({ headers }, { issuer })).sub, 'sub-zhangsan')
    const request = new Request('http://127.0.0.1/', { headers: { 'x-menshen-assertion': token } })
    const message = await requestWith(t, ['X-Menshen-Assertion', token])
    for (const each of [request, message]) assert.equal((await verify(each, { issuer })).username, 'zhangsan')
  })

  test('verifyAssertion accepts an issuer with capitals and a trailing slash, another header name and a separate jwksUrl', async t => {
    const keysAt = await publish(t)
    const token = await sign({ ...CLAIMS, iss: 'https://app.example.com' })
    const options = { issuer: 'https://App.Example.com/', header: 'X-Proof', jwksUrl: `${keysAt}/_menshen/jwks.json` }
    assert.equal((await verify({ headers: { 'x-proof': token } }, options)).sub, 'sub-zhangsan')
    await rejects(verify({ headers: { 'x-menshen-assertion': token } }, options), 'assertion_missing')
  })

  test('verifyAssertion returns additional claims that are text and omits the others', async t => {
    const issuer = await publish(t)
    const token = await sign({
      ...CLAIMS,
      iss: issuer,
      dept: '财务部',
      provider: 'staff',
      level: 3,
      ou_name: undefined,
    })
    const claims: Assertion<'dept' | 'level'> = await verifyAssertion<'dept' | 'level'>(
      { headers: { 'x-menshen-assertion': token } },
      { issuer, audience: AUDIENCE, now },
    )
    assert.equal(claims.dept, '财务部')
    assert.equal(claims.provider, 'staff')
    assert.deepEqual([claims.level, claims.ou_name, 'level' in claims], [undefined, undefined, false])
  })

  test('verifyAssertion rejects a request without an assertion: no headers, an empty header, or no request at all', async () => {
    const requests = [{ headers: {} }, { headers: new Headers() }, { headers: { 'x-menshen-assertion': '' } }]
    const broken: unknown[] = [{}, { headers: undefined }, { headers: null }, undefined, null, 'request']
    for (const request of [...requests, ...broken])
      await rejects(verify(request as { headers: Headers }, {}), 'assertion_missing')
  })

  test('verifyAssertion rejects several assertions in one request, and header values that are not text', async t => {
    const issuer = await publish(t)
    const token = await sign({ ...CLAIMS, iss: issuer })
    const name = 'x-menshen-assertion'
    const two = new Headers({ [name]: token })
    two.append(name, token)
    const wrong: unknown[] = [
      two,
      { [name]: `${token}, ${token}` },
      { [name]: [token, token] },
      { [name]: [token, ''] },
      { [name]: token, 'X-Menshen-Assertion': token },
      { [name]: 42 },
      { [name]: { toString: () => token } },
      { [name]: [[token]] },
      { get: () => 42 },
    ]
    for (const headers of wrong) await rejects(verify({ headers: headers as Headers }, { issuer }), 'assertion_invalid')
    await rejects(verify(await requestWith(t, [name, token, name, token]), { issuer }), 'assertion_invalid')
    assert.equal((await verify(await requestWith(t, [name, token]), { issuer })).sub, 'sub-zhangsan')
  })

  test('verifyAssertion rejects a wrong key, issuer, audience, time or algorithm and an incomplete user; its error names no user', async t => {
    const issuer = await publish(t)
    const claims = { ...CLAIMS, iss: issuer }
    const token = await sign(claims)
    const [header = '', payload = '', signature = ''] = token.split('.')
    const forged = Buffer.from(JSON.stringify({ ...claims, username: 'admin', role: 'developer' })).toString(
      'base64url',
    )
    const tokens = [
      'forged',
      '..',
      `${header}.${forged}.${signature}`,
      `${header}.${payload}.`,
      `${token} `.repeat(2),
      await sign(claims, other),
      await sign({ ...claims, iss: 'https://other.example.com' }),
      await sign({ ...claims, iss: undefined }),
      await sign({ ...claims, aud: 'http://127.0.0.1:8081' }),
      await sign({ ...claims, aud: undefined }),
      await sign({ ...claims, aud: [] }),
      await sign({ ...claims, exp: SECONDS }),
      await sign({ ...claims, exp: undefined }),
      await sign({ ...claims, exp: '9999999999' }),
      await sign({ ...claims, nbf: SECONDS + 60 }),
      await sign({ ...claims, sub: undefined }),
      await sign({ ...claims, sub: '' }),
      await sign({ ...claims, username: undefined }),
      await sign({ ...claims, username: ['admin'] }),
      await sign({ ...claims, role: undefined }),
      await sign({ ...claims, groups: 'audit' }),
      await sign({ ...claims, groups: [1] }),
      new UnsecuredJWT(claims).encode(),
      await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'own' }).sign(await publicBytes()),
    ]
    for (const assertion of tokens) {
      const error = await rejects(
        verify({ headers: { 'x-menshen-assertion': assertion } }, { issuer }),
        'assertion_invalid',
      )
      // What an application logs must not tell who somebody is.
      assert.doesNotMatch(`${error.message} ${JSON.stringify(error)} ${String(error.cause)}`, /zhangsan|张三|admin/)
    }
  })

  test('verifyAssertion rejects options without a valid issuer and audience, or with an invalid jwksUrl', async t => {
    const issuer = await publish(t)
    const request = { headers: { 'x-menshen-assertion': await sign({ ...CLAIMS, iss: issuer }) } }
    const wrong: unknown[] = [
      undefined,
      {},
      { issuer },
      { audience: AUDIENCE },
      { issuer, audience: '' },
      { issuer, audience: undefined },
      { issuer, audience: [AUDIENCE] },
      { issuer: '', audience: AUDIENCE },
      { issuer: 'app.example.com', audience: AUDIENCE },
      { issuer: 'https://app.example.com/path', audience: AUDIENCE },
      { issuer: 'file:///etc', audience: AUDIENCE },
      { issuer, audience: AUDIENCE, jwksUrl: 'file:///etc/passwd' },
    ]
    for (const options of wrong)
      await rejects(verifyAssertion(request, options as Parameters<typeof verifyAssertion>[1]), 'bad_settings')
  })

  test('verifyAssertion reports keys_unavailable instead of assertion_invalid if the keys cannot be fetched', async t => {
    const away = `http://127.0.0.1:${await freePort()}`
    const answers = [
      (response: ServerResponse) => response.writeHead(500).end('{}'),
      (response: ServerResponse) => response.writeHead(302, { location: away }).end(),
      (response: ServerResponse) => response.end('<html>'),
      (response: ServerResponse) => response.end('{}'),
      (response: ServerResponse) => response.end(JSON.stringify({ keys: [], padding: 'x'.repeat(1 << 20) })),
      (response: ServerResponse) => response.destroy(),
    ]
    const issuers = [away, ...(await Promise.all(answers.map(async answer => (await serve(t, answer)).url)))]
    for (const issuer of issuers) {
      const request = { headers: { 'x-menshen-assertion': await sign({ ...CLAIMS, iss: issuer }) } }
      await rejects(verify(request, { issuer }), 'keys_unavailable')
    }
  })

  test('verifyAssertion fetches the keys once for 1000 valid and forged assertions', async t => {
    const { url: issuer, count } = await serveKeys(t)
    const token = await sign({ ...CLAIMS, iss: issuer })
    const unknown = await sign({ ...CLAIMS, iss: issuer }, other, 'unknown')
    const outcomes = await Promise.all(
      Array.from({ length: 1000 }, (_, n) =>
        verify({ headers: { 'x-menshen-assertion': n % 2 ? token : unknown } }, { issuer }).then(
          () => 'believed',
          (error: MenshenError) => error.code,
        ),
      ),
    )
    assert.deepEqual([...new Set(outcomes)].sort(), ['assertion_invalid', 'believed'])
    assert.equal(count(), 1)
  })
})

test('menshen/assertion loads only its error modules and jose, and no part of the gateway or a store', () => {
  const script = `
    const { registerHooks } = await import('node:module')
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    await import(${JSON.stringify(fileURLToPath(new URL('../../src/adapters/assertion.ts', import.meta.url)))})
    console.log(JSON.stringify(loaded))`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.equal(stderr, '')
  const files: string[] = JSON.parse(stdout)
  const names = files.map(url => /\/(src\/.*|node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(url)?.[1])
  const allowed = [
    ...['src/adapters/assertion.ts', 'src/errors.ts', 'src/util/system-code.ts', 'node_modules/jose'],
    undefined,
  ]
  assert.deepEqual(
    names.filter(name => !allowed.includes(name)),
    [],
  )
  assert.ok(names.includes('node_modules/jose'))
})

function verify(request: Parameters<typeof verifyAssertion>[0], more: object) {
  return verifyAssertion(request, { issuer: 'http://127.0.0.1:9', audience: AUDIENCE, now, ...more })
}

async function rejects(verifying: Promise<unknown>, code: string): Promise<MenshenError> {
  const error = await verifying.then(
    claims => assert.fail(`believed: ${JSON.stringify(claims)}`),
    (error: unknown) => error,
  )
  assert.ok(error instanceof MenshenError, String(error))
  assert.equal(error.code, code, error.message)
  return error
}

function sign(claims: object, { privateKey }: Pair = own, kid = 'own'): Promise<string> {
  return new SignJWT(claims as JWTPayload).setProtectedHeader({ alg: 'ES256', kid }).sign(privateKey)
}

async function publicBytes(): Promise<Uint8Array> {
  return Buffer.from(JSON.stringify(await exportJWK(own.publicKey)))
}

/** The issuer's address. */
async function publish(t: TestContext): Promise<string> {
  return (await serveKeys(t)).url
}

async function serveKeys(t: TestContext) {
  const keys = [{ ...(await exportJWK(own.publicKey)), kid: 'own', alg: 'ES256', use: 'sig' }]
  return serve(t, response => response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys })))
}

async function serve(t: TestContext, answer: (response: ServerResponse) => void) {
  let asked = 0
  const server = createServer((request, response) => {
    assert.equal(request.url, '/_menshen/jwks.json')
    asked += 1
    answer(response)
  })
  const { url } = await listen(t, server)
  return { url, count: () => asked }
}

/** As it arrives at an application, its lines as they are given. */
async function requestWith(t: TestContext, lines: string[]): Promise<IncomingMessage> {
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>()
  const server = createServer((request, response) => {
    resolve(request)
    response.end()
  })
  const { port } = await listen(t, server)
  requestOf({ port, host: '127.0.0.1', agent: false, headers: ['host', 'a', ...lines] }, response =>
    response.resume(),
  ).end()
  return promise
}
