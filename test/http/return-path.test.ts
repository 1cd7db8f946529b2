// Where the visitor wanted to go: always a path of our own origin, judged by the URL parser that browsers use.

import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import test from 'node:test'
import { readReturnPath, safeReturnPath, signReturnPath } from '../../src/http/return-path.ts'
import { ownPathsOf } from '../../src/paths.ts'
import { signIn } from '../kit/client.ts'
import { corpusStrings } from '../kit/corpora.ts'
import { setUp } from '../kit/set-up.ts'

const ORIGIN = 'https://app.example.com'
const NOW = Date.parse('2026-03-01T08:00:00Z')
const { signIn: SIGN_IN } = ownPathsOf({}, ['staff'])
const OWN = { origin: ORIGIN, signInPaths: SIGN_IN }
const KEYS = [new Uint8Array(32).fill(7)] as const
const RETURN = 'menshen_return'

const EVIL = [
  ...[
    '//evil.example',
    '///evil.example',
    '////evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '\\/evil.example',
  ],
  ...[
    '/\t/evil.example',
    '/\n/evil.example',
    '/\r/evil.example',
    '\t//evil.example',
    ' //evil.example',
    '\u0000//evil.example',
  ],
  ...[
    'https://evil.example',
    'https:evil.example',
    'https:/evil.example',
    'http:///evil.example',
    'HTTPS://evil.example',
  ],
  ...['http://app.example.com/', 'https://app.example.com:8443/', 'https://app.example.com.evil.example/'],
  ...[
    'https://app.example.com@evil.example/',
    'https://app.example.com\\@evil.example',
    '//app.example.com@evil.example',
  ],
  ...[
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\tscript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'blob:x',
  ],
  ...['/.//evil.example', '/..//evil.example', '/x/..//evil.example', '/%2e//evil.example', '/./\\evil.example'],
  ...[
    '/x/%2e%2e//evil.example',
    '/.\\/evil.example',
    '/;@evil.example//',
    '//evil.example/%2f..',
    '/\u2028/evil.example',
  ],
  ...[
    'https://ｅｖｉｌ.example',
    '//evil。example',
    '//[::1]/',
    '//2130706433/',
    'file:///etc/passwd',
    'ftp://evil.example',
  ],
]

/** What a browser makes of a Location of ours. */
function leadsHome(path: string, origin = ORIGIN): boolean {
  return URL.canParse(path, `${origin}/callback`) && new URL(path, `${origin}/callback`).origin === origin
}

function decoded(text: string): string[] {
  try {
    return [decodeURIComponent(text)]
  } catch {
    return []
  }
}

test('a path of our own origin is kept, without its fragment', () => {
  const paths = [
    '/',
    '/a',
    '/a/b?c=d&e=%26',
    '/a//b',
    '/%2F%2Fevil.example',
    '/?u=https://evil.example',
    '/a:b@c',
    '/login/x',
  ]
  for (const path of paths) assert.equal(safeReturnPath(path, ORIGIN, SIGN_IN), path)
  assert.equal(safeReturnPath('/中文?q=é', ORIGIN, SIGN_IN), '/%E4%B8%AD%E6%96%87?q=%C3%A9')
  assert.equal(safeReturnPath('/a#fragment', ORIGIN, SIGN_IN), '/a', 'a fragment never reaches a server')
  assert.equal(safeReturnPath(`${ORIGIN}/a`, ORIGIN, SIGN_IN), '/a')
})

test("any return path stays on Menshen's origin, and sanitizing it again does not change it", () => {
  const lines = [...EVIL, ...corpusStrings('open-redirects.txt')]
  for (const line of lines)
    for (const text of [line, ...decoded(line), ...decoded(line).flatMap(decoded)]) {
      const path = safeReturnPath(text, ORIGIN, SIGN_IN)
      if (path === undefined) continue
      assert.ok(leadsHome(path), JSON.stringify(text))
      assert.match(path, /^\/(?![/\\])[\x21-\x7e]*$/, JSON.stringify(text))
      assert.equal(safeReturnPath(path, ORIGIN, SIGN_IN), path, 'the same again when it is read back')
    }
})

test('a path that leads to another origin is refused', () => {
  const away = EVIL.filter(text => !URL.canParse(text, ORIGIN) || new URL(text, ORIGIN).origin !== ORIGIN)
  assert.ok(away.length > 20)
  for (const text of away) assert.equal(safeReturnPath(text, ORIGIN, SIGN_IN), undefined, JSON.stringify(text))
})

test('a sign-in or sign-out path is not accepted as a return path, in any spelling', () => {
  for (const path of [
    '/login',
    '/callback?code=c&state=s_idp',
    '/callback/staff',
    '/callback/staff?code=c&state=s_idp',
    '/x/../callback/staff?code=c',
    '/logout',
    '/./logout',
    '/x/../logout',
    '/logout?x',
    '/logout#x',
  ])
    assert.equal(safeReturnPath(path, ORIGIN, SIGN_IN), undefined, path)
})

test('a signed return path is accepted until it expires, and only with its key', () => {
  const cookie = signReturnPath('/a?b=中', NOW + 1000, KEYS)
  assert.match(cookie, /^[\w.-]+$/, 'a cookie needs no quotes')
  assert.equal(readReturnPath(cookie, KEYS, OWN, NOW), '/a?b=%E4%B8%AD')
  assert.equal(readReturnPath(cookie, KEYS, OWN, NOW + 999), '/a?b=%E4%B8%AD')
  assert.equal(readReturnPath(cookie, KEYS, OWN, NOW + 1000), undefined)
  assert.equal(readReturnPath(cookie, [new Uint8Array(32)], OWN, NOW), undefined, 'another key')
})

test('a signed return path is checked again when it is read, as BASE_URL may have changed', () => {
  for (const text of EVIL) {
    const path = readReturnPath(signReturnPath(text, NOW + 1000, KEYS), KEYS, OWN, NOW)
    assert.ok(path === undefined || leadsHome(path), JSON.stringify(text))
  }
})

test('a return path cookie with any byte changed, removed or added, or without a signature, is rejected', () => {
  const cookie = signReturnPath('/wanted', NOW + 1000, KEYS)
  assert.equal(readReturnPath(cookie, KEYS, OWN, NOW), '/wanted')
  for (let at = 0; at <= cookie.length; at++) {
    const [before, after] = [cookie.slice(0, at), cookie.slice(at)]
    // A decoder of base64 ignores the last five.
    const added = [...'AB.=! \n'].map(byte => before + byte + after)
    const changed = at < cookie.length ? [...'AB.=!'].map(byte => before + byte + after.slice(1)) : []
    const removed = at < cookie.length ? [before, before + after.slice(1)] : []
    for (const given of [...added, ...changed, ...removed])
      if (given !== cookie) assert.equal(readReturnPath(given, KEYS, OWN, NOW), undefined, JSON.stringify(given))
  }
  // It ignores the last bits of the signature, too.
  const last = cookie.at(-1) ?? ''
  const next = String.fromCharCode(last.charCodeAt(0) + 1)
  assert.equal(readReturnPath(cookie.slice(0, -1) + next, KEYS, OWN, NOW), undefined)
  const text = Buffer.from(`${NOW + 1000} //evil.example`).toString('base64url')
  const unsigned = [text, `${text}.`, `${text}.${createHmac('sha256', '').update(text).digest('base64url')}`]
  const odd = [
    '',
    '.',
    '..',
    'a.b',
    'a.b.c',
    '\u0000',
    '%',
    '=',
    '.'.repeat(4000),
    randomBytes(90).toString('base64url'),
  ]
  for (const given of [...unsigned, ...odd]) assert.equal(readReturnPath(given, KEYS, OWN, NOW), undefined)
})

test('a visitor returns to our own origin after sign-in, regardless of the requested path', async t => {
  const { provider, baseUrl, visitor } = await setUp(t, { application: false })
  const wanted = [...EVIL, ...EVIL.map(encodeURI), ...EVIL.map(text => `/${encodeURIComponent(text)}`)]
  const lines = [...wanted, ...corpusStrings('open-redirects.txt')]
  const targets = lines.filter(line => /^\/[\x21-\x7e]*$/.test(line))
  assert.ok(targets.length > 20)
  for (const path of targets) {
    const client = visitor()
    const visit = await client.get(path)
    assert.ok([302, 200, 400, 404, 405].includes(visit.status), `${path}: ${visit.status}`)
    if (visit.status === 302) assert.match(visit.headers.location ?? '', /^\/login(\?|$)/, path)
    if (!client.cookies.has(RETURN)) continue
    const { headers } = await signIn(client, provider)
    assert.ok(leadsHome(headers.location ?? '', baseUrl), `${path}: ${headers.location}`)
  }
})

test('query parameters, headers and a forged cookie are not used as the return path', async t => {
  const { client, provider } = await setUp(t, { application: false })
  const names = ['next', 'return', 'returnTo', 'redirect', 'redirect_uri', 'target', 'url', 'rd', 'continue']
  const query = names.map(name => `${name}=${encodeURIComponent('//evil.example')}`).join('&')
  const headers = {
    'x-original-url': '//evil.example',
    'x-forwarded-uri': '//evil.example',
    referer: 'https://evil.example/',
    cookie: `${RETURN}=//evil.example; next=//evil.example`,
  }
  const answer = await client.get(`/callback?code=${provider.codeFor()}&state=a_idp&${query}`, { headers })
  assert.equal(answer.headers.location, '/')
})

test('the login page accepts a return path only from our own pages and only to our own origin', async t => {
  const { provider, baseUrl, visitor } = await setUp(t, { application: false })
  const page = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
  const returnedTo = async (wanted: string, site?: string) => {
    const client = visitor()
    const headers = site ? { ...page, 'sec-fetch-site': site } : {}
    const answer = await client.get(`/login?return=${encodeURIComponent(wanted)}`, { headers })
    assert.equal(answer.status, 200)
    return (await signIn(client, provider)).headers.location ?? ''
  }
  assert.equal(await returnedTo('/public?a=b', 'same-origin'), '/public?a=b')
  for (const site of ['cross-site', 'same-site', undefined]) assert.equal(await returnedTo('/public', site), '/')
  for (const wanted of EVIL)
    assert.ok(leadsHome(await returnedTo(wanted, 'same-origin'), baseUrl), JSON.stringify(wanted))
})

test('the return path cookie is HttpOnly, SameSite=Lax, limited to 600 seconds and below 4096 bytes', async t => {
  const { client } = await setUp(t, { application: false })
  const [given = ''] = (await client.get(`/${'a'.repeat(2000)}`)).setCookies
  assert.match(given, /^menshen_return=[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
  assert.ok(given.length < 4096)
  const secure = await setUp(t, { env: { BASE_URL: 'https://app.example.com' }, application: false })
  const [prefixed = ''] = (await secure.client.get('/x')).setCookies
  assert.match(prefixed, /^__Host-menshen_return=.*; Secure$/)
})

test('a return path expires after ten minutes, even if the browser keeps its cookie', async t => {
  const { client, provider, passSeconds } = await setUp(t, { application: false })
  await client.get('/wanted')
  const headers = { cookie: `${RETURN}=${client.cookies.get(RETURN)}` }
  const signInWith = () => client.get(`/callback?code=${provider.codeFor()}&state=a_idp`, { headers })
  passSeconds(599)
  assert.equal((await signInWith()).headers.location, '/wanted')
  passSeconds(1)
  assert.equal((await signInWith()).headers.location, '/')
})

test('a return path is used for one sign-in, and the next one leads to the home page', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await client.get('/wanted')
  assert.ok(client.cookies.has(RETURN))
  assert.equal((await signIn(client, provider)).headers.location, '/wanted')
  assert.ok(!client.cookies.has(RETURN))
  assert.equal((await signIn(client, provider)).headers.location, '/')
})

test('a return path cookie that is tampered with or from another installation is ignored', async t => {
  const { client, provider } = await setUp(t, { application: false })
  const other = await setUp(t, { env: { CLIENT_SECRET: 'another' }, application: false })
  await other.client.get('/theirs')
  const theirs = other.client.cookies.get(RETURN) ?? ''
  await client.get('/ours')
  const ours = client.cookies.get(RETURN) ?? ''
  const [text = '', signature = ''] = ours.split('.')
  const forged = Buffer.from(Buffer.from(text, 'base64url').toString().replace('/ours', '/evil')).toString('base64url')
  for (const cookie of [
    theirs,
    `${forged}.${signature}`,
    `${text}.`,
    text,
    '',
    'undefined',
    `${theirs}; ${RETURN}=${ours}`,
  ]) {
    const path = `/callback?code=${provider.codeFor()}&state=a_idp`
    const answer = await client.get(path, { headers: { cookie: `${RETURN}=${cookie}` } })
    assert.equal(answer.headers.location, '/', cookie)
  }
})

test('a requested path over 2048 characters is dropped, and the sign-in still works', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  for (const [length, kept] of [
    [2048, true],
    [2049, false],
    [9000, false],
  ] as const) {
    const client = visitor()
    const path = `/${'a'.repeat(length - 1)}`
    await client.get(path)
    assert.equal((await signIn(client, provider)).headers.location, kept ? path : '/', String(length))
  }
})

test('a path that is too long does not restore the previously requested page', async t => {
  const { client, provider } = await setUp(t, { application: false })
  await client.get('/earlier')
  await client.get(`/page?${'a'.repeat(5000)}`)
  assert.equal((await signIn(client, provider)).headers.location, '/')
})

const BROWSER = { 'user-agent': 'Mozilla/5.0', accept: 'text/html' }

/** The value of a hidden field of the login page. */
function fieldOf(html: string, name: string): string {
  return new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? ''
}

test('each of five tabs has its own return path in its login form and returns to its own page', async t => {
  const { client, provider } = await setUp(t)
  const wanted = ['/a?x=1&error=2', '/b', '/c/%E4%B8%AD?q=a%26b', '/d', `/e?${'long=1&'.repeat(1100)}`]
  // All are sent away before the first login page is asked for.
  const away = []
  for (const path of wanted) away.push(await client.get(path, { headers: BROWSER }))
  const states = []
  for (const [n, redirect] of away.entries()) {
    assert.match(redirect.headers.location ?? '', /^\/login\?return=/)
    const page = await client.follow(redirect, { headers: BROWSER })
    assert.equal(page.status, 200)
    assert.doesNotMatch(page.text, /role="alert"/, 'a parameter of the page is none of ours')
    const signed = fieldOf(page.text, 'return')
    assert.ok(signed, String(wanted[n]))
    const started = await client.post('/login', { return: signed, visitor: 'true', fragment: `#f${n}` })
    states.push(new URL(started.headers.location ?? '').searchParams.get('state'))
  }
  for (const [n, state] of states.entries()) {
    const back = await client.get(`/callback?code=${provider.codeFor()}&state=${state}`)
    assert.equal(back.headers.location, `${wanted[n]}#f${n}`)
  }
})

test('the form of a tab continues to its own page if another tab has signed in since', async t => {
  const { client, provider } = await setUp(t)
  const page = await client.follow(await client.get('/mine', { headers: BROWSER }), { headers: BROWSER })
  await signIn(client, provider)
  const fields = { return: fieldOf(page.text, 'return'), visitor: 'true' }
  const answer = await client.post('/login', fields)
  assert.deepEqual([answer.status, answer.headers.location], [303, '/mine'])
  const another = await client.post('/login', { return: fields.return })
  assert.match(another.headers.location ?? '', /\/oauth\/authorize\?/, 'the page of a user offers another account')
})

test('a return path of 8192 characters is kept with the attempt, and a longer one is dropped', async t => {
  const { provider, visitor } = await setUp(t)
  for (const [length, isKept] of [
    [8192, true],
    [8193, false],
  ] as const) {
    const client = visitor()
    const path = `/page?${'a'.repeat(length - 6)}`
    const page = await client.follow(await client.get(path))
    const started = await client.post('/login', { return: fieldOf(page.text, 'return') })
    const state = new URL(started.headers.location ?? '').searchParams.get('state')
    const back = await client.get(`/callback?code=${provider.codeFor()}&state=${state}`)
    assert.equal(back.headers.location, isKept ? path : '/')
  }
})

test('an unsigned or forged return path in the URL or form of the login page is ignored', async t => {
  const { client, provider } = await setUp(t)
  const long = `/mine?${'a'.repeat(2100)}`
  const [, query = ''] = (await client.get(long, { headers: BROWSER })).headers.location?.split('/login') ?? []
  await client.get('/mine', { headers: BROWSER })
  const forged = [query.replace('/mine', '/evil'), query.replace('/mine', '//evil.example'), '?return=1.a/evil']
  for (const search of forged) {
    const page = await pageAt(search)
    assert.equal(fieldOf(page, 'return'), '', search)
  }
  const started = await client.post('/login', { return: '/evil', fragment: 'javascript:alert(1)' })
  const state = new URL(started.headers.location ?? '').searchParams.get('state')
  const back = await client.get(`/callback?code=${provider.codeFor()}&state=${state}`)
  assert.equal(back.headers.location, '/mine', 'the cookie counts')

  async function pageAt(search: string): Promise<string> {
    return (await client.get(`/login${search}`, { headers: { cookie: '' } })).text
  }
})
