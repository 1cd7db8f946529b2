// GET /login, POST /login: one button, the right address behind it, and clear words for everything that went wrong.

import assert from 'node:assert/strict'
import test from 'node:test'
import { type Response, signIn } from '../kit/client.ts'
import { openGateway, setUp } from '../kit/set-up.ts'

const CODES = [
  ...['missing_code', 'invalid_state', 'token_error', 'userinfo_error', 'callback_error'],
  ...['access_denied', 'invalid_request', 'unauthorized_client', 'unsupported_response_type'],
  ...['invalid_scope', 'server_error', 'temporarily_unavailable'],
]

const unescaped = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&')

function authorizeAddress({ text }: Response): URL {
  return new URL(unescaped(/data-authorize="([^"]*)"/.exec(text)?.[1] ?? ''))
}

/** The paragraphs of the alert: the sentence, the remedy, and the code if it is shown. */
function alertOf({ text }: Response): string[] {
  const [, alert = ''] = /role="alert">(.*?)<\/div>/s.exec(text) ?? []
  return [...alert.matchAll(/<p[^>]*>(.*?)<\/p>/gs)].map(([, paragraph = '']) => paragraph.replace(/<[^>]*>/g, ''))
}

const buttonOf = ({ text }: Response) => /<button[^>]*>[^<]*<\/button>/.exec(text)?.[0] ?? ''

test('GET /login shows a Chinese page with the unified identity sign-in button', async t => {
  const { client } = await setUp(t, { env: { APP_NAME: '采购 & <平台>' }, application: false })
  const page = await client.get('/login')
  assert.equal(page.status, 200)
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  assert.match(page.text, /^<!doctype html>\s*<html lang="zh-CN">/)
  assert.match(buttonOf(page), />使用统一身份认证登录</)
  assert.doesNotMatch(buttonOf(page), /disabled/)
  assert.match(page.text, /采购 &amp; &lt;平台&gt;/)
  assert.deepEqual(alertOf(page), [])
  assert.deepEqual(page.setCookies, [], 'a visitor who only looks gets no cookie')
})

test('the login page has no inline scripts or styles, and its Content-Security-Policy forbids them', async t => {
  const { client } = await setUp(t, { application: false })
  const page = await client.get('/login?error=token_error')
  const policy = String(page.headers['content-security-policy'])
  assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval|\*/)
  for (const part of ["default-src 'none'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"])
    assert.ok(policy.includes(part), part)
  assert.equal(page.headers['x-content-type-options'], 'nosniff')
  assert.equal(page.headers['cache-control'], 'no-store')
  assert.ok(page.headers['referrer-policy'])
  assert.doesNotMatch(page.text, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:/i)
  const addresses = [...page.text.matchAll(/\s(?:src|href)="([^"]*)"/g)].map(([, address = '']) => address)
  assert.ok(addresses.length >= 3)
  for (const address of addresses) {
    assert.match(address, /^\/_menshen\/assets\//, 'nothing comes from elsewhere')
    const asset = await client.get(address)
    assert.equal(asset.status, 200)
    assert.match(String(asset.headers['cache-control']), /immutable/)
  }
})

test('Strict-Transport-Security is sent only if BASE_URL is https', async t => {
  const plain = await setUp(t, { application: false })
  assert.equal((await plain.client.get('/login')).headers['strict-transport-security'], undefined)
  const secure = await setUp(t, { env: { BASE_URL: 'https://app.example.com' }, application: false })
  assert.equal((await secure.client.get('/login')).headers['strict-transport-security'], 'max-age=31536000')
})

test('HSTS_MAX_AGE sets the max-age of Strict-Transport-Security, and 0 or a loopback host omits the header', async t => {
  const BASE_URL = 'https://app.example.com'
  const shown = async (env: Record<string, string>, own?: string) => {
    const scene = await setUp(t, {
      env,
      config: { rules: [{ path: '/', public: true }] },
      answer: (_, response) => response.end(own && response.setHeader('strict-transport-security', own) ? '' : 'hello'),
    })
    const answers = [await scene.client.get('/login'), await scene.client.get('/page')]
    return answers.map(({ headers }) => headers['strict-transport-security'])
  }
  assert.deepEqual(await shown({ BASE_URL, HSTS_MAX_AGE: '300' }), ['max-age=300', 'max-age=300'])
  assert.deepEqual(await shown({ BASE_URL, HSTS_MAX_AGE: '0' }), [undefined, undefined])
  const own = 'max-age=5; includeSubDomains'
  assert.deepEqual(await shown({ BASE_URL }, own), ['max-age=31536000', own], 'once, as the application says')
  assert.deepEqual(await shown({ BASE_URL, HSTS_MAX_AGE: '0' }, own), [undefined, own])
  for (const loopback of ['https://localhost:8443', 'https://127.0.0.1', 'https://app.localhost', 'https://[::1]:3000'])
    assert.deepEqual(await shown({ BASE_URL: loopback }), [undefined, undefined], loopback)
})

test('pages with a form have a Referrer-Policy that lets the browser send its origin with the form', async t => {
  // With no-referrer a browser sends `Origin: null`, and on plain http beyond this machine nothing else tells us that the
  // form is ours: nobody could sign in without scripts, or sign out at all.
  const { client, provider } = await setUp(t, { application: false })
  const pages = [await client.get('/login')]
  await signIn(client, provider)
  pages.push(await client.get('/'), await client.get('/logout', { headers: { 'sec-fetch-site': 'cross-site' } }))
  for (const page of pages) {
    assert.match(page.text, /<form[^>]*method="post"/)
    assert.match(
      String(page.headers['referrer-policy']),
      /^(same-origin|strict-origin|strict-origin-when-cross-origin)$/,
    )
  }
})

test('the sign-in button leads to the authorization endpoint with the four fixed parameters', async t => {
  const { client, provider, baseUrl } = await setUp(t, { application: false })
  const address = authorizeAddress(await client.get('/login'))
  assert.equal(address.origin + address.pathname, `${provider.url}/oauth/authorize`)
  assert.deepEqual(
    [...address.searchParams],
    [
      ['response_type', 'code'],
      ['scope', 'read'],
      ['client_id', 'menshen-test'],
      ['redirect_uri', `${baseUrl}/callback`],
    ],
  )
})

test('the authorization path of specification 2.5 is appended to an AUTH_URL with a path or a trailing slash', async t => {
  for (const tail of ['/', '/idp', '/idp/']) {
    const { client } = await setUp(t, { env: { AUTH_URL: `https://idp.example.com${tail}` }, application: false })
    const { origin, pathname } = authorizeAddress(await client.get('/login'))
    assert.equal(origin + pathname, `https://idp.example.com${tail.replace(/\/$/, '')}/oauth/authorize`)
  }
})

test('POST /login without a script redirects with 303 and exactly the five parameters', async t => {
  const { client, provider, baseUrl } = await setUp(t, { application: false })
  const states = new Set<string>()
  for (let n = 0; n < 50; n++) {
    const answer = await client.post('/login', {}, { headers: { origin: baseUrl, 'sec-fetch-site': 'same-origin' } })
    assert.equal(answer.status, 303)
    const address = new URL(answer.headers.location ?? '')
    assert.equal(address.origin + address.pathname, `${provider.url}/oauth/authorize`)
    const { state = '', ...fixed } = Object.fromEntries(address.searchParams)
    assert.equal(address.searchParams.size, 5, 'each exactly once')
    assert.deepEqual(fixed, {
      response_type: 'code',
      scope: 'read',
      client_id: 'menshen-test',
      redirect_uri: `${baseUrl}/callback`,
    })
    assert.match(state, /^[\w-]{22,}_idp$/, 'at least 128 random bits')
    states.add(state)
  }
  assert.equal(states.size, 50)
})

test('the whole sign-in works without a script and returns to the requested page', async t => {
  const { client } = await setUp(t, { application: false })
  const toLogin = await client.get('/deep/link?q=%E4%B8%AD&r=1')
  assert.equal(toLogin.headers.location, '/login')
  await client.follow(toLogin)
  const toProvider = await client.post('/login')
  const back = await client.follow(toProvider)
  const { pathname, search } = new URL(back.headers.location ?? '')
  const signedIn = await client.get(pathname + search)
  assert.equal(signedIn.status, 302)
  assert.equal(signedIn.headers.location, '/deep/link?q=%E4%B8%AD&r=1')
  assert.equal((await client.get('/')).status, 200)
})

test('POST /login from another site is refused with 403 and starts no attempt', async t => {
  const { client, baseUrl } = await setUp(t, { env: { STATE_CHECK: 'bound' }, application: false })
  const foreign = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: baseUrl },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `${baseUrl}.evil.example` },
    { origin: baseUrl.replace('http:', 'https:') },
    { referer: 'https://evil.example/login' },
    { referer: 'not an address' },
  ]
  for (const headers of foreign) {
    const answer = await client.post('/login', {}, { headers })
    assert.equal(answer.status, 403, JSON.stringify(headers))
    assert.match(answer.text, /lang="zh-CN"/)
    assert.deepEqual(answer.setCookies, [])
  }
  for (const headers of [{}, { origin: baseUrl }, { referer: `${baseUrl}/login` }])
    assert.equal((await client.post('/login', {}, { headers })).status, 303, JSON.stringify(headers))
})

test('POST /login accepts a chunked body without Content-Length', async t => {
  const { client } = await setUp(t, { application: false })
  const headers = { 'transfer-encoding': 'chunked', 'content-type': 'application/x-www-form-urlencoded' }
  assert.equal((await client.post('/login', 'a=1', { headers })).status, 303)
})

test('POST /login refuses a body above 16 KiB with 413, chunked or not', async t => {
  const { client } = await setUp(t, { application: false })
  const body = 'a'.repeat(16 * 1024 + 1)
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
    const answer = await client.post('/login', body, { headers })
    assert.equal(answer.status, 413, JSON.stringify(headers))
    assert.deepEqual(answer.setCookies, [])
  }
})

test('addresses are built from the settings, never from Host, Forwarded or X-Forwarded-* headers', async t => {
  const { client, baseUrl } = await setUp(t, { application: false })
  const headers = {
    host: 'evil.example',
    forwarded: 'host=evil.example;proto=https',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    'x-original-url': '/evil',
  }
  const page = await client.get('/login', { headers })
  assert.equal(authorizeAddress(page).searchParams.get('redirect_uri'), `${baseUrl}/callback`)
  assert.doesNotMatch(page.text, /evil/)
  const answers = [
    await client.post('/login', {}, { headers }),
    await client.get('/callback?error=x', { headers }),
    await client.get('/protected', { headers }),
  ]
  for (const answer of answers) assert.doesNotMatch(JSON.stringify(answer.headers), /evil/)
})

test('each error code has its own Chinese message and a remedy', async t => {
  const { client } = await setUp(t, { application: false })
  const sentences = new Set<string>()
  for (const code of CODES) {
    const page = await client.get(`/login?error=${code}`)
    assert.equal(page.status, 200)
    const [sentence = '', remedy = '', ...more] = alertOf(page)
    assert.match(sentence, /^\p{sc=Han}.*。$/u, code)
    assert.match(remedy, /^\p{sc=Han}.*请.*。$|^请.*。$|^您.*。$/u, code)
    assert.deepEqual(more, [], `${code} needs no small print`)
    sentences.add(sentence)
    assert.match(buttonOf(page), />使用统一身份认证登录</, 'the user can try again')
  }
  assert.equal(sentences.size, CODES.length)
})

test('an unknown error code gets the general message, with the escaped code in small print', async t => {
  const { client } = await setUp(t, { application: false })
  const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', 'Token_Error', ' token_error']
  const general = alertOf(await client.get('/login?error=something_else'))
  assert.equal(general.length, 3)
  assert.match(general[2] ?? '', /something_else$/)
  for (const code of [...names, '<b>x</b>', '"><script>alert(1)</script>', "' onload='x", '&lt;', '中文']) {
    const page = await client.get(`/login?error=${encodeURIComponent(code)}`)
    assert.equal(page.status, 200, code)
    const [sentence, remedy, print = ''] = alertOf(page)
    assert.deepEqual([sentence, remedy], general.slice(0, 2), code)
    assert.ok(unescaped(print).replaceAll('&lt;', '<').replaceAll('&gt;', '>').includes(code.trim()) || code === '&lt;')
    if (/[<>"'&]/.test(code)) assert.ok(!page.text.includes(code), code)
  }
  assert.match((await client.get('/login?error=%26lt%3B')).text, /&amp;lt;/)
})

test('an unknown error code is shown with at most 40 characters and without bidi control characters', async t => {
  const { client } = await setUp(t, { application: false })
  const lure = `${'a'.repeat(38)} 1-call-0800-000-000-now`
  const [, , print = ''] = alertOf(await client.get(`/login?error=${encodeURIComponent(lure)}`))
  assert.equal(print, `未知错误：${'a'.repeat(38)} 1…`)
  const turned = await client.get(`/login?error=${encodeURIComponent('ab\u202ecd\u0000')}`)
  assert.match(turned.text, /<code>abcd<\/code>/)
})

test('the login page tolerates a very long, empty, repeated or malformed error parameter', async t => {
  const { client } = await setUp(t, { application: false })
  const long = await client.get(`/login?error=${'x'.repeat(8000)}`)
  assert.equal(long.status, 200)
  assert.ok(long.text.length < 6000, 'the page does not grow with it')
  assert.deepEqual(alertOf(await client.get('/login?error=')), [])
  for (const query of [
    'error',
    'error=%',
    'error=%ff%fe',
    'error=%00',
    'error=%ED%A0%80',
    'error=a&error=b',
    '%',
    '&&&=',
  ])
    assert.equal((await client.get(`/login?${query}`)).status, 200, query)
  const emoji = await client.get(`/login?error=${encodeURIComponent('👨‍👩‍👧'.repeat(50))}`)
  assert.doesNotMatch(emoji.text, /\ufffd/, 'no character is cut in half')
})

test('the login page names every missing setting, and its button is disabled', async t => {
  const all = { AUTH_URL: 'https://idp.example.com', CLIENT_ID: 'id-1', CLIENT_SECRET: 'canary-of-secret' }
  const names = Object.keys(all)
  for (let mask = 0; mask < 7; mask++) {
    const given = Object.fromEntries(Object.entries(all).filter((_, bit) => mask & (1 << bit)))
    const gateway = await openGateway(t, given)
    const page = await gateway.visitor().get('/login')
    assert.equal(page.status, 200)
    const listed = [...page.text.matchAll(/<li><code>(\w+)<\/code>/g)].map(([, name]) => name)
    assert.deepEqual(
      listed,
      names.filter(name => !(name in given)),
    )
    assert.match(alertOf(page)[0] ?? '', /\p{sc=Han}/u)
    assert.match(buttonOf(page), / disabled[ >]/)
    assert.doesNotMatch(page.text, /canary-of-secret/)
    const pressed = await gateway.visitor().post('/login')
    assert.deepEqual([pressed.status, pressed.headers.location], [303, '/login'])
    const back = await gateway.visitor().get('/callback?code=c&state=x_idp')
    assert.match(back.headers.location ?? '', /^\/login\?error=(token|callback)_error$/)
    assert.equal((await gateway.visitor().get('/')).headers.location, '/login')
  }
})

test('the login page shows signed-in users their name and a link to the requested page or the home page', async t => {
  const { client, provider, visitor } = await setUp(t, { application: false })
  await signIn(client, provider, { nickname: '<李四>' })
  const page = await client.get('/login')
  assert.match(page.text, /您已登录：<strong>&lt;李四&gt;<\/strong>/)
  assert.match(page.text, /<a class="button" href="\/">/)
  assert.match(buttonOf(page), />使用统一身份认证登录</, 'to change the account')

  const other = visitor()
  await other.get('/a?b=1&c="2"')
  const cookie = [...client.cookies, ...other.cookies].map(pair => pair.join('=')).join('; ')
  const withReturn = await client.get('/login', { headers: { cookie } })
  assert.match(withReturn.text, /<a class="button" href="\/a\?b=1&amp;c=%222%22">/)
})

test('with a malformed or unknown session cookie, the login page loads as for a signed-out visitor', async t => {
  const { client } = await setUp(t, { application: false })
  const tickets = [
    '',
    'x',
    'A'.repeat(43),
    'A'.repeat(5000),
    '"',
    '%00',
    '\xff\xfe',
    '=;=;',
    '{}',
    '__proto__',
    '../..',
  ]
  for (const ticket of tickets) {
    const page = await client.get('/login', { headers: { cookie: `menshen_session=${ticket}` } })
    assert.equal(page.status, 200, ticket)
    assert.doesNotMatch(page.text, /您已登录/)
    assert.deepEqual(page.setCookies, [])
  }
})

test('HEAD /login responds like GET, without the body', async t => {
  const { client } = await setUp(t, { application: false })
  const { status, text, headers } = await client.request({ method: 'HEAD', path: '/login' })
  assert.deepEqual([status, text], [200, ''])
  assert.ok(headers['content-security-policy'])
})
