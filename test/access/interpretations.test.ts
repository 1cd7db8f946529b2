// S60: a rule holds for whatever a lenient application would take for its path, and for nothing else.

import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import test from 'node:test'
import { pathProblem } from '../../src/access/request-path.ts'
import { admits, createRules, type Rules } from '../../src/access/rules.ts'
import type { Rule } from '../../src/index.ts'
import { setUp } from '../kit/set-up.ts'
import { createRandom } from '../security/random.ts'
import { pagesFor } from './lenient-app.ts'

const EVERYBODY = ['developer', 'common'] as const
const RULES: Rule[] = [
  { path: '/', roles: EVERYBODY },
  { path: '/admin', roles: ['developer'] },
  { path: '/report', exact: true, roles: ['developer'] },
  { path: '/open', public: true },
  { path: '/open/admin', roles: ['developer'] },
  { path: '/users/7', roles: ['developer'] },
  { path: '/old.php', exact: true, roles: ['developer'] },
]
const GUARDED = /^\/(?:open\/)?admin(?:\/|$)|^\/report$|^\/users\/7(?:\/|$)|^\/old\.php$/

/** Whether this user gets in, as the gateway asks the rules. */
function isAdmitted(rules: Rule[], target: string, who: 'developer' | 'common' | 'visitor' = 'common'): boolean {
  const somebody = who === 'visitor' ? undefined : { role: who, username: 'zhangsan', groups: [] }
  return !pathProblem(target) && admits(compiled(rules).ruleFor('GET', target, somebody), somebody)
}

const compiledRules = new Map<Rule[], Rules>()

function compiled(rules: Rule[]): Rules {
  const known = compiledRules.get(rules) ?? createRules(rules)
  compiledRules.set(rules, known)
  return known
}

const SUFFIXES = [
  ...['/', '.', '..', '~', '!', '*', "'", '$', '&x', '=x', ',v', ':x', '::$DATA', '@x', '+', '(1)', '|'],
  ...['.json', '.html', '.php', '.bak', '.json/', '.json.bak', '.tar.gz', '.json~', '.%20', '.JSON', '.json%20'],
  ...['%20', '%20%20', '%20.', '%20x', '%25', '%25x', '%23', '%23x', '%23/x', '%3F', '%3Fx', '%3Fx/y', '%3f.json'],
  ...['%7C', '%22', '%2B', '%C2%A0', '%E2%80%8B', '%EF%BB%BF', '%C2%AD', '%EF%B8%8F', '%CC%81', '%E3%80%80'],
  ...['%EF%BC%8E', '%EF%BC%9Bx', '%EF%BC%9Fx', '%EF%BC%83', '%EF%BC%85', '%EF%BC%85%EF%BC%92%EF%BC%90', '%EF%BC%8F'],
  ...['/(S(x))', '(S(x))', '%C2%A5', '%C2%A5x', '%E2%82%A9'],
  ...['/index.html', '/index', '/Default.aspx', '/index.php', '/%20', '/%E2%80%8B', '/%3Fx', '/%23'],
]
const PREFIXES = [
  '/%20',
  '/+',
  '/%E2%80%8B',
  '/%C2%A0',
  '/index.php/',
  '/%20/',
  '/%EF%BB%BF',
  '/index.php/%20',
  '/(S(x))/',
  '/(S(x))',
  '/%C2%A5',
]

function spellingsOf(path: string): string[] {
  const inner = path.slice(1)
  const middle = inner.replace('/', '.d/')
  return [
    ...SUFFIXES.flatMap(suffix => [path + suffix, path.toUpperCase() + suffix, inner.replace(/^/, '/%20') + suffix]),
    ...PREFIXES.map(prefix => prefix + inner),
    ...['.json', '%20', '.', '~', '%23'].flatMap(suffix => [
      `/${inner.replace('/', `${suffix}/`)}`,
      `/${middle}${suffix}`,
    ]),
    path.replace('a', '%EF%BD%81').replace('u', '%EF%BD%95'),
    path.replace('i', '%C4%B1').replace('s', '%C5%BF'),
    path.replace('i', '%C4%B0').replace('e', '%C3%A9'),
    path.replace('o', 'o%CC%81').replace('m', 'm%E2%80%8B'),
    path.replace('/7', '/007').replace('7', '%D9%A7'),
    path.replace('.php', '.php/x').replace('.php', '.PHP'),
    path.replace(/(?<=.)\//, '%EF%BC%8F'),
    path.replace(/(?<=.)\//, '%E2%88%95'),
    path.replace(/(?<=.)\//, '%EF%BC%BC'),
    `/open/%EF%BC%8E%EF%BC%8E${path}`,
    `/open/..%20${path}`,
    `/open/..+${path}`,
    `/open/.%E2%80%8B.${path}`,
    `/open/..%3F${path}`,
    `/open%EF%BC%8F..%EF%BC%8F${inner}`,
    `/open/%E2%80%A5${path}`,
    `/open/%EF%BC%852e%EF%BC%852e${path}`,
  ]
}

const PATHS = ['/admin', '/admin/x', '/report', '/open/admin', '/users/7', '/old.php']

test('no spelling of a protected page reaches an application that reads paths leniently', async t => {
  const scene = await setUp(t, { config: { rules: RULES } })
  const common = await scene.user()
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  for (const target of PATHS.flatMap(spellingsOf))
    await Promise.all([common, scene.visitor()].map(client => client.get(target, { agent })))
  const isGuarded = (target: string) => [...pagesFor(target)].some(page => GUARDED.test(page))
  const reached = scene.upstream.received.map(({ target }) => target)
  assert.deepEqual(reached.filter(isGuarded), [])
  assert.ok(isGuarded('/admin%3Fx/y') && isGuarded('/%EF%BD%81dmin') && !isGuarded('/administration'))
  // The way has to be open, or it proves nothing.
  await common.get('/administration')
  assert.equal(scene.upstream.last().target, '/administration')
})

test('no random spelling of a protected page is admitted', () => {
  const random = createRandom(60)
  const pieces = [
    ...SUFFIXES,
    ...PREFIXES,
    ...PATHS,
    'admin',
    'Admin',
    'ADMIN',
    'open',
    'report',
    'x',
    '/',
    '/x',
    '%EF%BD%81',
  ]
  const found = new Set<string>()
  let admitted = 0
  for (let round = 0; round < 5000; round++) {
    const target = `/${Array.from({ length: 1 + random.below(4) }, () => random.pick(pieces)).join('')}`
    if (!isAdmitted(RULES, target.replace('//', '/'))) continue
    admitted++
    for (const page of pagesFor(target.replace('//', '/'))) if (GUARDED.test(page)) found.add(`${target} as ${page}`)
  }
  assert.deepEqual([...found], [])
  assert.ok(admitted > 100, `${admitted} were admitted`)
})

test('a rule also covers characters that a collation considers equal to its ASCII letters and digits', () => {
  const rules = createRules([
    { path: '/', roles: EVERYBODY },
    ...[...'abcdefghijklmnopqrstuvwxyz0123456789'].map((sign): Rule => ({ path: `/x${sign}`, roles: ['developer'] })),
  ])
  const alike = new Intl.Collator('en', { sensitivity: 'base' })
  const signs = [...'abcdefghijklmnopqrstuvwxyz0123456789'].map(sign => `x${sign}`).sort(alike.compare)
  /** Whether it is equal to one of `signs`: a binary search, for 130,000 characters. */
  const isAlike = (text: string) => {
    let [from, to] = [0, signs.length]
    while (from < to) {
      const middle = (from + to) >> 1
      const order = alike.compare(text, signs[middle] ?? '')
      if (order === 0) return true
      if (order < 0) to = middle
      else from = middle + 1
    }
    return false
  }
  const common = { role: 'common', username: 'zhangsan', groups: [] }
  const open: string[] = []
  for (let code = 0x80; code < 0x20000; code++) {
    const character = String.fromCodePoint(code)
    if (/\p{Cs}|\p{Cn}|\p{M}|\p{No}|\p{Nl}|\p{So}/u.test(character)) continue
    if (!isAlike(`x${character}`)) continue
    const path = encodeURI(`/x${character}`)
    if (!pathProblem(path) && admits(rules.ruleFor('GET', path, common), common)) open.push(character)
  }
  assert.deepEqual(open, [])
})

test('ordinary pages are not refused by accident', () => {
  const admitted = [
    '/',
    '/index.html',
    '/reports',
    '/report/2026',
    '/report/q3.pdf',
    '/reports/q3.pdf',
    '/administration',
    '/admin-guide',
    '/admin_notes',
    '/myadmin',
    '/my.admin',
    '/x/admin',
    '/open',
    '/open/',
    '/open/x.json',
    '/open/administration',
    '/users/70',
    '/users/8',
    '/users/7a',
    '/old',
    '/old.html',
    '/old-php',
    '/a.b.c/d.e',
    '/.well-known/acme',
    '/~lisi/x',
    '/c%23.pdf',
    '/100%25',
    '/a%20b',
    '/what%3F',
    '/caf%C3%A9',
    '/%E7%AE%A1%E7%90%86',
    '/%E4%BA%A7%E5%93%81A%EF%BC%8FB.pdf',
    '/assets/App-3f2A.js',
    '/%E5%A2%9E%E9%95%BF50%EF%BC%852024.pdf',
    '/api/users:batchGet',
    '/x@2x.png',
    '/v1.2/items',
  ]
  // Its page is what `/old` serves where servers look for scripts by themselves.
  const notOld = admitted.filter(path => path !== '/old')
  for (const path of notOld) assert.ok(isAdmitted(RULES, path), path)
  for (const path of [...notOld, '/admin', '/report/', '/open/admin.json', '/old'])
    assert.ok(isAdmitted(RULES, path, 'developer'), path)
  assert.ok(!isAdmitted(RULES, '/old'))
})

/** The paths of which each is another name of a guarded one to some server; `/x` and `/open` are anybody's. */
const OF_SERVERS: Readonly<Record<string, readonly string[]>> = {
  'ASP.NET takes session identifiers out': [
    ...['/(S(x))/admin', '/(X(1)A(y))/admin', '/open/(S(x))/admin', '/(s(x))/ADMIN/x', '/open/(S(x))/(F(y))/admin'],
    ...['/(S(x))admin', '/ad/(S(x))min', '/open/ad/(S(x))min/x', '/op/(S(x))en/(S(x))/admin', '/(S(x))/report'],
    ...[
      '/%28S%28x%29%29/admin',
      '/%EF%BC%88S(x)%EF%BC%89/admin',
      '/report/(S(x))',
      '/(S(x/y))/admin',
      '/(S(x))/files/data.json',
    ],
  ],
  'code pages have the signs of yen and won in the place of the backslash': [
    ...[
      '/x%C2%A5..%C2%A5admin',
      '/open%C2%A5admin',
      '/open%E2%82%A9admin',
      '/open%EF%BF%A5admin',
      '/open%EF%BF%A6admin',
    ],
    ...['/%C2%A5admin', '/admin%C2%A5x', '/open/..%C2%A5admin', '/open%E2%88%96admin'],
  ],
  'Windows has short names': [
    ...[
      '/files/DATA~1.JSO',
      '/files/data~1',
      '/files/DATA~12.JSO',
      '/files/QUARTE~1',
      '/files/QU3A4F~1',
      '/files/AB~1.JSO',
    ],
    ...['/files/DATA~1.JSO/', '/files/data%7E1.jso'],
  ],
  'what follows a page is an argument of it': [
    ...[
      '/files/exact.html/foo',
      '/files/exact.html/foo/bar',
      '/files/EXACT.HTML/foo',

      '/old.php/x',
    ],
    ...[
      '/files/data.json/x',
      '/files/salary.pdf/x',
      '/files/SALARY.pdf/',
      '/files/salary.pdf%2Fx',
      '/files/backup.7z/x',
    ],
  ],
  'what follows a page is an argument of it, also where the page is asked for without its suffix': [
    ...['/files/data/x', '/files/data/.html', '/files/data%2fx', '/files/DATA/x/y'],
  ],
}

test('alternative names that servers accept for a protected page are refused, and similar ordinary paths are admitted', () => {
  const rules: Rule[] = [
    ...RULES,
    { path: '/files/data.json', roles: ['developer'], exact: true },
    { path: '/files/a.b.json', roles: ['developer'] },
    { path: '/files/quarterly report', roles: ['developer'] },
    { path: '/files/exact.html', roles: ['developer'], exact: true },
    { path: '/files/exact', roles: EVERYBODY },
    { path: '/files/salary.pdf', roles: ['developer'], exact: true },
    { path: '/files/backup.7z', roles: ['developer'], exact: true },
    { path: '/files/v1.0', roles: ['developer'], exact: true },
  ]
  for (const [reason, paths] of Object.entries(OF_SERVERS))
    for (const path of paths) {
      assert.ok(!isAdmitted(rules, path), `${path}: ${reason}`)
      const isRefused = pathProblem(path) !== undefined
      assert.ok(isRefused || isAdmitted(rules, path, 'developer'), `${path} for a developer`)
    }
  const ordinary = [
    ...['/x/(S(x))/y', '/wiki/Foo_(bar)', '/(album)', '/price/%C2%A5100', '/files/photo~1.jpg', '/files/x.html/foo'],
    ...['/files/exact/foo', '/files/v1.0/x', '/odata/Products(1)', '/files/~1', '/%E2%82%A9'],
  ]
  for (const path of ordinary) assert.ok(isAdmitted(rules, path), path)
})

test('the rules decide about paths with thousands of parentheses', () => {
  const rules = createRules(RULES)
  const common = { role: 'common', username: 'zhangsan', groups: [] }
  for (const part of ['/(', '/((', '/(a', '/()', '(/)', '/(S(x))'])
    assert.ok(rules.ruleFor('GET', part.repeat(2000), common))
})

test('an exact rule covers every spelling of its page and no other page', () => {
  const rules: Rule[] = [
    { path: '/', exact: true, roles: ['developer'] },
    { path: '/a', exact: true, roles: ['developer'] },
  ]
  const others = [
    '/x',
    '/x.php',
    '/x/index.html',
    '/.well-known/x',
    '/.env',
    '/~lisi',
    '/@me',
    '/报告.pdf',
    '/a/x',
    '/a/x.php',
  ]
  for (const path of others) assert.ok(isAdmitted(rules, encodeURI(path)), path)
  const same = [
    '/',
    '/index.html',
    '/INDEX.php',
    '/index.php/',
    '/%20',
    '/%3Fx',
    '/a/',
    '/a.php/x',
    '/a/index',
    '/a/%E2%80%8B',
  ]
  for (const path of same) assert.ok(!isAdmitted(rules, path), path)
})

test('a path that a rule names literally is decided by that rule, and its other spellings are not', () => {
  const rules: Rule[] = [
    { path: '/internal', roles: ['developer'] },
    { path: '/internal/logo.png', exact: true, public: true },
    { path: '/internal/v1.0', public: true },
    { path: '/internal/door', exact: true, public: true },
    { path: '/open', public: true },
    { path: '/open/data', roles: ['developer'] },
    { path: '/open/data.json', public: true },
    { path: '/guide', public: true },
    { path: '/guide.html', roles: ['developer'] },
  ]
  const yes = [
    '/internal/logo.png',
    '/internal/v1.0/x',
    '/internal/door',
    '/open/data.json',
    '/open/data.json/',
    '/guide',
  ]
  const no = [
    '/internal/logo',
    '/internal/logo.png/',
    '/internal/logo.PNG',
    '/internal/logo.png.bak',
    '/internal/v1',
    '/INTERNAL/door',
  ]
  const alsoNo = [
    '/internal/door/',
    '/internal/door.json',
    '/internal',
    '/open/data',
    '/open/data.xml',
    '/OPEN/x',
    '/guide.html',
  ]
  for (const path of yes) assert.ok(isAdmitted(rules, path, 'visitor'), path)
  for (const path of [...no, ...alsoNo]) assert.ok(!isAdmitted(rules, path, 'visitor'), path)
})

test('rules that spell the same path differently must all admit the request', () => {
  const rules: Rule[] = [
    { path: '/reports', roles: EVERYBODY },
    { path: '/REPORTS/secret', roles: ['developer'] },
    { path: '/Notes', roles: ['developer'] },
    { path: '/notes', roles: EVERYBODY },
  ]
  for (const path of [
    '/reports/secret',
    '/Reports/Secret',
    '/REPORTS/secret',
    '/notes',
    '/Notes',
    '/NOTES',
    '/notes/x',
  ])
    assert.ok(!isAdmitted(rules, path), path)
  assert.ok(isAdmitted(rules, '/reports/other'))
})

test('a decision names the interpretation of the path that decided, if it is not the path as received', () => {
  const rules = createRules([
    { path: '/files', roles: ['*'] },
    { path: '/files/admin', roles: ['developer'] },
  ])
  const common = { role: 'common', groups: [], username: 'zhangsan' }
  const decide = (path: string) => {
    const { rule, interpretation } = rules.decide('GET', path, common)
    return [rule.path, interpretation]
  }
  assert.deepEqual(decide('/files/%41dmin%2F'), ['/files/admin', '/files/admin'])
  assert.deepEqual(decide('/files/%2541dmin;v=1'), ['/files/admin', '/files/admin'])
  assert.deepEqual(decide('/files/x%2Fy'), ['/files', undefined])
  assert.deepEqual(decide('/%5Fmenshen/x%2Fy'), ['/', '/_menshen/x%2Fy'])
})
