// What is looked up for every request is found by a short way. Here it is found by the long and obvious one too, thousands
// of times, and both have to agree.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createRules } from '../../src/access/rules.ts'
import { Networks, readNetworks } from '../../src/config/networks.ts'
import { readCookie } from '../../src/http/cookies.ts'
import type { Rule } from '../../src/index.ts'
import { createLongestPrefix } from '../../src/util/longest-prefix.ts'
import { createRandom, type Random } from '../security/random.ts'

const METHODS = ['GET', 'POST', 'DELETE'] as const
const PEOPLE = [
  undefined,
  { role: 'common', username: 'zhangsan', groups: ['staff'] },
  { role: 'developer', username: 'admin', groups: [] },
]

test('the lookup among 1000 rules finds the same rule as a linear search, for shadow rules too', () => {
  const random = createRandom(20_261)
  for (let config = 0; config < 6; config++) {
    const given = withoutDoubles(Array.from({ length: 1000 }, () => randomRule(random)))
    const rules = createRules(given)
    for (let n = 0; n < 400; n++) {
      const [path, who] = [randomPath(random, 5), PEOPLE[random.below(PEOPLE.length)]]
      const method = random.pick(['GET', 'HEAD', 'POST', 'DELETE', 'PUT'])
      const asked = `${method} ${path} in configuration ${config}`
      const effective = walk(
        given.filter(({ shadow }) => !shadow),
        method,
        path,
      )
      const onTrial = walk(given, method, path)
      // Twice: the second time it is remembered.
      for (const _ of ['new', 'known']) {
        const rule = rules.ruleFor(method, path, who)
        assert.deepEqual(rule, effective ?? { path: '/', roles: ['*'] }, asked)
        assert.deepEqual(rules.shadowDecision(method, path, who)?.rule, onTrial?.shadow ? onTrial : undefined, asked)
      }
    }
  }
})

test('cached decisions are not reused for another user, however the path is spelled', () => {
  const random = createRandom(12)
  const given: Rule[] = [
    { path: '/reports', roles: ['common', 'developer'] },
    { path: '/reports/2024', roles: ['developer'] },
    { path: '/reports/2024', methods: ['POST'], users: ['zhangsan'] },
    { path: '/staff', groups: ['staff'] },
    { path: '/staff/index.html', public: true },
  ]
  const used = createRules(given)
  const segments = ['reports', 'Reports', '2024', '02024', '2024.json', 'staff', 'index.html', 'x', 'staff~', '2024 ']
  for (let n = 0; n < 20_000; n++) {
    const path = `/${Array.from({ length: 1 + random.below(3) }, () => random.pick(segments)).join('/')}`
    const [method, who] = [random.pick(METHODS), PEOPLE[random.below(PEOPLE.length)]]
    const asked = `${method} ${path} by ${who?.role}`
    // Nothing is known to the other one yet.
    if (n % 20 === 0)
      assert.deepEqual(used.decide(method, path, who), createRules(given).decide(method, path, who), asked)
    else used.decide(method, path, who)
  }
})

test('the lookup among 200 prefixes finds the same longest prefix as a linear search', () => {
  const random = createRandom(200)
  for (let config = 0; config < 20; config++) {
    const prefixes = new Set(Array.from({ length: 200 }, () => randomPath(random, 4)))
    if (random.chance(0.5)) prefixes.add('/')
    const lookUp = createLongestPrefix(new Map(Array.from(prefixes, prefix => [prefix, prefix])))
    const longestFirst = [...prefixes].sort((one, other) => other.length - one.length)
    for (let n = 0; n < 500; n++) {
      const path = randomPath(random, 6) + random.pick(['', '', '/', 'x'])
      assert.equal(
        lookUp(path),
        longestFirst.find(prefix => isWithin(prefix, path)),
        path,
      )
    }
  }
  assert.equal(createLongestPrefix(new Map())('/a'), undefined)
})

test('readCookie finds the same value as parsing the whole header, whatever other cookies it contains', () => {
  const random = createRandom(4)
  const name = 'menshen_session'
  const names = [name, name, `${name}2`, `x${name}`, `__Host-${name}`, name.toUpperCase(), '', 'theme']
  const values = ['a', 'a', 'b', '', ' a', 'a ', `${name}=a`, '"a"', 'a=b', '\ta', `x ${name}=a`]
  for (let n = 0; n < 20_000; n++) {
    const cookies = Array.from({ length: random.below(6) }, () => {
      const space = random.pick(['', ' ', '  ', '\t', '\u00a0', 'x '])
      return space + random.pick(names) + random.pick(['=', '=', '=', ' =', '']) + random.pick(values)
    })
    const header = cookies.join(random.pick([';', '; ', ' ; ']))
    assert.equal(readCookie(header, name), takenApart(header, name), header)
  }
  assert.equal(readCookie(undefined, name), undefined)
})

test('a network lookup stays correct when it is repeated thousands of times among other addresses', () => {
  const networks = readNetworks('127.0.0.1, 10.0.0.0/8 fd00::/8')
  assert.ok(networks instanceof Networks)
  const inside = ['127.0.0.1', '10.1.2.3', '::ffff:10.1.2.3', '::FFFF:127.0.0.1', 'fd00::1']
  const outside = ['127.0.0.2', '11.1.2.3', '::ffff:11.1.2.3', 'fc00::1', '', 'unknown', '10.1.2.3 ', 'x'.repeat(1000)]
  for (let n = 0; n < 5000; n++) {
    for (const address of inside) assert.equal(networks.has(address), true, address)
    for (const address of outside) assert.equal(networks.has(address), false, address)
    assert.equal(networks.has(`192.168.${n >> 8}.${n & 255}`), false)
  }
})

function randomPath(random: Random, mostSegments: number): string {
  const segments = Array.from({ length: 1 + random.below(mostSegments) }, () =>
    random.pick(['a', 'b', 'ab', 'c-d', 'e_']),
  )
  return `/${segments.join('/')}`
}

function randomRule(random: Random): Rule {
  return {
    path: random.chance(0.02) ? '/' : randomPath(random, 4),
    ...(random.chance(0.3) && { exact: true }),
    ...(random.chance(0.3) && { methods: [random.pick(METHODS)] }),
    ...(random.chance(0.2) && { shadow: true }),
    ...random.pick([{ public: true }, { roles: ['developer'] }, { roles: ['*'] }, { groups: ['staff'] }]),
  }
}

/** Two rules for the same thing are refused at the start. */
function withoutDoubles(rules: readonly Rule[]): Rule[] {
  const sameAs = ({ path, exact, methods, shadow }: Rule) => JSON.stringify([path, exact, methods, shadow])
  return [...new Map(rules.map(rule => [sameAs(rule), rule])).values()]
}

function walk(rules: readonly Rule[], method: string, path: string): Rule | undefined {
  const asked = method === 'HEAD' ? 'GET' : method
  const covering = rules.filter(rule => {
    const isForMethod = rule.methods?.includes(asked) ?? true
    return isForMethod && (rule.exact ? rule.path === path : isWithin(rule.path, path))
  })
  const rank = (rule: Rule) =>
    rule.path.length * 8 + (rule.exact ? 4 : 0) + (rule.methods ? 2 : 0) + (rule.shadow ? 1 : 0)
  return covering.sort((one, other) => rank(other) - rank(one))[0]
}

/** The path itself, or anything below it. */
function isWithin(prefix: string, path: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`)
}

function takenApart(header: string, name: string): string | undefined {
  const values = header
    .split(';')
    .map(pair => pair.replace(/^[ \t]+/, ''))
    .filter(pair => pair.startsWith(`${name}=`))
    .map(pair => pair.slice(name.length + 1).trimEnd())
  return new Set(values).size === 1 ? values[0] || undefined : undefined
}
