// Whatever path a server makes of an address, the rules hold: random addresses and those of the corpora, judged by the gateway,
// and routed by the models of servers.
import assert from 'node:assert/strict'
import test from 'node:test'
import { isTooLong, pathProblem } from '../../src/access/request-path.ts'
import { admits, createRules, type Rules } from '../../src/access/rules.ts'
import type { Rule } from '../../src/config/file.ts'
import { corpusStrings } from '../kit/corpora.ts'
import { createRandom, type Random } from '../security/random.ts'
import { routedBy, SERVERS } from './servers.ts'

const EVERYBODY = ['developer', 'common'] as const
/** What is guarded lies below what is open, and the other way round. */
const RULE_SETS: readonly (readonly Rule[])[] = [
  [
    { path: '/', roles: EVERYBODY },
    { path: '/admin', roles: ['developer'] },
    { path: '/open', public: true },
    { path: '/open/admin', roles: ['developer'] },
    { path: '/vault', exact: true, roles: ['developer'] },
    { path: '/管理', roles: ['developer'] },
  ],
  [
    { path: '/', roles: ['developer'] },
    { path: '/open', public: true },
    { path: '/open/vault', roles: ['developer'] },
    { path: '/open/vault/admin', roles: EVERYBODY },
    { path: '/admin', exact: true, roles: EVERYBODY },
    { path: '/管理', roles: EVERYBODY },
  ],
]
const COMMON = { role: 'common', username: 'zhangsan', groups: [] }
const SEED = Number(process.env.ADDRESS_SEED ?? 20_263)
/** test/long/addresses.long.ts has more. */
const ROUNDS = Number(process.env.ADDRESS_ROUNDS ?? 20_000)

const NAMES = ['admin', 'open', 'vault', 'x', 'queues', 'a b', '管理', 'index.php', 'v1.2']
const SEPARATORS = [
  '/',
  '/',
  '/',
  '/',
  '//',
  '%2F',
  '%2f',
  '%5C',
  '%252F',
  '%255c',
  '/;a=b/',
  '/%20/',
  '///',
  '%EF%BC%8F',
]
const DECORATIONS = [
  ...[
    ';jsessionid=1A',
    ';',
    '%3Bx',
    '%3bx=%2Fopen',
    ';a=/',
    '.json',
    '.',
    '..',
    '...',
    '%20',
    '%2e',
    '%2E',
    '+',
    '~',
    '%25',
  ],
  ...['%23x', '%3Fx', '%253F', '%253B', '.php', '%00', '%2500', '%c0%af', '%25c0%25af', '%u002f', '%25u002f', '(S(x))'],
  ...['/(S(x))', ':x', '@x', '=x', '%E2%80%8B', '/', '/index.html', '/..', '/%2e%2e', '%2F..', '/.', '\\', '%7C', '*'],
]

function randomAddress(random: Random): string {
  let path = ''
  for (let n = 1 + random.below(3); n > 0; n--) {
    path += path === '' ? '/' : random.pick(SEPARATORS)
    path += spelled(random, random.pick(NAMES))
    if (random.chance(0.3)) path += random.pick(DECORATIONS)
  }
  return random.chance(0.05) ? path.slice(0, random.below(path.length) + 1) : path
}

/** The name as it is, in capitals, or with some of its letters escaped once or twice. */
function spelled(random: Random, name: string): string {
  if (random.chance(0.6)) return encodeURIComponent(name)
  if (random.chance(0.3)) return encodeURIComponent(name.toUpperCase())
  return [...name]
    .map(letter => {
      if (random.chance(0.6)) return encodeURIComponent(letter)
      const escaped = encodeURIComponent(letter).replace(/^.$/, one => `%${one.charCodeAt(0).toString(16)}`)
      return random.chance(0.3) ? escaped.replaceAll('%', '%25') : escaped
    })
    .join('')
}

type Who = typeof COMMON | undefined

/** Those who pass; a visitor does only where every user does. */
function admittedTo(rules: Rules, path: string): Who[] {
  if (isTooLong(path) || pathProblem(path) || !admits(rules.ruleFor('GET', path, COMMON), COMMON)) return []
  return admits(rules.ruleFor('GET', path, undefined), undefined) ? [COMMON, undefined] : [COMMON]
}

/** The plain meaning of rules: the longest that covers the segments of a path decides. */
function createReference(given: readonly Rule[]): (segments: readonly string[], who: Who) => boolean {
  const named = given
    .map(rule => ({ rule, names: rule.path === '/' ? [] : rule.path.slice(1).split('/') }))
    .sort((one, other) => other.names.length - one.names.length)
  return (segments, who) => {
    const length = segments.at(-1) === '' ? segments.length - 1 : segments.length
    const deciding = named.find(
      ({ rule, names }) =>
        names.every((name, n) => n < length && name === segments[n]) && (!rule.exact || names.length === length),
    )
    return deciding !== undefined && admits(deciding.rule, who)
  }
}

/** The servers that would show the users a page that the rules do not give them. */
function createSearch(given: readonly Rule[]) {
  const rules = createRules(given)
  const mayHave = createReference(given)
  return (path: string): { admitted: boolean; waysPast: string[] } => {
    const admitted = admittedTo(rules, path)
    if (admitted.length === 0) return { admitted: false, waysPast: [] }
    const waysPast = Object.entries(SERVERS).flatMap(([name, server]) => {
      const segments = routedBy(server, path)
      const past = segments && admitted.some(who => !mayHave(segments, who))
      return past ? [`${path}: ${name} routes by /${segments.join('/')}`] : []
    })
    return { admitted: true, waysPast }
  }
}

test('a user without permission cannot reach a page through a random address, whichever server routes it', () => {
  const random = createRandom(SEED)
  const searches = RULE_SETS.map(createSearch)
  const found: string[] = []
  let admitted = 0
  for (let round = 0; round < ROUNDS; round++) {
    const result = random.pick(searches)(randomAddress(random))
    if (result.admitted) admitted++
    found.push(...result.waysPast)
  }
  assert.deepEqual(found.slice(0, 10), [], `ADDRESS_SEED=${SEED}: ${found.length} ways past a rule`)
  assert.ok(admitted > ROUNDS / 20, `${admitted} were admitted`)
})

test('a user without permission cannot reach a page through any line of the attack corpora', () => {
  const lines = ['open-redirects.txt', 'naughty-strings.json', 'crlf.txt', 'xss.txt'].flatMap(corpusStrings)
  for (const search of RULE_SETS.map(createSearch))
    for (const line of lines)
      for (const text of [line, encodeURI(line.toWellFormed()), encodeURIComponent(line.toWellFormed())])
        for (const path of [text, `/open/${text}`, `/open${text}`, `/open/${text}/admin`, `/${text}/vault`])
          assert.deepEqual(search(path).waysPast, [])
})
