// Addresses of real applications pass unchanged; those of guarded pages are refused in every spelling.
import assert from 'node:assert/strict'
import test from 'node:test'
import { isTooLong, pathProblem } from '../../src/access/request-path.ts'
import { answerRuleQuery } from '../../src/access/rule-query.ts'
import { admits, createRules, type Rules } from '../../src/access/rules.ts'
import type { Rule } from '../../src/index.ts'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'
import { raw, request, statusOf } from '../proxy/raw.ts'

const COMMON = { role: 'common', username: 'zhangsan', groups: [] }

function isAdmitted(rules: Rules, path: string, who: typeof COMMON | undefined): boolean {
  return !isTooLong(path) && !pathProblem(path) && admits(rules.ruleFor('GET', path, who), who)
}

/** Each works at the application directly. */
const ORDINARY = [
  ...['/api/queues/%2F/q', '/api/queues/%2f/my%20queue/bindings', '/api/exchanges/%2F/amq.topic', '/api/vhosts/%2F'],
  ...['/@acme%2fpkg', '/@acme%2Fpkg/-/pkg-1.0.0.tgz', '/%40acme%2fpkg', '/-/package/@acme%2fpkg/dist-tags'],
  ...[
    '/page;jsessionid=1A',
    '/examples/servlets;jsessionid=0A1B2C.node1/index.html',
    '/a;v=1/b;w=2',
    '/a;/b',
    '/cars;color=red',
  ],
  ...[
    '/wiki/a//b',
    '/wiki/AC%2FDC',
    '/wiki/C%2B%2B',
    '/wiki/100%25',
    '/wiki/50%25_off',
    '/wiki/%2525',
    '/wiki/...',
    '/wiki/..._baby',
  ],
  ...[
    '/wiki/%E2%80%A6',
    '/wiki/Who%3F',
    '/wiki/C%23',
    '/wiki/a%5Cb',
    '/wiki/Special:Log/move',
    '/wiki/%3B',
    '/wiki/;)',
    '/wiki/%25_(x)',
  ],
  ...[
    '/key/a%3Bb',
    '/key/a%2Fb%3Ac',
    '/key/user:1;x/y',
    '/keys/a%2525b',
    '/key/%7B%22a%22%3A1%7D',
    '/key/a%252Fb',
    '/key/http%3A%2F%2Fx',
  ],
  ...[
    '/files/%E6%8A%A5%E5%91%8A.pdf',
    '/files/%25E6%258A%25A5%25E5%2591%258A.pdf',
    '/files/a|b',
    '/files/.~lock.a.odt%23',
    '/dav/%7Euser/x',
  ],
  ...[
    '/projects/group%2Fsub%2Frepo/issues',
    '/proxy/https://example.com/x',
    '/v2/a/b/manifests/sha256:0a',
    '/odata/Items(1)',
  ],
  ...[
    '/static/%5Fnext/app.js',
    '/%61bc/d%2De',
    '/.well-known/x',
    '/a//',
    '/a///b',
    '/tree/node_modules/@types%2fnode',
    '/x%3D%3D',
  ],
]

test('addresses of real applications are forwarded byte for byte', async t => {
  const scene = await setUp(t, { config: { rules: [{ path: '/secret', roles: ['developer'] }] } })
  const user = await scene.user()
  for (const path of ORDINARY)
    for (const target of [path, `${path}?a=%2F;b`]) {
      const answer = await raw(scene.url, request(`GET ${target} HTTP/1.1`, `cookie: ${cookieOf(user)}`))
      assert.equal(statusOf(answer), 200, target)
      assert.equal(scene.upstream.last().target, target)
    }
})

test('visitors are admitted to any spelling below a public path, but not to ambiguous spellings of the path itself', () => {
  const rules = createRules([{ path: '/docs', public: true }])
  for (const path of ['/docs/a%2Fb', '/docs/a;v=1', '/docs//a', '/docs/%25', '/docs/a%3Bb/%5C', '/docs/...'])
    assert.ok(isAdmitted(rules, path, undefined), path)
  for (const path of ['/docs%2Fa', '/docs;v=1', '/%64ocs/a', '/docs%5Ca', '/%2Fdocs', '/;/docs', '/docs%252Fa'])
    assert.ok(!isAdmitted(rules, path, undefined) && isAdmitted(rules, path, COMMON), path)
})

test('dot segments, a leading //, forbidden characters, broken encodings and targets that are not paths are bad requests', () => {
  const dots = ['/..', '/a/..', '/a/../b', '/./a', '/a/.', '/%2e%2e/a', '/a/%2E/b', '/a/.%2e', '/..;/a', '/a/..;x=1/b']
  const encoded = [
    '/..%2fa',
    '/a%2F..%2Fb',
    '/a/..%5Cb',
    '/%252e%252e/a',
    '/%25252e%25252e/a',
    '/a/..%252fb',
    '/a%5C..',
  ]
  const hidden = [
    '/..%20/a',
    '/a/..+',
    '/..%3Fa',
    '/..%23',
    '/.%20',
    '/.;x',
    '/.%3Bx',
    '/%EF%BC%8E%EF%BC%8E/a',
    '/.%E2%80%8B./a',
  ]
  const broken = ['/%', '/a%2', '/%zz', '/%u002f', '/a%ff', '/%c0%af', '/%c0%ae%c0%ae/a', '/%ed%a0%80']
  const characters = [
    '/a\\b',
    '/\\a',
    '/a%00',
    '/a%0d%0a',
    '/a%7F',
    '/a%C2%85',
    '/a\tb',
    '/a#b',
    '/a%2500',
    '/"',
    '/<a>',
    '/{a}',
    '/\u00e9',
  ]
  for (const path of [
    ...dots,
    ...encoded,
    ...hidden,
    ...broken,
    ...characters,
    '//',
    '//a',
    '///',
    '',
    'a',
    'http://a/b',
    '*',
  ])
    assert.ok(pathProblem(path), path)
})

test('a path with too many interpretations is refused, and other long encoded paths are judged', () => {
  const rules = createRules([{ path: '/admin', roles: ['developer'] }])
  const many = `/%25${'25'.repeat(40)}2F`
  assert.equal(pathProblem(many), 'too_many_interpretations')
  assert.equal(pathProblem(`/${'%2F'.repeat(101)}`), 'too_many_interpretations')
  assert.equal(pathProblem(`/${'a%2F'.repeat(99)}`), undefined)
  const costly = [
    '%2F%5C',
    'a%252F',
    '%EF%BC%8F',
    '%25EF%25BC%258F',
    '(%2F',
    '/(a)',
    '%C2%A5%2F',
    ';%3B',
    '..a%2F',
    '%EF%B7%BA',
  ]
  for (const part of costly) {
    const path = `/${part.repeat(1000)}`.slice(0, 4096).replace(/%[\da-f]?$/i, '')
    if (!pathProblem(path)) assert.ok(rules.ruleFor('GET', path, COMMON))
  }
})

test('a path that could belong to two upstreams, or to the pages of Menshen, is refused and not forwarded', async t => {
  const api = await startUpstream(t)
  const upstreams = { '/api': api.url, '/Wiki': api.url }
  const scene = await setUp(t, { config: { upstreams, rules: [{ path: '/open', public: true }] } })
  const [user, visitor] = [await scene.user(), scene.visitor()]
  const mixed = [
    '/api%2Fx',
    '/api;v=1/x',
    '/api%5Cx',
    '/x%2F%2Fy/../api',
    '/;/api/x',
    '/%2Fapi',
    '/api%252Fx',
    '/api%3Fx',
  ]
  const own = ['/_menshen%2Fconsole', '/%5Fmenshen/me', '/_menshen;x/me', '/;/_menshen/me', '/_menshen%252Fme']
  for (const path of [...mixed, ...own]) {
    const { status } = await user.get(path)
    assert.ok(status === 403 || (status === 400 && path.includes('..')), `${path}: ${status}`)
    assert.notEqual((await visitor.get(path)).status, 200, path)
  }
  assert.deepEqual([api.received, scene.upstream.received], [[], []])
  for (const path of ['/Wiki/Caf%C3%A9%2Fb', '/api/a%2Fb', '/api/a;v=1', '/%61pi/x', '/api//x']) {
    assert.equal((await user.get(path)).status, 200, path)
    assert.equal(api.last().target, path)
  }
  for (const path of ['/x%2Fapi', '/x/Caf%C3%A9%2Fapi', '/apix;v=1', '/open/api%2Fx', '/x//api']) {
    assert.equal((await user.get(path)).status, 200, path)
    assert.equal(scene.upstream.last().target, path)
  }
})

test('a WebSocket upgrade, a forward-auth check and an application with the library get the same decision about an encoded path', async t => {
  const rules: Rule[] = [
    { path: '/admin', roles: ['developer'] },
    { path: '/open', public: true },
  ]
  const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1' }, config: { rules } })
  const [user, admin] = [await scene.user(), await scene.user('admin')]
  const check = async (who: typeof user, uri: string) =>
    (await who.get('/_menshen/check', { headers: { 'x-original-uri': uri } })).status
  /** As an application does that imports Menshen; without an answer, it goes on with the request. */
  const admit = async (who: typeof user, path: string) => {
    const asked = new Request(scene.baseUrl + path, { headers: { cookie: cookieOf(who) } })
    assert.ok(asked.url.endsWith(path), path)
    return (await scene.menshen.admit(asked)).answer?.status ?? 200
  }
  for (const path of ['/x%2Fy', '/x;v=1', '/x//y', '/x%255C'])
    assert.deepEqual([await check(user, path), await admit(user, path)], [200, 200], path)
  for (const path of ['/admin%2Fx', '/admin;v=1', '/;/admin', '/x%2F..%2Fadmin', '/%2561dmin', '/%2Fadmin']) {
    const expected = path.includes('..') ? [400, 400] : [403, 200]
    assert.deepEqual([await check(user, path), await check(admin, path)], expected, path)
    assert.deepEqual([await admit(user, path), await admit(admin, path)], expected, path)
    const lines = [`cookie: ${cookieOf(user)}`, 'upgrade: websocket', 'sec-websocket-version: 13']
    const socket = request(`GET ${path} HTTP/1.1`, ...lines, 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==')
    const refused = await raw(scene.url, socket.replace('connection: close', 'connection: upgrade'))
    assert.equal(statusOf(refused), expected[0], path)
  }
})

test('a rule query reports the outcome for an encoded path, and the problem of a bad request', () => {
  const rules = createRules(
    [
      { path: '/admin', roles: ['developer'] },
      { path: '/open', public: true },
    ],
    ['/api'],
  )
  const asked = { method: 'GET', role: 'common', groups: [], user: '' }
  const outcome = (path: string, role = 'common') => answerRuleQuery(rules, { ...asked, role, path }).outcome
  for (const path of ORDINARY.filter(path => !path.startsWith('/api'))) assert.equal(outcome(path), 'admitted', path)
  assert.deepEqual(
    [outcome('/admin%2Fx'), outcome('/admin%2Fx', 'visitor'), outcome('/admin%2Fx', 'developer')],
    ['refused', 'login', 'admitted'],
  )
  assert.deepEqual([outcome('/open;v=1', 'visitor'), outcome('/open/a;v=1', 'visitor')], ['login', 'admitted'])
  assert.deepEqual(
    [outcome('/api%2Fx'), outcome('/api%2Fx', 'developer'), outcome('/api/queues/%2F/q')],
    ['refused', 'refused', 'admitted'],
  )
  assert.deepEqual(answerRuleQuery(rules, { ...asked, path: '/a/..%2fb' }), {
    outcome: 'bad_request',
    problem: 'dot_segment',
  })
})
