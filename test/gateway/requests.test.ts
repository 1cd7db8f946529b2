// Everything that is not sign-in: who gets a page, who gets the way to the login page, and who a status.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { type Client, signIn } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'

const BROWSER_ACCEPT = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'
const IMAGE_ACCEPT = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8'
const NAVIGATION = { accept: BROWSER_ACCEPT, 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }

const ticketOf = (client: Client) => client.cookies.get('menshen_session') ?? ''

/** Sends these very bytes, and gives everything that comes back. */
async function raw(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.end(bytes)
  return text(socket)
}

test('a visitor is redirected to /login, and a script gets 401', async t => {
  const { client } = await setUp(t, { application: false })
  type Row = [kind: string, headers: Record<string, string>, status: 302 | 401, kept: boolean]
  const rows: Row[] = [
    ['a navigation', NAVIGATION, 302, true],
    ['an old browser', { accept: BROWSER_ACCEPT }, 302, true],
    ['curl', { accept: '*/*' }, 302, true],
    ['nothing said', {}, 302, true],
    ['a navigation that also takes JSON', { accept: 'text/html, application/json' }, 302, true],
    ['an image', { accept: IMAGE_ACCEPT, 'sec-fetch-dest': 'image' }, 302, false],
    ['an image of an old browser', { accept: IMAGE_ACCEPT }, 302, false],
    ['a style', { accept: 'text/css,*/*;q=0.1', 'sec-fetch-dest': 'style' }, 302, false],
    ['a script tag', { accept: '*/*', 'sec-fetch-dest': 'script' }, 302, false],
    ['a frame', { accept: BROWSER_ACCEPT, 'sec-fetch-dest': 'iframe' }, 302, false],
    ['fetch', { accept: '*/*', 'sec-fetch-dest': 'empty' }, 401, false],
    ['fetch that wants HTML', { accept: 'text/html', 'sec-fetch-dest': 'empty' }, 401, false],
    ['XMLHttpRequest', { accept: '*/*', 'x-requested-with': 'XMLHttpRequest' }, 401, false],
    ['xmlhttprequest', { accept: BROWSER_ACCEPT, 'x-requested-with': 'xmlhttprequest' }, 401, false],
    ['the script of a service worker', { accept: '*/*', 'service-worker': 'script' }, 401, false],
    ['JSON', { accept: 'application/json' }, 401, false],
    ['JSON of an API', { accept: 'application/problem+json, application/vnd.api+json' }, 401, false],
    ['an app in a WebView', { accept: BROWSER_ACCEPT, 'x-requested-with': 'com.example.app' }, 302, true],
  ]
  for (const [kind, headers, status, kept] of rows) {
    const answer = await client.get('/wanted?x=1', { headers })
    assert.equal(answer.status, status, kind)
    assert.equal(answer.headers['cache-control'], 'no-store', kind)
    assert.equal(answer.headers.location, status === 302 ? '/login' : undefined, kind)
    const names = answer.setCookies.map(cookie => cookie.split('=')[0])
    assert.deepEqual(names, kept ? ['menshen_return'] : [], kind)
    if (status === 401) {
      assert.match(String(answer.headers['content-type']), /^application\/json/)
      assert.equal(answer.json<{ error: string }>().error, 'unauthenticated')
    }
  }
})

test('media types in Accept are case-insensitive', async t => {
  const { client } = await setUp(t, { application: false })
  assert.equal((await client.get('/x', { headers: { accept: 'Application/JSON' } })).status, 401)
  const page = await client.get('/x', { headers: { accept: 'TEXT/HTML' } })
  assert.equal(page.status, 302)
  assert.equal(page.setCookies.length, 1)
})

test('only GET and HEAD are redirected; other methods get 401 and are never replayed', async t => {
  const { client } = await setUp(t, { application: false })
  const outcomes = { GET: 302, HEAD: 302, POST: 401, PUT: 401, PATCH: 401, DELETE: 401, OPTIONS: 401, PROPFIND: 401 }
  for (const [method, status] of Object.entries(outcomes)) {
    const answer = await client.request({ method, path: '/form', headers: NAVIGATION })
    assert.equal(answer.status, status, method)
    const sets = answer.setCookies.some(cookie => cookie.startsWith('menshen_return='))
    assert.equal(sets, method === 'GET', `${method}: only a GET navigation is worth returning to`)
  }
  const large = await client.post('/form', Buffer.alloc(300_000), { headers: NAVIGATION })
  assert.equal(large.status, 401)
})

test('an icon, image or script of a page does not overwrite the page that the visitor requested', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await client.get('/wanted', { headers: NAVIGATION })
  await client.get('/favicon.ico', { headers: { accept: IMAGE_ACCEPT, 'sec-fetch-dest': 'image' } })
  await client.get('/favicon.ico')
  await client.get('/logo.png', { headers: { accept: IMAGE_ACCEPT } })
  await client.get('/api', { headers: { accept: 'application/json' } })
  await client.post('/form')
  await client.get('/login')
  await client.get('/_menshen/assets/login.js')
  await client.get('/_menshen/unknown', { headers: NAVIGATION })
  assert.equal((await signIn(client, provider)).headers.location, '/wanted')
})

test('a visitor from a portal is redirected to /login even if a colleague at the same address has just signed in', async t => {
  const { provider, client, passSeconds, visitor } = await setUp(t, { application: false })
  const fromPortal = { ...NAVIGATION, 'sec-fetch-site': 'cross-site', 'user-agent': 'Chrome of the whole office' }
  const back = `/callback?code=${provider.codeFor()}&state=a_idp`
  const landing = await client.follow(await client.get(back, { headers: fromPortal }), { headers: fromPortal })
  assert.equal(landing.status, 200, 'the first has arrived')
  passSeconds(1)
  const colleague = await visitor().get('/', { headers: fromPortal })
  assert.deepEqual([colleague.status, colleague.headers.location], [302, '/login'])
})

test('a browser that keeps no cookie gets a 400 page once instead of a redirect loop', async t => {
  const { provider, url } = await setUp(t, { application: false })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const headers = { ...NAVIGATION, 'sec-fetch-site': 'cross-site' }
  const browse = async (path: string) => {
    const request = get(url + path, { agent, headers })
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    return { status: answer.statusCode, location: answer.headers.location, text: await text(answer) }
  }
  const signedIn = await browse(`/callback?code=${provider.codeFor()}&state=a_idp`)
  assert.equal(signedIn.location, '/')
  const landing = await browse('/')
  assert.equal(landing.status, 400)
  assert.match(landing.text, /lang="zh-CN".*Cookie/s)
  assert.equal((await browse('/')).location, '/login', 'once')
})

test('a browser that loses its cookie after landing with it is redirected to /login', async t => {
  const { provider, url, passSeconds } = await setUp(t, { application: false })
  const agents = [1, 2].map(() => new Agent({ keepAlive: true, maxSockets: 1 }))
  t.after(() => {
    for (const agent of agents) agent.destroy()
  })
  const headers = { ...NAVIGATION, 'sec-fetch-site': 'cross-site' }
  const browse = async (path: string, agent = agents[0], cookie?: string) => {
    const request = get(url + path, { agent, headers: cookie ? { ...headers, cookie } : headers })
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    await text(answer)
    const { location, 'set-cookie': cookies = [] } = answer.headers
    return { status: answer.statusCode, location, session: cookies[0]?.split(';')[0] }
  }
  const signedIn = () => browse(`/callback?code=${provider.codeFor()}&state=a_idp`)

  for (const landing of agents) {
    const { session } = await signedIn()
    assert.equal((await browse('/', landing, session)).status, 200, 'over this connection or another')
    const later = await browse('/')
    assert.deepEqual([later.status, later.location], [302, '/login'])
  }
  await signedIn()
  passSeconds(61)
  const late = await browse('/')
  assert.deepEqual([late.status, late.location], [302, '/login'], 'no landing takes a minute')
})

test('visits without a session leave nothing in the store and set no session cookie', async t => {
  const { user, visitor } = await setUp(t, { application: false })
  for (let n = 0; n < 100; n++) {
    const { setCookies } = await visitor().get(`/${n}`)
    assert.ok(setCookies.every(cookie => cookie.startsWith('menshen_return=')))
  }
  const admin = await user('admin')
  const rows = (await admin.get('/_menshen/console/sessions')).text.match(/name="session"/g)
  assert.equal(rows?.length, 1, 'only the session of the one who looks')
})

test('the home page shows the user, the role, the session’s expiry and a sign-out button', async t => {
  const { user } = await setUp(t, { application: false })
  const common = await (await user()).get('/?any=query')
  assert.equal(common.status, 200)
  assert.equal(common.headers['cache-control'], 'no-store')
  assert.match(common.text, /<h1>张三，您好<\/h1>/)
  for (const shown of ['zhangsan', '研发部', 'zhangsan@example.com', '普通用户', 'common'])
    assert.ok(common.text.includes(shown))
  assert.match(common.text, /<time datetime="2026-03-01T10:00:00.000Z">/)
  assert.match(common.text, /<form method="post" action="\/logout">/)
  assert.doesNotMatch(common.text, /\/_menshen\/console/)
  assert.doesNotMatch(common.text, /13811111111/, 'a phone number is nobody’s business on a screen')

  const admin = await (await user('admin')).get('/')
  assert.match(admin.text, /开发者/)
  assert.match(admin.text, /href="\/_menshen\/console"/)
})

test('only developers can open the console, however its path is spelled, and other users get a Chinese 403', async t => {
  const { user, client } = await setUp(t, { application: false })
  const common = await user()
  const paths = [
    ...[
      '/_menshen/console',
      '/_menshen/console?x=1',
      '/_menshen/%63onsole',
      '/_menshen/%63%6fnsole',
      '/_menshen/./console',
    ],
    ...['/_menshen/x/../console', '/_menshen/%2e/console', '/_menshen/x/%2e%2e/console', '/_menshen/console/'],
    ...['/_menshen/console/.', '/_menshen//console', '//_menshen/console', '/_menshen/Console', '/_menshen/console;x'],
    ...[
      '/_menshen/console%2f',
      '/x/../_menshen/console',
      '/./_menshen/console',
      '/%5fmenshen/console',
      '/_menshen%2fconsole',
    ],
    ...[
      '/_menshen\\console',
      '/_menshen/%2563onsole',
      '/_menshen/console%00',
      '/_menshen/console#',
      '/_menshen/\tconsole',
    ],
  ].filter(path => !/[\t\\]/.test(path))
  for (const path of paths) {
    const answer = await common.get(path)
    assert.ok([403, 404, 400].includes(answer.status), `${path}: ${answer.status}`)
    assert.doesNotMatch(answer.text, /控制台|生效的设置/, path)
    assert.notEqual((await client.get(path)).status, 200, path)
  }
  const refused = await common.get('/_menshen/console')
  assert.equal(refused.status, 403)
  assert.match(refused.text, /lang="zh-CN".*没有访问权限/s)
  assert.equal((await client.get('/_menshen/console')).headers.location, '/login')
  assert.equal((await (await user('admin')).get('/_menshen/console')).status, 200)
})

test('only a developer can end another user’s session, however the path is spelled', async t => {
  const { user } = await setUp(t, { application: false })
  const [admin, common, victim] = [await user('admin'), await user(), await user('lisi')]
  const page = (await admin.get('/_menshen/console/sessions?username=lisi')).text
  const session = /name="session" value="([^"]+)"/.exec(page)?.[1] ?? ''
  assert.notEqual(session, '')
  for (const path of [
    '/_menshen/console/end',
    '/_menshen/%63onsole/end',
    '/_menshen/./console/end',
    '/_menshen/x/../console/end',
  ]) {
    const answer = await common.post(path, { session })
    assert.ok([403, 404, 400].includes(answer.status), `${path}: ${answer.status}`)
    assert.equal((await victim.get('/')).status, 200, path)
  }
  const foreign = await admin.post(
    '/_menshen/console/end',
    { session },
    { headers: { origin: 'https://evil.example' } },
  )
  assert.equal(foreign.status, 403)
  assert.equal((await victim.get('/')).status, 200)
  assert.equal((await admin.post('/_menshen/console/end', { session })).status, 303)
  assert.equal((await victim.get('/')).headers.location, '/login')
})

test('a page that does not exist returns a Chinese 404 page', async t => {
  const { user, client } = await setUp(t, { application: false })
  const answer = await (await user()).get('/no/such/page')
  assert.equal(answer.status, 404)
  assert.match(answer.text, /lang="zh-CN".*页面不存在/s)
  assert.ok(answer.headers['content-security-policy'])
  assert.equal((await client.get('/no/such/page')).headers.location, '/login', 'a visitor does not learn what exists')
  for (const path of ['/_menshen/', '/_menshen/nothing', '/_menshen/assets/', '/_menshen/assets/package.json'])
    assert.equal((await client.get(path)).status, 404, path)
  for (const path of ['/_menshen/assets/..%2fpackage.json', '/_menshen/assets/../../package.json'])
    assert.ok([400, 404].includes((await client.get(path)).status), path)
})

test('a method that a route does not support gets 405 with an Allow header', async t => {
  const { user, provider } = await setUp(t, { application: false })
  const client = await user()
  const routes: Record<string, string[]> = {
    '/': ['GET', 'HEAD'],
    '/login': ['GET', 'HEAD', 'POST'],
    '/callback': ['GET'],
    '/logout': ['GET', 'POST'],
    '/_menshen/health': ['GET', 'HEAD'],
    '/_menshen/ready': ['GET', 'HEAD'],
    '/_menshen/me': ['GET', 'HEAD'],
    '/_menshen/console': ['GET', 'HEAD'],
    '/_menshen/console/sessions': ['GET', 'HEAD'],
    '/_menshen/console/settings': ['GET', 'HEAD'],
    '/_menshen/console/health': ['GET', 'HEAD'],
    '/_menshen/console/end': ['POST'],
  }
  const calls = provider.calls.length
  for (const [path, allowed] of Object.entries(routes))
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'M-SEARCH', 'PURGE']) {
      if (allowed.includes(method) || (method === 'TRACE' && path === '/')) continue
      const answer = await client.request({ method, path })
      assert.equal(answer.status, 405, `${method} ${path}`)
      assert.equal(answer.headers.allow, allowed.join(', '), `${method} ${path}`)
      assert.match(answer.text, /不支持的操作/)
    }
  assert.equal(provider.calls.length, calls)
  assert.equal((await client.get('/')).status, 200, 'and nobody was signed out by it')
})

test('TRACE gets 405 with an Allow header on every path, and echoes nothing', async t => {
  const { user, client } = await setUp(t, { application: false })
  for (const signedIn of [await user(), client])
    for (const path of ['/', '/x', '/login']) {
      const answer = await signedIn.request({ method: 'TRACE', path, headers: { 'x-echo': 'canary' } })
      assert.equal(answer.status, 405, path)
      assert.doesNotMatch(answer.text, /canary|menshen_session/)
      assert.match(String(answer.headers.allow), /^GET, HEAD/, `${path}: RFC 9110 wants Allow with each 405`)
    }
})

test('method override headers and parameters have no effect', async t => {
  const { user } = await setUp(t, { application: false })
  const client = await user()
  const headers = { 'x-http-method-override': 'DELETE', 'x-method-override': 'POST', 'x-http-method': 'PUT' }
  assert.equal((await client.get('/?_method=POST', { headers })).status, 200)
  assert.equal((await client.post('/', '', { headers: { 'x-http-method-override': 'GET' } })).status, 405)
})

test('HEAD gets the status and content type of GET without a body', async t => {
  const { user, client } = await setUp(t, { application: false })
  const signedIn = await user()
  for (const path of ['/', '/nothing', '/_menshen/me', '/_menshen/console', '/_menshen/health', '/login']) {
    const [head, get] = [await signedIn.request({ method: 'HEAD', path }), await signedIn.get(path)]
    assert.equal(head.status, get.status, path)
    assert.equal(head.text, '')
    assert.equal(head.headers['content-type'], get.headers['content-type'])
  }
  assert.equal((await client.request({ method: 'HEAD', path: '/' })).headers.location, '/login')
})

test('a request target that is not a path gets 400, and CONNECT and malformed request lines never succeed', async t => {
  const { user, url } = await setUp(t, { application: false })
  const cookie = `Cookie: menshen_session=${ticketOf(await user())}`
  const head = (line: string, host = 'x') =>
    `${line} HTTP/1.1\r\nHost: ${host}\r\n${cookie}\r\nConnection: close\r\n\r\n`
  const lines = ['GET http://evil.example/', 'GET http://169.254.169.254/login', 'OPTIONS *', 'GET *', 'GET login']
  for (const line of [...lines, 'GET ?x', 'GET javascript:alert(1)'])
    assert.match(await raw(url, head(line)), /^HTTP\/1\.1 400 /, line)
  assert.doesNotMatch(await raw(url, head('CONNECT evil.example:443')), /^HTTP\/1\.1 2/)
  for (const line of ['GET /\u0000', 'GET / x', 'G\u0000T /', 'TRACK /'])
    assert.doesNotMatch(await raw(url, head(line)), /^HTTP\/1\.1 [25]/, JSON.stringify(line))
  assert.match(await raw(url, head('GET /login')), /^HTTP\/1\.1 200 /)
})

test('no path, query or Host header causes a 5xx response', async t => {
  const { user, client, visitor } = await setUp(t, { application: false })
  const signedIn = await user()
  const tails = [
    '%',
    '%00',
    '%ff',
    '%2e%2e%2f',
    '..;/',
    '//',
    '\\x',
    '%c0%ae',
    ';a=b',
    '?',
    '??',
    '?%',
    '?a=%ff',
    '#',
    '.',
  ]
  const roots = [
    '/',
    '//',
    '/login',
    '/logout/',
    '/callback',
    '/_menshen',
    '/_menshen/',
    '/_menshen/me',
    '/_menshen/assets/',
  ]
  for (const root of roots)
    for (const tail of tails)
      for (const who of [signedIn, client]) {
        const { status } = await who.get(root + tail)
        assert.ok(status < 500, `${root + tail}: ${status}`)
      }
  for (const host of ['', 'evil.example', 'a/b', '[::1', 'x@y', 'x:99999', 'a b', 'x/_menshen/console?', 'localhost:'])
    for (const path of ['/login', '/_menshen/me', '/', '/_menshen/x']) {
      const { status, text } = await signedIn.get(path, { headers: { host } })
      assert.ok(status < 500, `${host} ${path}: ${status}`)
      assert.doesNotMatch(text, /生效的设置/)
    }
  assert.equal((await client.get(`/${'a'.repeat(4000)}`)).status, 302)
  assert.equal((await client.get(`/${'a'.repeat(12_000)}`)).status, 414, 'longer than any rule is found for')
  assert.ok([302, 431].includes((await client.get('/', { headers: { cookie: 'a=b; '.repeat(3500) } })).status))
  assert.equal((await visitor().get('/_menshen/health')).status, 200)
})

test('the server keeps serving after requests that break off, and logs no error', async t => {
  const { url, visitor, lines } = await setUp(t, { application: false })
  for (const path of ['/login', '/logout', '/form', '/_menshen/console/end'])
    for (const length of ['Content-Length: 100', 'Transfer-Encoding: chunked'])
      await raw(url, `POST ${path} HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n1`)
  assert.equal((await visitor().get('/login')).status, 200)
  const errors = lines.filter(({ level }) => level === 'error').map(({ event }) => event)
  assert.deepEqual(errors, [], 'otherwise anybody can fill the log with them')
})

test('a request with two different tickets gets 401, and neither is accepted', async t => {
  const { user, client } = await setUp(t, { application: false })
  const [one, two] = [ticketOf(await user()), ticketOf(await user('admin'))]
  const status = async (cookie: string) => (await client.get('/_menshen/me', { headers: { cookie } })).status
  for (const [first, second] of [
    [one, two],
    [two, one],
    [one, 'x'],
    ['x', one],
    [one, ''],
    ['', one],
  ])
    assert.equal(await status(`menshen_session=${first}; a=b; menshen_session=${second}`), 401, `${first} ${second}`)
  assert.equal(await status(`menshen_session=${one}; menshen_session=${one}`), 200, 'the same one twice is allowed')
})

test('a ticket under another cookie name, with another prefix or without a name is not accepted', async t => {
  const { user, client } = await setUp(t, { application: false })
  const ticket = ticketOf(await user())
  const status = async (cookie: string) => (await client.get('/_menshen/me', { headers: { cookie } })).status
  const wrong = [
    ...[`__Host-menshen_session=${ticket}`, `__host-menshen_session=${ticket}`, `__Secure-menshen_session=${ticket}`],
    ...[
      `Menshen_session=${ticket}`,
      `menshen_session2=${ticket}`,
      `xmenshen_session=${ticket}`,
      `=menshen_session=${ticket}`,
    ],
    ...[
      `a=menshen_session=${ticket}`,
      `"menshen_session"=${ticket}`,
      `menshen_session:${ticket}`,
      `menshen_session`,
      ticket,
    ],
    ...[
      `menshen_session="${ticket}"`,
      `menshen_session=${ticket}x`,
      `menshen_session=${ticket.slice(1)}`,
      `;=;${ticket}`,
    ],
    ...[`menshen_session=${ticket.toLowerCase()}`, `a=b, menshen_session=${ticket}`, `menshen_session==${ticket}`],
  ].filter(cookie => cookie !== `menshen_session=${ticket}`)
  for (const cookie of wrong) assert.equal(await status(cookie), 401, cookie)
  const right = [`menshen_session=${ticket}`, `a=b;menshen_session=${ticket}`, `a; ;; menshen_session=${ticket} ; c=d`]
  for (const cookie of right) assert.equal(await status(cookie), 200, cookie)
})

test('white space that browsers count as part of a cookie name makes it another cookie', async t => {
  const scene = await setUp(t, { env: { BASE_URL: 'https://app.example.com' }, application: false })
  const [victim, attacker] = await Promise.all([scene.user('lisi'), scene.user('mallory')])
  const [own, planted] = [victim, attacker].map(client => client.cookies.get('__Host-menshen_session'))
  const nameOf = async (cookie: string) => {
    const answer = await scene.client.get('/_menshen/me', { headers: { cookie } })
    return answer.status === 200 ? answer.json<{ userInfo: { username: string } }>().userInfo.username : answer.status
  }
  // A page of any host below example.com can set these for all of them.
  for (const name of ['\u00a0__Host-menshen_session', '\u00a0 __Host-menshen_session']) {
    assert.equal(await nameOf(`${name}=${planted}`), 401, 'it signs no user in')
    assert.equal(await nameOf(`a=1; ${name}=${planted}`), 401)
    assert.equal(await nameOf(`${name}=${planted}; __Host-menshen_session=${own}`), 'lisi', 'it signs no user out')
  }
  assert.equal(await nameOf(`a=1; \t __Host-menshen_session=${own}`), 'lisi')
})

test('a ticket that differs only in its last character gets 401', async t => {
  const { user, client } = await setUp(t, { application: false })
  const ticket = ticketOf(await user())
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const twins = [...alphabet].map(last => ticket.slice(0, -1) + last).filter(twin => twin !== ticket)
  for (const twin of twins) {
    const answer = await client.get('/_menshen/me', { headers: { cookie: `menshen_session=${twin}` } })
    assert.equal(answer.status, 401)
  }
})

test('health and ready are public, and health probe headers give no access to other pages', async t => {
  const { client } = await setUp(t, { application: false })
  for (const [path, status] of [
    ['/_menshen/health', 'ok'],
    ['/_menshen/ready', 'ready'],
  ] as const) {
    const answer = await client.get(path)
    assert.deepEqual([answer.status, answer.json<{ status: string }>().status], [200, status])
    assert.equal(answer.headers['cache-control'], 'no-store')
  }
  for (const agent of ['kube-probe/1.30', 'GoogleHC/1.0', 'ELB-HealthChecker/2.0', 'Prometheus/3.0']) {
    const headers = { 'user-agent': agent, 'x-health-check': '1' }
    assert.equal((await client.get('/', { headers })).headers.location, '/login')
    assert.equal((await client.get('/_menshen/me', { headers })).status, 401)
  }
})

test('/_menshen/me returns 401 as JSON to a visitor, even for a navigation', async t => {
  const { client } = await setUp(t, { application: false })
  const answer = await client.get('/_menshen/me', { headers: NAVIGATION })
  assert.equal(answer.status, 401)
  assert.equal(answer.json<{ error: string }>().error, 'unauthenticated')
  assert.deepEqual(answer.setCookies, [])
})

test('a session expires with its token on the server, even if the browser still sends the cookie', async t => {
  const { provider, visitor, passSeconds } = await setUp(t, { application: false })
  provider.behaviour.refreshTokens = false
  const client = visitor()
  await signIn(client, provider)
  const headers = { cookie: `menshen_session=${ticketOf(client)}` }
  passSeconds(7199)
  assert.equal((await client.get('/', { headers })).status, 200)
  passSeconds(1)
  assert.equal((await client.get('/', { headers })).headers.location, '/login')
  assert.equal((await client.get('/_menshen/me', { headers })).status, 401)
})
