// Secrets stay in their room, and nothing that comes from outside is ever markup, a header or a log line of its own.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { inspect } from 'node:util'
import { constants, inflateRawSync } from 'node:zlib'
import { pino } from 'pino'
import { END_REASONS } from '../../src/session/end-reasons.ts'
import type { Answer } from '../kit/answers.ts'
import { type Client, createClient, type Response, signIn } from '../kit/client.ts'
import { corpusStrings } from '../kit/corpora.ts'
import { startInstance } from '../kit/instance.ts'
import { openScriptedProvider, type ScriptedProvider } from '../kit/scripted-provider.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import type { Line } from '../kit/test-log.ts'

const LIFE = 7200
/** In every secret of the scripted provider, and in the words of its errors. */
const CANARY = 'CANARY'
const CHALLENGE = 'Bearer error="invalid_token", error_description="description-CANARY 86 13811111111"'

const BROKEN_ANSWERS: Answer[] = [
  { kind: 'json', status: 400, body: { error: 'invalid_grant', error_description: 'description-CANARY' } },
  { kind: 'json', status: 401, body: { error: 'x-CANARY' }, headers: { 'www-authenticate': CHALLENGE } },
  { kind: 'json', status: 200, body: { error: 'x' }, headers: { 'www-authenticate': CHALLENGE } },
  { kind: 'json', status: 500, body: { success: false, code: 'c-CANARY', message: 'm-CANARY', 'key-CANARY': 1 } },
  {
    kind: 'json',
    body: { access_token: ['at-CANARY'], token_type: 'tt-CANARY', expires_in: 'e-CANARY', success: 'CANARY' },
  },
  { kind: 'bytes', body: 'at-CANARY not JSON' },
  { kind: 'wire', bytes: 'at-CANARY\r\n\r\n' },
  { kind: 'redirect', to: 'http://127.0.0.1:9/?token=CANARY' },
  { kind: 'cut', when: 'in the body' },
]

/** The log as main.ts writes it. */
function written(lines: readonly Line[]): string[] {
  const output: string[] = []
  const log = pino({ level: 'trace', base: null }, { write: (line: string) => void output.push(line) })
  for (const { level, fields, event } of lines) log[level](fields, event)
  return output
}

/** Everything a browser can do, and everything a provider can do wrong. Keeps every answer and every ticket. */
async function everything(newClient: () => Client, provider: ScriptedProvider, pass: (seconds: number) => void) {
  const answers: Response[] = []
  const tickets = new Set<string>()
  const keep = async (asked: Promise<Response>) => {
    const answer = await asked
    answers.push(answer)
    for (const [, ticket = ''] of answer.setCookies.join('\n').matchAll(/menshen_(?:session|attempt)=([\w-]{43})/g))
      tickets.add(ticket)
    return answer
  }
  const signedIn = async (username: string) => {
    const client = newClient()
    provider.behaviour.user = { username }
    await keep(client.get('/wanted'))
    const back = await client.follow(await keep(client.post('/login')))
    const { pathname, search } = new URL(back.headers.location ?? '')
    assert.equal((await keep(client.get(pathname + search))).headers.location, '/wanted')
    return client
  }
  const look = async (client: Client) => {
    for (const path of [
      '/',
      '/login',
      '/nothing',
      '/_menshen/me',
      '/_menshen/console',
      '/_menshen/health',
      '/_menshen/check',
    ])
      await keep(client.get(path))
  }

  const [admin, user] = [await signedIn('admin'), await signedIn('zhangsan')]
  await keep(user.post('/login'))
  for (const client of [admin, user]) await look(client)
  const replay = `/callback?code=${provider.codeFor()}&state=state_idp`
  for (let n = 0; n < 2; n++) await keep(newClient().get(replay))

  pass(LIFE - 100)
  for (const client of [admin, user]) await look(client)
  await keep(user.get('/logout', { headers: { 'sec-fetch-site': 'cross-site' } }))
  await keep(user.post('/logout'))
  await look(user)

  for (const fault of BROKEN_ANSWERS) {
    for (const endpoint of ['token', 'userinfo'] as const) {
      provider.answer(endpoint, fault)
      const client = newClient()
      const back = await client.follow(await keep(client.post('/login')))
      const { pathname, search } = new URL(back.headers.location ?? '')
      assert.equal((await keep(client.get(pathname + search))).headers.location, `/login?error=${endpoint}_error`)
      provider.answer(endpoint, { kind: 'normal' })
    }
    const [due, leaving] = [await signedIn('due'), await signedIn('leaving')]
    provider.answer('logout', fault, 'once')
    await keep(leaving.post('/logout'))
    pass(LIFE - 100)
    provider.answer('refresh', fault, 'once')
    await keep(due.get('/'))
    await look(due)
  }
  return { answers, tickets }
}

/** What an answer says, without the one place where a ticket belongs. */
const spoken = ({ headers, setCookies, text }: Response, tickets: Set<string>) => {
  const given = setCookies.map(cookie =>
    cookie.replace(/^menshen_(session|attempt)=([\w-]+);/, (whole, _, ticket) => (tickets.has(ticket) ? '' : whole)),
  )
  return `${JSON.stringify({ ...headers, 'set-cookie': given })}\n${text}`
}

function assertNoSecret(text: string, tickets: Iterable<string>, what: string): void {
  const at = text.indexOf(CANARY)
  assert.equal(at, -1, `${what}: …${text.slice(Math.max(0, at - 200), at + 60)}`)
  for (const ticket of tickets) assert.ok(!text.includes(ticket), `${what} has a ticket`)
}

for (const env of [{}, { STATE_CHECK: 'bound', PKCE: 'S256' }, { REFRESH_FAILURE: 'keep', LOGOUT_STYLE: 'browser' }])
  test(`no token, code, secret or ticket is in any page, header or log line (${JSON.stringify(env)})`, async t => {
    const { provider, visitor, passSeconds, lines } = await setUp(t, { env, application: false })
    const { answers, tickets } = await everything(visitor, provider, passSeconds)
    assert.ok(answers.length > 50)
    assert.ok(tickets.size >= 1)
    for (const answer of answers) {
      assertNoSecret(spoken(answer, tickets), tickets, answer.url)
      assert.ok(answer.status < 500, `${answer.url}: ${answer.status}`)
    }
    for (const line of written(lines)) {
      assertNoSecret(line, tickets, 'the log')
      assert.doesNotMatch(line, /13811111111|_idp|wanted/, 'nor a person’s data, a state or where somebody went')
    }
  })

test('log fields, including nested error causes, contain nothing from a provider response', async t => {
  const { provider, visitor, lines } = await setUp(t, { env: { PROVIDER_TIMEOUT_MS: '500' }, application: false })
  for (const answer of [...BROKEN_ANSWERS, { kind: 'hang' } as const]) {
    const leaving = visitor()
    await signIn(leaving, provider)
    provider.answer('logout', answer, 'once')
    await leaving.post('/logout')
    for (const endpoint of ['token', 'userinfo'] as const) {
      provider.answer(endpoint, answer, 'once')
      await signIn(visitor(), provider)
    }
  }
  for (const { fields } of lines) assertNoSecret(inspect(fields, { depth: 20 }), [], 'what the log was given')
})

test('with LOG_LEVEL=trace, the process output contains no secret, and each line is one JSON object', async t => {
  const provider = await openScriptedProvider(t, { expiresIn: 200 })
  const env = { STORE: 'memory:', LOG_LEVEL: 'trace', RATE_LIMIT_PER_MINUTE: '0' }
  const menshen = await startInstance({ ...provider.settings, ...env })
  t.after(() => menshen.stop())
  const { tickets } = await everything(
    () => createClient(menshen.url),
    provider,
    () => {},
  )
  assert.equal((await menshen.stop()).code, 0)
  assert.ok(menshen.output.length > 20)
  for (const line of menshen.output) {
    assertNoSecret(line, tickets, 'the log')
    assert.equal(typeof JSON.parse(line), 'object', 'one event, one line')
  }
})

test('the store at rest holds no token, no ticket and no personal data', async t => {
  const folder = tempFolder(t)
  const { provider, visitor, passSeconds, close } = await setUp(t, {
    env: { STORE: `sqlite:${folder}/menshen.db`, STATE_CHECK: 'suffix', PKCE: 'S256' },
    application: false,
  })
  const client = visitor()
  const person = { username: 'canary-name', nickname: '金丝雀', email: 'canary@example.com', sub: 'canary-sub' }
  await client.post('/login')
  await signIn(client, provider, {
    ...person,
    phone_number: '86 13899999999',
    ou_name: 'canary-unit',
    ou_id: 'canary-ou',
  })
  const kept = visitor()
  await signIn(kept, provider, person)
  passSeconds(LIFE - 100)
  await client.get('/')
  const secrets = [...client.cookies.values(), ...kept.cookies.values(), ...Object.values(person), CANARY]
  secrets.push('86 13899999999', 'canary-unit', 'canary-ou', 'menshen-test')
  const atRest = () => Buffer.concat(readdirSync(folder).map(name => readFileSync(join(folder, name))))
  const search = (when: string) => {
    const bytes = atRest()
    assert.ok(bytes.length > 4096)
    for (const secret of secrets)
      for (const form of [Buffer.from(secret), Buffer.from(secret, 'utf16le'), Buffer.from(secret, 'base64url')])
        if (form.length > 5) assert.equal(bytes.indexOf(form), -1, `${when}: ${secret}`)
  }
  search('while signed in and refreshed')
  await client.post('/logout')
  await client.get('/callback?error=CANARY')
  search('after the sign-out')
  await close()
  search('after the end')
})

/** All texts and bytes of all tables, as they are and decompressed. */
function valuesIn(file: string): string[] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
    const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM "${name}"`).all())
    return rows
      .flatMap(row => Object.values(row))
      .flatMap(value => {
        if (!(value instanceof Uint8Array)) return [String(value)]
        const bytes = Buffer.from(value)
        return [bytes, ...[0, 1].map(start => inflated(bytes.subarray(start)))].map(bytes => bytes.toString('latin1'))
      })
  } finally {
    database.close()
  }
}

function inflated(bytes: Buffer): Buffer {
  try {
    return inflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH })
  } catch {
    return Buffer.alloc(0)
  }
}

test('no table of the SQLite file contains a host name, username, end reason, event or setting in clear text', async t => {
  const file = join(tempFolder(t), 'menshen.db')
  const { url, user, visitor, lines, close } = await setUp(t, {
    config: { rules: [{ path: '/', roles: ['*'], keys: 'personal' }] },
    env: { STORE: `sqlite:${file}`, SESSION_IDLE_MINUTES: '30' },
  })
  const form = { headers: { origin: url } }
  const ended = await user('canary-name')
  const client = await user('canary-name')
  const made = await client.post('/_menshen/account/keys', { name: 'canary-key', days: '30' }, form)
  const [key = ''] = /mk_[\w-]{43}/.exec(made.text) ?? []
  assert.equal((await visitor().get('/', { headers: { 'x-menshen-key': key } })).status, 200)
  await client.post('/_menshen/account/end', { others: 'yes' }, form)
  assert.equal((await ended.get('/_menshen/me')).status, 401)
  await close()
  const events = [...new Set(lines.map(({ event }) => event))]
  for (const event of ['sign_in', 'key_created', 'key_used', 'session_ended']) assert.ok(events.includes(event), event)

  const values = valuesIn(file)
  for (const kept of [/^instance-/, /^ended:/, /^idle$/])
    assert.ok(
      values.some(value => kept.test(value)),
      String(kept),
    )
  const secrets = ['canary-name', 'canary-key', key, JSON.stringify(hostname()), '"pid"', '"minutes"']
  for (const secret of [...secrets, '"reason"', ...END_REASONS.filter(reason => reason !== 'idle'), ...events])
    assert.deepEqual(
      values.filter(value => value.includes(secret)),
      [],
      secret,
    )
})

const OWN_MARKUP = [
  ...[
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    '</code></div><h1>x</h1>',
  ],
  ...['&lt;script&gt;', '&#60;script&#62;', '<!--', ']]>', '</title><script>', '\u0000<b>', '<\u0000b>', '＜script＞'],
  ...['" autofocus onfocus="x', "' onmouseover='x", '{{7*7}}', '#{7*7}', '<%= 7 %>', 'javascript:alert(1)'],
  ...[
    '\u202e<b>',
    '\ud800',
    '\udfff<b>',
    '\ufeff',
    'a\u2028b\u2029c',
    '\u001b[31mred',
    '\u0007',
    '𝕏<b>𝕏',
    'ﷺ'.repeat(30),
  ],
]
const OWN_LINES = [
  ...[
    'a\r\nSet-Cookie: planted=1',
    'a\nLocation: //evil.example',
    'a\r\n\r\n<script>',
    '\u560a\u560dSet-Cookie: planted=1',
  ],
  ...[
    '%0d%0aSet-Cookie:planted=1',
    '%E5%98%8A%E5%98%8DSet-Cookie:planted=1',
    'a\u0085b',
    '\u000b\u000c',
    '{"level":"error"}\n{',
  ],
]
const LINES = [...OWN_LINES, ...corpusStrings('crlf.txt')]
const OTHERS = [...corpusStrings('xss.txt'), ...corpusStrings('naughty-strings.json')]
const HOSTILE = [...new Set([...OWN_MARKUP, ...LINES, ...OTHERS])].filter(text => text !== '')

/** The tags of a page, in order, as they are. */
/** But for the id of the request, which a button copies. */
const tagsOf = ({ text }: Response) => text.replace(/(?<= data-copy=")[a-z\d]+/g, '').match(/<[^>]*>/g) ?? []

/** The headers that do not depend on the moment or the length. */
function headersOf({ headers }: Response): string[] {
  return Object.keys(headers)
    .filter(name => !['date', 'content-length', 'transfer-encoding'].includes(name))
    .sort()
}

test('no error parameter becomes markup or a header, at /login or through /callback', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const client = visitor()
  const harmless = await client.get('/login?error=harmless')
  const redirect = await client.get('/callback?error=harmless')
  const asTargets = [...OWN_MARKUP, ...LINES].filter(text => /^[\x21-\x7e]+$/.test(text) && !/[&#+]/.test(text))
  const queries = [...HOSTILE.map(text => encodeURIComponent(text.toWellFormed())), ...asTargets]
  for (const query of queries) {
    const page = await client.get(`/login?error=${query}`)
    assert.equal(page.status, 200, query)
    assert.deepEqual(tagsOf(page), tagsOf(harmless), query)
    assert.deepEqual(headersOf(page), headersOf(harmless), query)
    const answer = await client.get(`/callback?error=${query}`)
    assert.equal(answer.status, 302, query)
    assert.deepEqual(headersOf(answer), headersOf(redirect), query)
    assert.match(answer.headers.location ?? '', /^\/login\?error=[\w.*+%-]*$/, query)
    assert.deepEqual(answer.setCookies, [], query)
  }
  assert.equal(provider.calls.length, 0)
  assert.equal(client.cookies.size, 0)
})

test('no user info field becomes markup, a header or a separate log line, and all values stay unchanged', async t => {
  const { provider, visitor, lines } = await setUp(t, { application: false })
  const fields = ['sub', 'ou_id', 'phone_number', 'nickname', 'ou_name', 'email', 'username']
  /** A string in each field that is shown, and the first of them in the others too. */
  const userOf = ([first = '', ...rest]: string[]) =>
    Object.fromEntries(fields.map((field, n) => [field, rest[n - 4] ?? first]))
  const harmless = visitor()
  const first = await signIn(harmless, provider, userOf(['harmless']))
  const expected = new Map<string, Response>()
  for (const path of ['/', '/login']) expected.set(path, await harmless.get(path))
  const own = [...OWN_MARKUP, ...OWN_LINES].map(text => [text])
  const groups = Array.from({ length: Math.ceil(HOSTILE.length / 4) }, (_, n) => HOSTILE.slice(n * 4, n * 4 + 4))
  for (const group of [...own, ...groups]) {
    const [client, user, what] = [visitor(), userOf(group), JSON.stringify(group)]
    const answer = await signIn(client, provider, user)
    assert.equal(answer.headers.location, '/', what)
    assert.deepEqual(headersOf(answer), headersOf(first), what)
    assert.equal(answer.setCookies.length, first.setCookies.length, what)
    const { userInfo } = (await client.get('/_menshen/me')).json<{ userInfo: Record<string, string> }>()
    if (group.every(text => text.isWellFormed())) assert.deepEqual(userInfo, user)
    for (const [path, like] of expected) {
      const page = await client.get(path)
      assert.equal(page.status, like.status, `${path} ${what}`)
      assert.deepEqual(tagsOf(page), tagsOf(like), `${path} ${what}`)
      assert.deepEqual(headersOf(page), headersOf(like), `${path} ${what}`)
    }
  }
  for (const line of written(lines)) assert.match(line, /^\{[^\r\n]*\}\n$/, 'one event, one line')
})

test('the console shows hostile names as text', async t => {
  const { provider, visitor } = await setUp(t, { application: false })
  const shapes = async (admin: Client) => {
    const shapes = new Set<string>()
    for (let path: string | undefined = '/_menshen/console/sessions'; path; ) {
      const page: Response = await admin.get(path)
      assert.equal(page.status, 200)
      for (const tag of tagsOf(page)) shapes.add(tag.replace(/="[^"]*"/g, '=""'))
      path = /<a href="([^"]*)">下一页/.exec(page.text)?.[1]?.replaceAll('&amp;', '&')
    }
    return shapes
  }
  const admin = visitor()
  await signIn(admin, provider, { username: 'admin' })
  await signIn(visitor(), provider)
  const harmless = await shapes(admin)
  for (const text of HOSTILE.slice(0, 120)) await signIn(visitor(), provider, { username: text, nickname: text })
  for (const tag of ['<p>', '<p class="">', '<a href="">', '</p>']) harmless.add(tag) // the next page, or nobody
  assert.deepEqual(
    [...(await shapes(admin))].filter(shape => !harmless.has(shape)),
    [],
  )
  for (const text of HOSTILE.slice(0, 120)) {
    const page = await admin.get(`/_menshen/console/sessions?username=${encodeURIComponent(text.toWellFormed())}`)
    assert.equal(page.status, 200, text)
    for (const tag of tagsOf(page)) assert.ok(harmless.has(tag.replace(/="[^"]*"/g, '=""')), `${text}: ${tag}`)
  }
})

test('request headers are never echoed in a response, and the log contains only the user agent', async t => {
  const { client, lines } = await setUp(t, { application: false })
  const names = [
    'user-agent',
    'referer',
    'origin',
    'accept',
    'accept-language',
    'x-forwarded-for',
    'x-request-id',
    'cookie',
  ]
  const headers = Object.fromEntries(names.map(name => [name, 'echo-me <b>']))
  for (const path of ['/', '/login', '/callback', '/logout', '/_menshen/me', '/_menshen/nothing']) {
    const answer = await client.get(path, { headers })
    assert.doesNotMatch(JSON.stringify(answer.headers) + answer.text, /echo-me/, path)
  }
  const told = written(lines).map(line => JSON.parse(line) as { userAgent?: string })
  for (const { userAgent, ...rest } of told) {
    assert.equal(userAgent ?? 'echo-me <b>', 'echo-me <b>')
    assert.doesNotMatch(JSON.stringify(rest), /echo-me/)
  }
})
