// Our cookies are ours: the application neither sees them nor sets them, and no shared cache keeps a user's page.

import assert from 'node:assert/strict'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { raw, request, startRawUpstream } from './raw.ts'

const KEPT = 'public, max-age=31536000, immutable'

test('after a refresh, cacheable assets stay cacheable and the new session cookie is sent with the next page', async t => {
  const scene = await setUp(t, {
    answer: ({ url = '' }, response) => {
      const caching = {
        '/app.css': KEPT,
        '/kept.html': KEPT,
        '/etag.js': undefined,
        '/no-cache.js': 'max-age=60, no-cache',
      }[url]
      if (url === '/kept.html') response.setHeader('content-type', 'Text/HTML')
      if (caching) response.setHeader('cache-control', caching)
      response.end('body')
    },
  })
  const user = await scene.user()
  scene.passSeconds(7200 - 200)
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await user.get(path, { headers })
    assert.equal(answer.status, 200)
    return [answer.headers['cache-control'], answer.setCookies.map(cookie => cookie.split('=')[0]).join()]
  }
  const forOne = 'private, max-age=31536000, immutable'
  // The refresh itself happens at one of them.
  assert.deepEqual(await ask('/app.css', { 'sec-fetch-dest': 'style' }), [forOne, ''])
  assert.equal(scene.provider.callsTo('refresh').length, 1)
  assert.deepEqual(await ask('/etag.js', { 'sec-fetch-dest': 'script' }), ['private', ''])
  // On plain http the browser does not say what it is for.
  for (const accept of ['text/css,*/*;q=0.1', '*/*', 'image/avif,image/*;q=0.8'])
    assert.deepEqual(await ask('/app.css', { accept }), [forOne, ''])
  assert.deepEqual(await ask('/app.css'), [forOne, ''])

  const renewed = ['no-store', 'menshen_session']
  assert.deepEqual(await ask('/no-cache.js', { accept: '*/*' }), renewed)
  assert.deepEqual(await ask('/page'), renewed)
  assert.deepEqual(await ask('/kept.html'), renewed)
  assert.deepEqual(await ask('/app.css', { 'sec-fetch-dest': 'document' }), renewed)
  assert.deepEqual(await ask('/app.css', { accept: 'text/html' }), renewed)
  // A page that only ever calls its API has no other way to get it.
  assert.deepEqual(await ask('/app.css', { 'sec-fetch-dest': 'empty' }), renewed)
  assert.deepEqual(await ask('/app.css', { accept: 'application/json' }), renewed)
  assert.match(String((await user.get('/page')).setCookies), /Max-Age=7[12]\d\d/)
})

test('response headers in two lines are forwarded, also after a refresh', async t => {
  const lines = [
    'Content-Type: image/png',
    'Content-Type: text/plain',
    'Cache-Control: public',
    'Cache-Control: max-age=9',
  ]
  const hops = ['Connection: X-Hop', 'Connection: X-Other', 'X-Hop: 1', 'X-Other: 2', 'X-Kept: a', 'X-Kept: b']
  const head = ['HTTP/1.1 200 OK', ...lines, ...hops, 'Content-Length: 2'].join('\r\n')
  const upstream = await startRawUpstream(t, socket => void socket.write(`${head}\r\n\r\nok`))
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const user = await scene.user()
  const ask = async () =>
    (await raw(scene.url, request('GET /a HTTP/1.1', `cookie: ${cookieOf(user)}`, 'accept: */*'))).toLowerCase()
  for (const seconds of [0, 7200 - 200, 1]) {
    scene.passSeconds(seconds)
    const answer = await ask()
    assert.match(answer, /^http\/1\.1 200 /)
    for (const kept of ['content-type: image/png', 'content-type: text/plain', 'x-kept: a', 'x-kept: b'])
      assert.ok(answer.includes(`\r\n${kept}\r\n`), kept)
    assert.doesNotMatch(answer, /x-hop|x-other|public/)
    assert.match(answer, /\r\ncache-control: private, max-age=9\r\n/)
  }
  assert.equal(scene.provider.callsTo('refresh').length, 1)
})

test('the application receives all cookies except Menshen’s', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const ticket = user.cookies.get('menshen_session')
  const ours = `menshen_session=${ticket}`
  for (const [sent, seen] of [
    [[ours], []],
    [[`a=1; ${ours}; b=2`], ['a=1; b=2']],
    [[`${ours};a=1`], ['a=1']],
    [[`a=1;${ours}`], ['a=1']],
    [
      ['a=1', ours, 'b=2'],
      ['a=1', 'b=2'],
    ],
    [[`${ours}; menshen_return=x; menshen_attempt=y; menshen_fragment=z; a="b;c"`], ['a="b;c"']],
    [[`Menshen_Session=x; ${ours}; a=menshen_session=x`], ['a=menshen_session=x']],
    [[`my_menshen_session=x; ${ours}; menshen_session2=y`], ['my_menshen_session=x; menshen_session2=y']],
  ] as const) {
    await raw(scene.url, request('GET / HTTP/1.1', ...sent.map(cookie => `Cookie: ${cookie}`)))
    const received = scene.upstream.last().lines.filter(([name]) => name === 'cookie')
    assert.deepEqual(
      received.map(([, value]) => value),
      seen,
      String(sent),
    )
    assert.doesNotMatch(JSON.stringify(scene.upstream.last()), new RegExp(ticket ?? ''))
  }
})

test('the application can neither set nor clear Menshen’s cookies, under any spelling', async t => {
  const theirs = ['a=1; Path=/', 'sid=menshen_session; HttpOnly', 'menshen_session2=x']
  const forged = [
    'menshen_session=evil',
    'menshen_session=; Max-Age=0',
    'menshen_session = evil; Path=/app',
    'MENSHEN_SESSION=evil',
    ' menshen_session=evil',
    // A browser keeps it without a name, and sends it back as if it had one.
    '=menshen_session=evil',
    ' = menshen_session=evil',
    'menshen_return=evil',
    'menshen_attempt=evil',
    'menshen_fragment=evil; Path=/callback',
  ]
  const scene = await setUp(t, {
    answer: (_request, response) => {
      response.writeHead(200, { 'set-cookie': [...forged, ...theirs], 'clear-site-data': '"cache", "cookies"' }).end()
    },
  })
  const user = await scene.user()
  const answer = await user.get('/')
  assert.deepEqual(answer.setCookies, theirs)
  assert.equal(answer.headers['clear-site-data'], undefined)
  assert.equal((await user.get('/')).status, 200)
})

test('a Clear-Site-Data header that does not clear cookies is forwarded', async t => {
  const scene = await setUp(t, {
    answer: (_request, response) => void response.writeHead(200, { 'clear-site-data': '"cache"' }).end(),
  })
  assert.equal((await (await scene.user()).get('/')).headers['clear-site-data'], '"cache"')
})

test('with an https BASE_URL, the application can neither read nor set Menshen’s __Host- cookies', async t => {
  const forged = ['__Host-menshen_session=evil', '__host-Menshen_session=evil', '=__Host-menshen_session=evil']
  const scene = await setUp(t, {
    env: { BASE_URL: 'https://app.example.com' },
    answer: (_request, response) => void response.writeHead(200, { 'set-cookie': forged }).end(),
  })
  const user = await scene.user()
  const answer = await user.get('/')
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.setCookies, [])
  assert.equal(scene.upstream.last().headers.cookie, undefined)
})

test('a signed-in user’s page cannot be stored by shared caches, regardless of the application’s caching headers', async t => {
  const answers: Record<string, string[]> = {
    '/none': [],
    '/public': ['Cache-Control: public, max-age=60'],
    '/shared': ['Cache-Control: s-maxage=600', 'Cache-Control: max-age=5'],
    '/no-store': ['Cache-Control: no-store'],
    '/private': ['Cache-Control: private, max-age=60'],
    '/surrogate': ['Surrogate-Control: max-age=60', 'CDN-Cache-Control: max-age=60', 'X-Accel-Expires: 60'],
  }
  const upstream = await startRawUpstream(t, (socket, head) => {
    const lines = answers[/^GET (\S+)/.exec(head)?.[1] ?? ''] ?? []
    socket.write(`${['HTTP/1.1 200 OK', 'content-length: 0', ...lines].join('\r\n')}\r\n\r\n`)
  })
  const scene = await setUp(t, {
    env: { UPSTREAM: upstream.url },
    config: { rules: [{ path: '/public', public: true }] },
  })
  const user = await scene.user()
  const cachingOf = async (path: string, who = user) => (await who.get(path)).headers
  assert.equal((await cachingOf('/none'))['cache-control'], 'private')
  assert.equal((await cachingOf('/public'))['cache-control'], 'private, max-age=60')
  assert.equal((await cachingOf('/shared'))['cache-control'], 'private, max-age=5')
  assert.equal((await cachingOf('/no-store'))['cache-control'], 'no-store')
  assert.equal((await cachingOf('/private'))['cache-control'], 'private, max-age=60')
  const surrogate = await cachingOf('/surrogate')
  for (const name of ['surrogate-control', 'cdn-cache-control', 'x-accel-expires'])
    assert.equal(surrogate[name], undefined, name)
  // A public page for nobody in particular is the application's to cache.
  assert.equal((await cachingOf('/public', scene.visitor()))['cache-control'], 'public, max-age=60')
})

test('a response with a renewed session cookie has Cache-Control: no-store', async t => {
  const scene = await setUp(t, {
    answer: (_request, response) =>
      void response.writeHead(200, { 'cache-control': 'public, max-age=60', 'set-cookie': 'a=1' }).end(),
  })
  const user = await scene.user()
  scene.passSeconds(7200 - 200)
  const answer = await user.get('/')
  assert.equal(scene.provider.callsTo('refresh').length, 1)
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.equal(answer.setCookies[0], 'a=1')
  assert.match(answer.setCookies[1] ?? '', /^menshen_session=.*Max-Age=7200/)
  assert.match(cookieOf(user), /menshen_session=/)
})
