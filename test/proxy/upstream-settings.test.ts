// The settings of one application: the headers that it gets, those of its answers, its token, its certificates, its deadline.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { checkConfig } from '../../src/config/file.ts'
import { type Config, createMenshen, MenshenError, readSettings } from '../../src/index.ts'
import { createCore } from '../../src/menshen.ts'
import { cookieOf, createClient } from '../kit/client.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { setUp, setUpOidc } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { createTestLog } from '../kit/test-log.ts'
import { startUpstream, watch } from '../kit/upstream.ts'
import { dial, refusal } from '../kit/websocket.ts'
import { filesOf, makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { forgedLines, raw, request } from './raw.ts'

type Headers = Record<string, string | { file: string }>

/** An application at `/app` with these headers, and a public page. */
async function setUpHeaders(t: TestContext, headers: Headers, more: Config = {}, answer?: RequestListener) {
  const app = await startUpstream(t, answer)
  const scene = await setUp(t, {
    config: {
      rules: [{ path: '/app/public', public: true }],
      ...more,
      upstreams: { '/app': { url: app.url, headers } },
    },
  })
  return { scene, app }
}

/** The lines of these names, in any spelling that an application may take for them. */
function told({ last }: { last(): { lines: [string, string][] } }, ...names: string[]): [string, string][] {
  const plain = (name: string) => name.toLowerCase().replace(/[^a-z\d]/g, '-')
  return last().lines.filter(([name]) => names.map(plain).includes(plain(name)))
}

test('an application receives its configured headers, filled from user fields, text and a file', async t => {
  const file = join(tempFolder(t), 'key')
  writeFileSync(file, 'key-CANARY 7\r\n')
  const { scene, app } = await setUpHeaders(
    t,
    {
      'X-WEBAUTH-USER': '{username}',
      'X-Dept': '{dept}',
      'X-Who': 'u-{username}/{role}+{email}',
      'X-Nick': '{nickname}',
      'X-Phone': '{phone_number}',
      'X-Sub': '{sub}',
      'X-Groups': '{groups}',
      'X-Api-Key': { file },
      'X-Tenant': 'acme  corp',
    },
    { provider: { fields: { dept: ['ou_name'] } } },
  )
  const user = await scene.user('zhang%san', { ou_name: '财务, 一部', nickname: '张 三', phone_number: '', sub: 's 1' })
  assert.equal((await user.get('/app/x')).status, 200)
  const { headers } = app.last()
  assert.equal(headers['x-webauth-user'], 'zhang%25san')
  assert.equal(headers['x-dept'], '%E8%B4%A2%E5%8A%A1,%20%E4%B8%80%E9%83%A8')
  assert.equal(headers['x-who'], `u-zhang%25san/common+${headers['x-forwarded-email']}`)
  assert.equal(headers['x-nick'], headers['x-forwarded-preferred-username'])
  assert.equal(headers['x-sub'], 's%201')
  assert.equal(headers['x-api-key'], 'key-CANARY 7')
  assert.equal(headers['x-tenant'], 'acme  corp')
  assert.deepEqual(told(app, 'x-phone', 'x-groups'), [], 'a header without a value is absent')

  await (await scene.user('lisi')).get('/app/x')
  assert.equal(app.last().headers['x-webauth-user'], 'lisi', 'the headers of one user are not those of another')
  await user.get('/other')
  assert.deepEqual(told(scene.upstream, 'x-webauth-user', 'x-api-key', 'x-tenant'), [])
  await scene.visitor().get('/app/public')
  assert.deepEqual(told(app, 'x-webauth-user', 'x-who', 'x-sub', 'x-api-key', 'x-tenant'), [
    ['x-api-key', 'key-CANARY 7'],
    ['x-tenant', 'acme  corp'],
  ])
  assert.doesNotMatch(JSON.stringify(scene.lines), /key-CANARY/)
})

test('a configured header that is too long is cut, and a template with an empty field is not sent', async t => {
  const { scene, app } = await setUpHeaders(t, {
    'X-Long': 'a-{ou_name}-{ou_id}-z',
    'X-Half': '{phone_number}:{username}',
  })
  const user = await scene.user('zhangsan', { ou_name: '龘'.repeat(200), ou_id: '龘'.repeat(200), phone_number: '' })
  await user.get('/app')
  await user.get('/app')
  const value = String(app.last().headers['x-long'])
  assert.ok(value.length <= 2048 && value.endsWith('-z'), value)
  assert.match(decodeURIComponent(value), /^a-龘{200}-龘{20,}-z$/)
  assert.deepEqual(told(app, 'x-half'), [])
  const cuts = scene.lines.filter(({ event }) => event === 'identity_cut')
  assert.deepEqual(
    cuts.map(({ fields }) => (fields as { header?: unknown }).header).filter(header => header === 'X-Long'),
    ['X-Long'],
    'the headers are made once for a session',
  )
})

test('a machine’s request with a token has configured headers with the machine’s own name and groups', async t => {
  const app = await startUpstream(t)
  const { provider, bring } = await setUpOidc(t, {
    application: false,
    config: {
      rules: [{ path: '/api', roles: ['*'], bearer: true }],
      upstreams: { '/api': { url: app.url, headers: { 'X-User': '{username}', 'X-Teams': '{groups}' } } },
    },
  })
  const token = await provider.sign({ sub: 'robot', client_id: 'robot', groups: ['a,b', 'c'] }, { typ: 'at+jwt' })
  assert.equal((await bring(token, '/api', { 'x-user': 'admin', X_TEAMS: 'root' })).status, 200)
  assert.deepEqual(told(app, 'x-user', 'x-teams'), [
    ['x-user', 'robot'],
    ['x-teams', 'a%2Cb,c'],
  ])
})

test('a client cannot forge or remove a configured header by spelling it differently, repeating it or naming it in Connection', async t => {
  const names = ['X-Shop-Person', 'X-Shop-Key', 'X-User-Token']
  const { scene, app } = await setUpHeaders(t, {
    'X-Shop-Person': '{username}',
    'X-Shop-Key': 'ours',
    'X-User-Token': '{phone_number}',
  })
  const sockets = new WebSocketServer({ server: app.server })
  t.after(() => sockets.close())
  const user = await scene.user('zhangsan', { phone_number: '' })
  const signedIn = `cookie: ${cookieOf(user)}`
  const forged = forgedLines(names)
  const named = `connection: close, ${names.join(', ')}, ${names.join(',').replaceAll('-', '_').toLowerCase()}`
  const socket = [
    ...['connection: Upgrade, X-Shop-Person, X-Shop-Key', 'upgrade: websocket', 'sec-websocket-version: 13'],
    'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]
  for (const [line, ...more] of [
    ['GET /app HTTP/1.1', signedIn],
    ['GET /app HTTP/1.1', signedIn, named],
    ['POST /app HTTP/1.1', signedIn, 'content-length: 0'],
    ['OPTIONS /app HTTP/1.1', signedIn, named],
    ['GET /app/public HTTP/1.1', signedIn],
    ['GET /app/public HTTP/1.1'],
    ['GET /app/public HTTP/1.1', named],
  ] as const) {
    app.received.length = 0
    await raw(scene.url, request(line, ...more, ...forged))
    const expected = more[0] === signedIn ? [['x-shop-person', 'zhangsan']] : []
    assert.deepEqual(told(app, ...names).sort(), [['x-shop-key', 'ours'], ...expected], [line, ...more].join('; '))
  }
  app.received.length = 0
  const upgrade = ['GET /app HTTP/1.1', 'host: app.test', signedIn, ...socket, ...forged].join('\r\n')
  sockets.once('connection', one => one.terminate())
  assert.match(await raw(scene.url, `${upgrade}\r\n\r\n`), /^HTTP\/1\.1 101 /)
  assert.deepEqual(told(app, ...names).sort(), [
    ['x-shop-key', 'ours'],
    ['x-shop-person', 'zhangsan'],
  ])
})

test('KEEP_HEADERS does not let a client write a configured header', async t => {
  const app = await startUpstream(t)
  const scene = await setUp(t, {
    env: { KEEP_HEADERS: 'x-webauth-*,x-remote-user' },
    config: { upstreams: { '/app': { url: app.url, headers: { 'X-WEBAUTH-USER': '{username}' } } } },
  })
  await (await scene.user()).get('/app', { headers: { 'x-webauth-user': 'admin', 'x-remote-user': 'kept' } })
  assert.deepEqual(told(app, 'x-webauth-user', 'x-remote-user').sort(), [
    ['x-remote-user', 'kept'],
    ['x-webauth-user', 'zhangsan'],
  ])
})

test("responseHeaders change the application's responses, and none of Menshen's", async t => {
  const answer: RequestListener = (request, response) => {
    if (request.url === '/app/cut') return void request.socket.destroy()
    response.setHeader('Server', 'secret/1.0')
    response.setHeader('Content-Security-Policy', ["default-src 'self'", "img-src 'self'"])
    response.setHeader('Cache-Control', 'no-cache')
    response.writeHead(request.url === '/app/gone' ? 410 : 200).end('hello')
  }
  const app = await startUpstream(t, answer)
  const changes = {
    'Content-Security-Policy': "frame-ancestors 'none'",
    server: null,
    'Cache-Control': 'public, max-age=60',
  }
  const scene = await setUp(t, {
    config: {
      rules: [
        { path: '/app/closed', roles: ['developer'] },
        { path: '/app/public', public: true },
      ],
      upstreams: { '/app': { url: app.url, responseHeaders: { ...changes, 'X-Set': 'a b' } } },
    },
  })
  const user = await scene.user()
  for (const path of ['/app', '/app/gone']) {
    const { headers } = await user.get(path)
    assert.equal(headers['content-security-policy'], "frame-ancestors 'none'", path)
    assert.equal(headers.server, undefined, path)
    assert.equal(headers['x-set'], 'a b', path)
    assert.equal(headers['cache-control'], 'private, max-age=60', 'what is for one user is kept by no shared cache')
  }
  assert.equal((await scene.visitor().get('/app/public')).headers['cache-control'], 'public, max-age=60')
  const ours = [
    await user.get('/app/closed', { headers: { accept: 'text/html' } }),
    await scene.visitor().get('/app', { headers: { accept: 'text/html' } }),
    await scene.visitor().get('/app', { headers: { accept: 'application/json' } }),
    await user.get('/app/cut'),
    await user.get('/app/..'),
    await user.get('/login'),
    await user.get('/other'),
  ]
  assert.deepEqual(
    ours.map(({ status, headers }) => [status, headers['x-set']]),
    [403, 302, 401, 502, 400, 200, 200].map(status => [status, undefined]),
  )
})

test('responseHeaders also change the response to a WebSocket upgrade, accepted or not', async t => {
  const app = await startUpstream(t)
  const sockets = new WebSocketServer({ server: app.server, path: '/app/socket' })
  sockets.on('headers', lines => lines.push('Server: secret', 'X-Set: theirs'))
  const scene = await setUp(t, {
    config: { upstreams: { '/app': { url: app.url, responseHeaders: { Server: null, 'x-set': 'ours' } } } },
  })
  const user = await scene.user()
  const socket = dial(scene, user, '/app/socket')
  const [{ headers, rawHeaders }] = await once(socket, 'upgrade')
  socket.terminate()
  assert.equal(headers.server, undefined)
  assert.deepEqual(
    rawHeaders.filter((_: string, i: number) => rawHeaders[i - (i % 2)].toLowerCase() === 'x-set'),
    ['x-set', 'ours'],
  )
  const refused = dial(scene, user, '/app/none').on('error', () => {})
  const [, answer] = await once(refused, 'unexpected-response')
  assert.deepEqual([answer.statusCode, answer.headers['x-set']], [400, 'ours'])
  answer.resume()
})

test('accessToken of an upstream replaces FORWARD_ACCESS_TOKEN', async t => {
  for (const FORWARD_ACCESS_TOKEN of ['true', 'false']) {
    const app = await startUpstream(t)
    const scene = await setUp(t, {
      env: { FORWARD_ACCESS_TOKEN },
      config: {
        rules: [{ path: '/yes/public', public: true }],
        upstreams: {
          '/yes': { url: app.url, accessToken: true },
          '/no': { url: app.url, accessToken: false },
          '/key': { url: app.url, accessToken: false, headers: { Authorization: 'Basic ours' } },
          '/default': app.url,
        },
      },
    })
    const user = await scene.user()
    const sent = async (path: string, client = user) => {
      await client.get(path, { headers: { authorization: 'Basic theirs' } })
      return app
        .last()
        .lines.flatMap(([name, value]) => (name === 'authorization' ? [value.replace(/-CANARY.*/, '')] : []))
    }
    assert.deepEqual(await sent('/yes'), ['Bearer at'])
    assert.deepEqual(await sent('/yes/public', scene.visitor()), [])
    assert.deepEqual(await sent('/no'), ['Basic theirs'])
    assert.deepEqual(await sent('/key'), ['Basic ours'])
    assert.deepEqual(await sent('/default'), [FORWARD_ACCESS_TOKEN === 'true' ? 'Bearer at' : 'Basic theirs'])
  }
})

test('an application that requires a client certificate receives it with pages, uploads and WebSockets', async t => {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const { certFile, keyFile } = makeCertificate(folder, 'menshen', ca, 'menshen.example')
  const server = createSecureServer({
    ...filesOf(makeCertificate(folder, 'app', ca)),
    ...{ ca: filesOf(ca).cert, requestCert: true, rejectUnauthorized: true },
  })
  const names: unknown[] = []
  server.on('secureConnection', socket => names.push(socket.getPeerCertificate().subject.CN))
  server.listen(0, '127.0.0.1')
  await watch(t, server)
  new WebSocketServer({ server }).on('connection', socket => socket.send('hello'))
  const url = `https://localhost:${(server.address() as AddressInfo).port}`
  const scene = await setUp(t, {
    config: {
      upstreams: {
        '/with': { url, caFile: ca.certFile, certFile, keyFile },
        '/without': { url, caFile: ca.certFile },
        '/unknown': { url, certFile, keyFile },
      },
    },
  })
  const user = await scene.user()
  assert.equal((await user.get('/with')).text, 'hello')
  const upload = await user.post('/with', 'body', { headers: { expect: '100-continue' } })
  assert.equal(upload.text, 'hello')
  const socket = dial(scene, user, '/with')
  assert.equal(String((await once(socket, 'message'))[0]), 'hello')
  socket.terminate()
  assert.deepEqual(names, ['menshen', 'menshen', 'menshen'])
  assert.equal((await user.get('/without')).status, 502)
  assert.equal((await user.get('/unknown')).status, 502)
  assert.equal(names.length, 3)
})

test('a page or WebSocket gets 504 if the application does not begin its response within timeoutSeconds', async t => {
  const app = await startUpstream(t, request => void request.resume())
  app.server.on('upgrade', () => {})
  const scene = await setUp(t, { config: { upstreams: { '/app': { url: app.url, timeoutSeconds: 0.2 } } } })
  const user = await scene.user()
  assert.equal((await user.get('/app')).status, 504)
  assert.equal((await user.post('/app', 'x', { headers: { expect: '100-continue' } })).status, 504)
  assert.equal(await refusal(dial(scene, user, '/app')), 504)
  assert.equal((await user.get('/other')).status, 200)
})

test('a slow response that has begun is not cut off by timeoutSeconds', async t => {
  const app = await startUpstream(t, (_request, response) => {
    response.write('first ')
    setTimeout(() => response.end('last'), 1500)
  })
  const scene = await setUp(t, { config: { upstreams: { '/app': { url: app.url, timeoutSeconds: 1 } } } })
  assert.equal((await (await scene.user()).get('/app')).text, 'first last')
})

test('files of an upstream are read again on a reload, and an unusable file changes nothing', async t => {
  const app = await startUpstream(t)
  const file = join(tempFolder(t), 'key')
  writeFileSync(file, 'first\n')
  const provider = await startOidcServer(t)
  const settings = readSettings({ ...provider.settings, STORE: 'memory:' })
  const config: Config = {
    rules: [{ path: '/', public: true }],
    upstreams: { '/': { url: app.url, headers: { 'X-Key': { file } } } },
  }
  const core = await createCore({ settings, config, log: createTestLog().log, now: Date.now })
  t.after(() => core.close())
  const front = await startUpstream(t, core.listener)
  const sent = async () => {
    await createClient(front.url).get('/')
    return app.last().headers['x-key']
  }
  assert.equal(await sent(), 'first')
  writeFileSync(file, 'second')
  await core.prepare(settings, config)(undefined)
  assert.equal(await sent(), 'second')
  writeFileSync(file, 'two\nlines-CANARY')
  assert.throws(
    () => core.prepare(settings, config),
    (error: Error) =>
      error instanceof MenshenError &&
      error.message.includes(`${file} is empty, too long`) &&
      !/CANARY/.test(error.message),
  )
  assert.equal(await sent(), 'second')
})

const URL_OF_APP = 'http://127.0.0.1:9'

/** What is said about one upstream. */
function problems(upstream: object, more: object = {}): string[] {
  try {
    checkConfig({ upstreams: { '/x': { url: URL_OF_APP, ...upstream } }, ...more }, 'test', 'config')
    return []
  } catch (error) {
    assert.ok(error instanceof MenshenError)
    return error.problems.map(({ message }) => message)
  }
}

test('each mistake in the settings of an upstream is refused with a one-sentence error', () => {
  const ours = 'Menshen sets this header itself, or it applies to a single connection; expected another one.'
  const text = 'expected text of visible ASCII characters and spaces between them.'
  const rows: [upstream: object, problem: string][] = [
    [{ headers: { 'X-A': '{usrname}' } }, 'headers.X-A: there is no field {usrname}; did you mean {username}?'],
    [
      { headers: { 'X-A': '{dept}' } },
      'headers.X-A: there is no field {dept}; expected one of sub, username, nickname, email, phone_number, ou_id, ou_name, role, groups.',
    ],
    [
      { headers: { 'X-A': '\u0024{username}' } },
      'headers.X-A: a field is written {username}, without $ or % before it.',
    ],
    [{ headers: { 'X-A': '$username' } }, 'headers.X-A: did you mean {username}?'],
    [
      { headers: { 'X-A': '{{username}}' } },
      'headers.X-A: expected text with fields such as {username} and no other braces.',
    ],
    [{ headers: { 'X-A': '{}' } }, 'headers.X-A: expected text with fields such as {username} and no other braces.'],
    [{ headers: { 'X-A': '' } }, `headers.X-A: ${text}`],
    [{ headers: { 'X-A': 'a\r\nX-B: b' } }, `headers.X-A: ${text}`],
    [{ headers: { 'X-A': '财务' } }, `headers.X-A: ${text}`],
    [{ headers: { 'X-A': null } }, 'headers.X-A: expected text or an object.'],
    [{ headers: { 'X-A': { file: 3 } } }, 'headers.X-A.file: expected text, not a number.'],
    [{ headers: { 'X A': 'a' } }, 'headers.X A: expected the name of a header, for example "X-Tenant".'],
    [{ headers: { 'X-A': 'a', 'x-a': 'b' } }, 'headers.x-a: this is the same header as "X-A".'],
    [{ headers: { 'X-A': 'a', X_a: 'b' } }, 'headers.X_a: this is the same header as "X-A".'],
    [
      { responseHeaders: { Server: null, server: 'x' } },
      'responseHeaders.server: this is the same header as "Server".',
    ],
    [{ responseHeaders: { Server: 'a\nb' } }, `responseHeaders.Server: ${text}`],
    ...['Connection', 'Keep-Alive', 'TE', 'Upgrade', 'Host', 'Cookie', 'Content-Length', 'Transfer-Encoding'].map(
      (name): [object, string] => [{ headers: { [name]: 'a' } }, `headers.${name}: ${ours}`],
    ),
    ...['X_Forwarded_For', 'x-request-id', 'Expect', 'Sec-WebSocket-Key', 'traceparent', 'Proxy_Authorization'].map(
      (name): [object, string] => [{ headers: { [name]: 'a' } }, `headers.${name}: ${ours}`],
    ),
    ...['Set-Cookie', 'Content-Length', 'Transfer-Encoding', 'Connection', 'Content-Encoding', 'Trailer'].map(
      (name): [object, string] => [{ responseHeaders: { [name]: null } }, `responseHeaders.${name}: ${ours}`],
    ),
    [{ accessToken: 'yes' }, 'accessToken: expected true or false or an object.'],
    ...[{}, { exchange: 'entra' }].map((accessToken): [object, string] => [
      { accessToken },
      'accessToken: expected an audience, a resource or a scope, to say what the token is for.',
    ]),
    [{ accessToken: { audience: 3 } }, 'accessToken.audience: expected text, not a number.'],
    [
      { accessToken: { audience: '' } },
      'accessToken.audience: expected text of visible ASCII characters, for example "wiki".',
    ],
    ...['/api', 'https://a.example/#b', 'api.example'].map((resource): [object, string] => [
      { accessToken: { resource } },
      'accessToken.resource: expected an absolute address without a fragment, for example "https://api.example.com".',
    ]),
    ...['', 'a  b', ' a', 'a"b'].map((scope): [object, string] => [
      { accessToken: { scope } },
      'accessToken.scope: expected scopes with one space between them, for example "read write".',
    ]),
    [
      { accessToken: { audience: 'a', exchange: 'okta' } },
      'accessToken.exchange: expected "entra"; leave exchange out for RFC 8693.',
    ],
    [{ timeoutSeconds: 0 }, 'timeoutSeconds: expected at least 0.1.'],
    [{ timeoutSeconds: '30' }, 'timeoutSeconds: expected a number, not text.'],
    [{ timeoutSeconds: 1e9 }, 'timeoutSeconds: expected at most 86400.'],
    [{ caFile: './ca.pem' }, 'caFile: this applies to TLS; expected a url that starts with https.'],
    [
      { url: 'https://app.example', certFile: './c.pem' },
      'certFile: a certificate needs its key; expected keyFile as well.',
    ],
    [
      { url: 'https://app.example', keyFile: './k.pem' },
      'keyFile: a key needs its certificate; expected certFile as well.',
    ],
    [{ timeoutSecond: 3 }, 'there is no "timeoutSecond"; did you mean timeoutSeconds?'],
  ]
  for (const [upstream, problem] of rows) {
    const [said, ...more] = problems(upstream)
    const at = /^there is/.test(problem) ? 'test: upstreams./x: ' : 'test: upstreams./x.'
    assert.deepEqual([said, more], [at + problem, []], JSON.stringify(upstream))
  }
  const misspelt = problems({ accessToken: { audiense: 'a' } })
  assert.deepEqual(misspelt, ['test: upstreams./x.accessToken: there is no "audiense"; did you mean audience?'])
  const ofHost = { hosts: { 'wiki.test': { upstream: { url: URL_OF_APP, accessToken: {} } } } }
  assert.match(problems({}, ofHost).join(), /^test: hosts\.wiki\.test\.upstream\.accessToken: expected an audience/)
  assert.deepEqual(problems({ url: 'unix:/run/app.sock', certFile: 'a', keyFile: 'b' }).length, 2)
  assert.deepEqual(problems({ headers: { 'X-A': '{dept}' } }, { provider: { fields: { dept: ['a.b'] } } }), [])
  assert.deepEqual(
    problems({ headers: { 'X-A': '{dept}' } }, { providers: { one: {}, two: { fields: { dept: ['a'] } } } }),
    [],
  )
})

test('a configured header that another setting already sends is refused', async () => {
  const start = (headers: Headers, more: object = {}, upstream: object = {}) =>
    createMenshen({
      ...{ authUrl: 'https://idp.example.com', clientId: 'a', clientSecret: 'b', store: 'memory:' },
      ...more,
      upstreams: { '/x': { url: URL_OF_APP, headers, ...upstream } },
    })
  for (const [headers, more, upstream, problem] of [
    [
      { X_Forwarded_User: '{email}' },
      {},
      {},
      /createMenshen: upstreams\.\/x\.headers\.X_Forwarded_User: Menshen sends the user/,
    ],
    [{ 'X-Menshen-Assertion': 'a' }, { identityAssertion: 'none' }, {}, /Menshen sends the user in this header/],
    [{ 'X-Person': 'a' }, { identityUser: 'X-Person' }, {}, /Menshen sends the user in this header/],
    [{ Authorization: 'Basic a' }, { forwardAccessToken: true }, {}, /expected accessToken: false/],
    [{ Authorization: 'Basic a' }, {}, { accessToken: true }, /expected accessToken: false/],
  ] as const)
    await assert.rejects(start(headers, more, upstream), problem)
  const menshen = await start({ Authorization: 'Basic a' }, { forwardAccessToken: true }, { accessToken: false })
  await menshen.close()
})

test('an unusable file of an upstream is named in a one-line error that does not show its content', async t => {
  const folder = tempFolder(t)
  const at = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const [ca, other] = [makeAuthority(folder), makeAuthority(tempFolder(t))]
  const missing = join(folder, 'missing')
  const https = { url: 'https://app.example' }
  const junk = at('junk', 'CANARY')
  for (const [upstream, problem] of [
    [{ headers: { 'X-A': { file: missing } } }, `headers.X-A: ${missing} cannot be read (ENOENT); `],
    [{ headers: { 'X-A': { file: folder } } }, `headers.X-A: ${folder} cannot be read (EISDIR); `],
    [{ headers: { 'X-A': { file: at('empty', '\n') } } }, `headers.X-A: ${join(folder, 'empty')} is empty, too long`],
    [
      { headers: { 'X-A': { file: at('two', 'CANARY\n\n') } } },
      `headers.X-A: ${join(folder, 'two')} is empty, too long`,
    ],
    [
      { headers: { 'X-A': { file: at('long', 'a'.repeat(9000)) } } },
      `headers.X-A: ${join(folder, 'long')} is empty, too long`,
    ],
    [{ ...https, caFile: missing }, `caFile: ${missing} cannot be read (ENOENT); `],
    [{ ...https, caFile: junk }, `caFile: ${junk} contains no certificate; expected one in PEM.`],
    [{ ...https, certFile: junk, keyFile: ca.keyFile }, `certFile: ${junk} and ${ca.keyFile} cannot be used (`],
    [
      { ...https, certFile: ca.certFile, keyFile: other.keyFile },
      `certFile: ${ca.certFile} and ${other.keyFile} cannot be used (`,
    ],
  ] as const)
    await assert.rejects(
      createMenshen({
        ...{ authUrl: 'https://idp.example.com', clientId: 'a', clientSecret: 'b', store: 'memory:' },
        upstreams: { '/x': { url: URL_OF_APP, ...upstream } },
      }),
      (error: Error) => {
        assert.ok(error.message.startsWith(`createMenshen: upstreams./x.${problem}`), error.message)
        assert.doesNotMatch(error.message, /CANARY|\n/)
        return true
      },
    )
})

test('a configured header of an upstream is either refused or sent exactly as written', async t => {
  const names = ['X-A', 'a', '!#$%', 'X.Y', 'x y', 'x:y', 'x\n', 'é', '', 'constructor', 'DNT', 'X-Ü']
  const values = [
    'a',
    ' a',
    'a ',
    'a\tb',
    'a\0',
    'a\x7f',
    '{',
    '}',
    '{username',
    'username}',
    '{ username }',
    '{user name}',
  ]
  const more = ['{__proto__}', '{constructor}', '{toString}', '{USERNAME}', '%{username}', '"q"', "a'b", 'ÿ', '\ud800']
  const accepted: [string, string][] = []
  for (const name of names)
    for (const value of [...values, ...more])
      if (problems({ headers: JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`) }).length === 0)
        accepted.push([name, value])
  const app = await startUpstream(t)
  const byValue = accepted.filter(([name]) => name === 'X-A').map(([, value]) => value)
  assert.deepEqual(byValue, ['a', '"q"', "a'b"])
  const headers = Object.fromEntries(accepted.filter(([, value]) => value === 'a'))
  assert.deepEqual(Object.keys(headers), ['X-A', 'a', '!#$%', 'X.Y', 'constructor', 'DNT'])
  const scene = await setUp(t, { config: { upstreams: { '/app': { url: app.url, headers } } } })
  assert.equal((await (await scene.user()).get('/app')).status, 200)
  for (const name of Object.keys(headers)) assert.deepEqual(told(app, name), [[name.toLowerCase(), 'a']])
})
