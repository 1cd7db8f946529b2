// The work of a request is bounded by its size, whatever is in its path and headers. It is measured in the characters that pass
// through the methods of strings, not in time.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createReadTarget, isTooLong, pathProblem } from '../../src/access/request-path.ts'
import { createRules, isClosed } from '../../src/access/rules.ts'
import { Networks } from '../../src/config/networks.ts'
import { createBeginRequest } from '../../src/http/request.ts'
import { isShownAsPage } from '../../src/util/fetch-metadata.ts'
import { connectionHeaders, startOfList } from '../../src/util/header-list.ts'
import { createRandom } from '../security/random.ts'

/** Parts that servers read differently, and that cost most: escapes, escapes of escapes, letters that decompose, sessions, signs. */
const PARTS = [
  ...[
    '%61',
    '%2541',
    '%252541',
    '%2F',
    '%252F',
    '%5C',
    '%255C',
    '%25u0041',
    '%25c0%25af',
    '%25ff',
    '%E2%84%AA',
    '%EF%B7%BA',
  ],
  ...[
    '%EA%B0%80',
    '%D9%A1',
    'a%CC%81',
    '%E2%80%8B',
    '%25E2%2584%25AA',
    '(a)',
    '/(a)',
    '/(',
    ';x',
    '+',
    '~1',
    '.php',
    '!',
    '/',
  ],
  ...['%20', '0', 'index', '/admin', '/data'],
]
const RULES = [
  { path: '/admin', roles: ['developer'] },
  { path: '/admin/a', roles: ['*'] },
  { path: '/data.json', roles: ['developer'] },
  { path: '/a', roles: ['*'] },
]
const COMMON = { role: 'common', groups: [], username: 'zhangsan' }
const LONGEST = 4096
/** Of all methods together: fifty times the longest path. */
const MAX_CHARACTERS = 50 * LONGEST

test('judging a 4 KB path takes a bounded number of steps, whatever escapes and characters it contains', () => {
  const random = createRandom(30)
  const hostile = [
    ...PARTS.map(part => repeated([part])),
    ...Array.from({ length: 300 }, () =>
      repeated(Array.from({ length: 1 + random.below(5) }, () => random.pick(PARTS))),
    ),
  ]
  let most = 0
  for (const path of hostile) {
    const rules = createRules(RULES, ['/data'])
    const read = createReadTarget()
    const steps = stepsOf(() => {
      if (read(path)) rules.decide('GET', path, COMMON)
      else if (!isTooLong(path)) read.problemOf?.(path)
    })
    assert.ok(steps <= MAX_CHARACTERS, `${steps} characters for ${path.slice(0, 40)}`)
    most = Math.max(most, steps)
  }
  assert.ok(most > LONGEST, 'the steps are counted')
})

test('the verdict about a path is computed once and then cached, however long the path is', () => {
  const refused = `/${'%252541'.repeat(580)}`
  const admitted = `/a/${'%E4%B8%AD'.repeat(400)}`
  const stricter = `/a/..;/${'x'.repeat(300)}/%61dmin`
  const read = createReadTarget()
  const rules = createRules(RULES)
  assert.equal(read(refused), undefined)
  assert.equal(pathProblem(refused), 'too_many_interpretations')
  assert.ok(stepsOf(() => read.problemOf?.(refused)) === 0, 'the reason of a refusal for the log')
  for (const path of [admitted, stricter]) {
    read(path)
    rules.decide('GET', path, COMMON)
    const again = stepsOf(() => {
      read(path)
      rules.decide('GET', path, COMMON)
      rules.rulesFor('GET', path)
      rules.conditionsFor('GET', path)
    })
    assert.equal(again, 0, path.slice(0, 20))
  }
})

test('the rules admit no caller to a path with too many interpretations', () => {
  const rules = createRules([])
  const outcomes = new Set<string>()
  for (const start of ['/(a)/', '/x/(S(y))/', '/(a)'])
    for (const part of ['%C3%A9', '%2541', '%25u0041'])
      for (let count = 1; start.length + count * part.length <= LONGEST; count += 20) {
        const path = start + part.repeat(count)
        const rule = rules.ruleFor('GET', path, COMMON)
        outcomes.add(`${pathProblem(path) ?? 'judged'}: ${isClosed(rule) ? 'closed' : 'admitted'}`)
      }
  assert.deepEqual([...outcomes].sort(), ['judged: admitted', 'too_many_interpretations: closed'])
})

test('long paths of real applications are judged like short ones, and long spellings of a protected path are not admitted', () => {
  const rules = createRules(RULES)
  for (const path of [
    '/api/queues/%2F/q',
    '/@acme%2fpkg',
    `/${'%E4%B8%AD%E6%96%87'.repeat(110)}.html`,
    `/${'%ED%95%9C'.repeat(220)}`,
    `/files/${'%25E4%25B8%25AD'.repeat(60)}`,
    `/projects/group%2Fsubgroup%2Fproject/repository/files/${'src%2F'.repeat(40)}main.c`,
  ]) {
    assert.equal(pathProblem(path), undefined, path)
    assert.equal(rules.decide('GET', path, COMMON).rule.path, '/', path)
  }
  for (const path of [`/x/..%2f${'%E4%B8%AD'.repeat(200)}/%2e%2e/admin`, `/%2561dmin/${'%E4%B8%AD'.repeat(200)}`]) {
    const isRefused = pathProblem(path) !== undefined || rules.decide('GET', path, COMMON).rule.path === '/admin'
    assert.ok(isRefused, path)
  }
})

test('only the beginning of a long Accept header is read, without the list element that is cut off', () => {
  const accept = `text/html;q=0.9,${'application/x-y;q=0.1,'.repeat(2000)}`
  const steps = stepsOf(() => assert.ok(isShownAsPage({ headers: { accept } })))
  assert.ok(steps <= 100 * 1024, `${steps}`)
  assert.equal(startOfList('zh-CN, en;q=0.5', 100), 'zh-CN, en;q=0.5')
  assert.equal(startOfList('zh-CN, en;q=0.5', 14), 'zh-CN', 'without the element that is cut')
  assert.equal(startOfList('x'.repeat(20), 10), '')
})

test('Connection is read as a set of lower-case header names, and only the beginning of a long one is read', () => {
  assert.deepEqual(connectionHeaders('Keep-Alive, X-Own'), new Set(['keep-alive', 'x-own']))
  const names = Array.from({ length: 2000 }, (_, n) => `x-${n}`).join()
  const steps = stepsOf(() => assert.ok((connectionHeaders(names)?.size ?? 0) < 300))
  assert.ok(steps <= 5 * 1024, `${steps}`)
})

test('X-Forwarded-For is read from its last hop, and at most about a hundred hops are checked', () => {
  let looks = 0
  class CountingNetworks extends Networks {
    override has(address: string): boolean {
      looks++
      return super.has(address)
    }
  }
  const networks = new CountingNetworks(0)
  networks.add('10.0.0.0/8')
  networks.add('127.0.0.1')
  const begin = createBeginRequest(networks)
  const addressOf = (list: string) =>
    begin({ method: 'GET', headers: { 'x-forwarded-for': list }, socket: { remoteAddress: '127.0.0.1' } }).address
  assert.equal(addressOf('1.2.3.4, 10.0.0.2,, 10.0.0.1 '), '1.2.3.4')
  assert.equal(addressOf(',1.2.3.4:80'), '1.2.3.4')
  assert.equal(addressOf('10.0.0.3, 10.0.0.2'), '10.0.0.3')
  assert.equal(addressOf(' , '), '127.0.0.1')
  looks = 0
  assert.equal(addressOf('10.0.0.1,'.repeat(1800)), '10.0.0.1')
  assert.ok(looks <= 110, `${looks}`)
})

function repeated(parts: readonly string[]): string {
  const part = parts.join('')
  const whole = `/${part.repeat(Math.ceil(LONGEST / part.length))}`.slice(0, LONGEST)
  return whole.replace(/^\/+/, '/').replace(/%[\da-f]?$/i, '')
}

const COUNTED = ['normalize', 'replace', 'replaceAll', 'split', 'toLowerCase', 'toUpperCase', 'trim'] as const

/** The characters of all texts that the work passes to one of these methods. */
function stepsOf(work: () => void): number {
  let steps = 0
  const methods = String.prototype as unknown as Record<string, (...args: unknown[]) => unknown>
  const originals = COUNTED.map(name => [name, methods[name]] as const)
  for (const [name, original] of originals)
    methods[name] = function (this: string, ...args: unknown[]) {
      steps += String(this).length
      return original?.apply(this, args)
    }
  try {
    work()
  } finally {
    for (const [name, original] of originals) if (original) methods[name] = original
  }
  return steps
}
