// Who may see what: the most specific rule decides, and no spelling of a path gets around it.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Config, Rule } from '../../src/index.ts'
import { type Client, cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { raw, request, statusOf } from '../proxy/raw.ts'

const RULES: Rule[] = [
  { path: '/internal', roles: ['developer'] },
  { path: '/internal/shared', roles: ['developer', 'common'] },
  { path: '/internal/door', exact: true, public: true },
  { path: '/public', public: true },
  { path: '/public/internal', roles: ['developer'] },
  { path: '/forms', methods: ['GET'], roles: ['developer', 'common'] },
  { path: '/forms', roles: ['developer'] },
  { path: '/@team', roles: ['developer'] },
  { path: '/管理', roles: ['developer'] },
]
const CONFIG: Config = { rules: RULES }

test('the most specific rule decides: the longer path, then exact, then methods', async t => {
  const scene = await setUp(t, { config: CONFIG })
  const [visitor, common, developer] = [scene.visitor(), await scene.user(), await scene.user('admin')]
  const html = { accept: 'text/html' }
  type Row = [method: string, path: string, visitor: number, common: number, developer: number]
  const rows: Row[] = [
    ['GET', '/', 302, 200, 200],
    ['GET', '/anything', 302, 200, 200],
    ['GET', '/internal', 302, 403, 200],
    ['GET', '/internal/', 302, 403, 200],
    ['GET', '/internal/x', 302, 403, 200],
    ['GET', '/internalx', 302, 200, 200],
    ['GET', '/internal/shared', 302, 200, 200],
    ['GET', '/internal/shared/x', 302, 200, 200],
    ['GET', '/internal/sharedx', 302, 403, 200],
    ['GET', '/internal/door', 200, 200, 200],
    ['GET', '/internal/door/x', 302, 403, 200],
    ['GET', '/public', 200, 200, 200],
    ['POST', '/public/x', 200, 200, 200],
    ['GET', '/public/internal', 302, 403, 200],
    ['GET', '/forms/1', 302, 200, 200],
    ['HEAD', '/forms/1', 302, 200, 200],
    ['POST', '/forms/1', 401, 403, 200],
    ['DELETE', '/forms/1', 401, 403, 200],
    ['OPTIONS', '/forms/1', 401, 403, 200],
    ['GET', '/@team', 302, 403, 200],
    ['GET', '/%40team', 302, 403, 200],
    ['GET', encodeURI('/管理'), 302, 403, 200],
    ['GET', encodeURI('/管理/用户').toLowerCase(), 302, 403, 200],
    ['GET', '/%69nternal', 302, 403, 200],
    ['GET', '/internal?x=/public', 302, 403, 200],
  ]
  for (const [method, path, ...expected] of rows) {
    const statuses = []
    for (const who of [visitor, common, developer])
      statuses.push((await who.request({ method, path, headers: html })).status)
    assert.deepEqual(statuses, expected, `${method} ${path}`)
  }
})

test('a refusal is an HTML page, or JSON if the client asks for it, and the application gets no request', async t => {
  const scene = await setUp(t, { config: CONFIG })
  const user = await scene.user()
  assert.match((await user.get('/internal')).text, /没有访问权限/)
  const answer = await user.get('/internal', { headers: { accept: 'application/json' } })
  assert.equal(answer.status, 403)
  assert.equal(answer.json<{ error: string }>().error, 'refused')
  assert.equal(scene.upstream.received.length, 0)
})

test('a shadow rule refuses no request and logs what it would have refused', async t => {
  const rules: Rule[] = [
    { path: '/', roles: ['developer', 'common'] },
    { path: '/trial', roles: ['developer'], shadow: true },
  ]
  const scene = await setUp(t, { config: { rules } })
  assert.equal((await (await scene.user()).get('/trial/x')).status, 200)
  assert.equal((await (await scene.user('admin')).get('/trial/x')).status, 200)
  const warnings = scene.lines.filter(({ event }) => event === 'shadow_refused')
  assert.equal(warnings.length, 1)
  const { requestId, session, ...fields } = { ...warnings[0]?.fields } as { requestId?: string; session?: string }
  assert.match(`${requestId} ${session}`, /^\w{12} [\w-]{10}$/)
  assert.deepEqual(fields, {
    address: '127.0.0.1',
    user: 'zhangsan',
    sub: 'sub-zhangsan',
    provider: 'default',
    rule: rules[1],
    method: 'GET',
    path: '/trial/x',
    role: 'common',
  })
})

/** Spellings that somebody between here and the page could take for `/internal`. */
const TRICKS = [
  ...['/internal', '/internal/', '/internal/.', '/internal/..', '/internal/./x', '/./internal', '/.//internal'],
  ...['/x/../internal', '/x/%2e%2e/internal', '/x/%2E%2e/internal', '/x/.%2e/internal', '/x/%2e./internal'],
  ...['/%2e/internal', '/x/..%2finternal', '/x%2f..%2finternal', '/x/..%2Finternal', '/%2finternal', '/%2Finternal'],
  ...['/internal%2f', '/internal%2fx', '/internal%2F..%2Finternal', '//internal', '///internal', '/x//../internal'],
  ...[
    '/x/..//internal',
    '/internal//',
    '/;/internal',
    '/internal;',
    '/internal;x=1',
    '/internal;x/y',
    '/x/..;/internal',
  ],
  ...[
    '/x/..;a=b/internal',
    '/internal%3b',
    '/internal%3Bx',
    '/x/..%3b/internal',
    '/%3b/internal',
    '/internal/..;/internal',
  ],
  ...['/x\\..\\internal', '/x/..\\internal', '\\internal', '/\\internal', '/x/..%5cinternal', '/x%5c..%5Cinternal'],
  ...['/%5cinternal', '/internal%5c', '/internal%00', '/internal%00.html', '/%00/internal', '/x/..%00/internal'],
  ...[
    '/internal%09',
    '/internal%0a',
    '/internal%0d%0a',
    '/internal%01',
    '/internal%7f',
    '/internal\x7f',
    '/internal\t',
  ],
  ...['/%69nternal', '/%49nternal', '/%2569nternal', '/%252569nternal', '/x/%252e%252e/internal', '/%252finternal'],
  ...['/x/%25252e%25252e/internal', '/x/..%252finternal', '/x/..%255cinternal', '/internal%2500', '/%25%36%39nternal'],
  ...['/x/%%32%65%%32%65/internal', '/%%36%39nternal', '/x/%c0%ae%c0%ae/internal', '/x/%c0%2e%c0%2e/internal'],
  ...[
    '/x/..%c0%afinternal',
    '/%c0%afinternal',
    '/x/..%c1%9cinternal',
    '/x/%e0%80%ae%e0%80%ae/internal',
    '/%c1%a9nternal',
  ],
  ...['/x/%f0%80%80%ae./internal', '/x/%u002e%u002e/internal', '/%u0069nternal', '/x/..%u2215internal', '/internal%ff'],
  ...['/internal%', '/internal%2', '/internal%zz', '/internal%2g', '/%ef%bb%bf/../internal', '/\xef\xbc\x8finternal'],
  ...[
    '/internal#',
    '/#/../internal',
    '/x#/../internal',
    '/internal%20',
    '/internal%23',
    '/internal%3f',
    '/internal%3fx',
  ],
  ...['/internal.', '/internal..', '/internal~', '/internal*', '/internal"', '/internal`', '/internal|', '/internal<>'],
  ...[
    '/internal?',
    '/internal??',
    '/internal?/../x',
    '/internal?;',
    '/internal/?anything',
    '/internal/%2e',
    '/internal/%2e%2e',
  ],
  ...['internal', './internal', 'x/../internal', '*/internal', '?/internal', 'http:/internal', 'http:///internal'],
  ...[
    '/public/../internal',
    '/public/..%2finternal',
    '/public/..;/internal',
    '/public;/../internal',
    '/public%2f..%2finternal',
  ],
  ...[
    '/public/%2e%2e/internal',
    '/public//internal',
    '/public/./internal',
    '/public/x/../internal',
    '/public%2finternal',
  ],
  ...[
    '/internal/door/../x',
    '/internal/door/%2e%2e/x',
    '/internal/door;/../x',
    '/internal/door%00',
    '/internal/door/..%2fx',
  ],
  ...['/internal/shared/../x', '/internal/shared/%2e%2e/x', '/internal/shared/..;/x', '/internal/shared%2f..%2fx'],
]

/** What the most obliging application could make of a path. */
function atWorst(target: string): string {
  let path = target.replace(/[?#].*$/s, '')
  for (let i = 0; i < 4; i++) {
    path = path.replace(/%u([0-9a-f]{4})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
  path = path.replace(/\xc0\xae|\xe0\x80\xae|\xc0\x2e/g, '.').replace(/\xc0\xaf|\xc1\x9c|\\/g, '/')
  path = path
    .replace(/\0.*$/s, '')
    .replace(/;[^/]*/g, '')
    .replace(/\/+/g, '/')
    .replace(/\p{Cc}/gu, '')
  // A name with a question mark or a number sign in it, such as `C%23.pdf`, is a name like any other.
  return new URL(`/${path}`.replace('//', '/').replace(/[?# ]/g, encodeURIComponent), 'http://a').pathname
}

function isGuarded(target: string): boolean {
  const path = atWorst(target)
  if (path === '/internal/door') return false
  return /^\/(public\/)?internal(\/|$)/.test(path) && !/^\/internal\/shared(\/|$)/.test(path)
}

test('no spelling of a path bypasses its rule', async t => {
  const scene = await setUp(t, { config: CONFIG })
  const common: Client = await scene.user()
  assert.ok(isGuarded('/x/%252e%252e/internal') && isGuarded('/public/..;/internal') && !isGuarded('/public/x'))
  for (const trick of TRICKS)
    for (const cookie of [[], [`cookie: ${cookieOf(common)}`]]) {
      const answer = await raw(scene.url, request(`GET ${trick} HTTP/1.1`, ...cookie))
      assert.ok([200, 302, 400, 403].includes(statusOf(answer)), `${trick}: ${answer.slice(0, 60)}`)
    }
  const reached = scene.upstream.received.map(({ target }) => target)
  assert.deepEqual(reached.filter(isGuarded), [])
  // The way has to be open, or it proves nothing.
  await raw(scene.url, request('GET /public/x HTTP/1.1'))
  assert.equal(scene.upstream.last().target, '/public/x')
})

test('a path and its query are forwarded byte for byte', async t => {
  const scene = await setUp(t, { config: CONFIG })
  const user = await scene.user()
  for (const [asked, forwarded] of [
    ['/a%2Db%7ec', '/a%2Db%7ec'],
    ['/%e4%b8%ad', '/%e4%b8%ad'],
    ['/a%20b?c=%2e%2e/%2f//;', '/a%20b?c=%2e%2e/%2f//;'],
    ['/a+b%2Bc', '/a+b%2Bc'],
    ['/a/?', '/a/?'],
    ['/.well-known/x', '/.well-known/x'],
    ["/!$&'()*+,=:@", "/!$&'()*+,=:@"],
  ] as const) {
    assert.equal((await user.get(asked)).status, 200, asked)
    assert.equal(scene.upstream.last().target, forwarded)
  }
})

test('a rule also covers its path in upper case, for applications that ignore case', async t => {
  const scene = await setUp(t, { config: CONFIG })
  const common = await scene.user()
  for (const path of ['/INTERNAL', '/Internal/x', '/public/INTERNAL'])
    assert.equal((await common.get(path)).status, 403)
})
