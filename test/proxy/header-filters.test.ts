// What every forwarded request passes through, compared with slow versions that can be read at a glance.
import assert from 'node:assert/strict'
import test from 'node:test'
import { readSettings } from '../../src/config/read.ts'
import { transportSecurityOf } from '../../src/http/answers.ts'
import { cookieNames, ourCookies } from '../../src/http/cookies.ts'
import { createResponseHeaders } from '../../src/proxy/response-headers.ts'
import { createCookieFilter, createOwnCookieTest } from '../../src/util/own-cookies.ts'
import { createRandom, type Random } from '../security/random.ts'

const ROUNDS = 5000

function several<T>({ below, pick }: Random, most: number, from: readonly T[]): T[] {
  return Array.from({ length: below(most + 1) }, () => pick(from))
}

test('a Cookie header is forwarded unchanged except for Menshen’s cookies', () => {
  const random = createRandom(1)
  const ours = ourCookies(cookieNames({ BASE_URL: 'https://app.example' }))
  const withoutOurs = createCookieFilter(ours)
  const pieces = [
    ...[
      'a=1',
      '_ga=GA1.1',
      'menshen_session=t',
      '__Host-menshen_session=t',
      '__HOST-Menshen_Return=/',
      'menshen_fragment',
    ],
    ...[
      'menshen_sessions=no',
      'x=menshen_session=t',
      '=menshen_session',
      '',
      ' ',
      '=',
      'menshen_session',
      '\tmenshen_moved =1',
    ],
  ]
  const simple = (header: string) =>
    header
      .split(';')
      .filter(pair => !ours.has((pair.split('=', 1)[0] ?? '').trim().toLowerCase()))
      .join(';')
      .trim()
  for (let round = 0; round < ROUNDS; round++) {
    const header = several(random, 6, pieces).join(random.pick([';', '; ', ' ;']))
    assert.equal(withoutOurs(header), simple(header), JSON.stringify(header))
  }
})

test('response headers are forwarded except hop-by-hop headers, those for shared caches and Menshen’s cookies', () => {
  const random = createRandom(3)
  for (const BASE_URL of ['https://app.example', 'http://localhost:3000']) {
    const settings = readSettings({
      BASE_URL,
      AUTH_URL: 'https://id.example',
      CLIENT_ID: 'c',
      CLIENT_SECRET: 's'.repeat(32),
    })
    const authorities = new Map([['localhost:8080', '']])
    const responseHeaders = createResponseHeaders({
      baseUrl: BASE_URL,
      authorities,
      isOwnCookie: createOwnCookieTest(ourCookies(cookieNames(settings))),
      transportSecurity: transportSecurityOf(settings),
    })
    for (let round = 0; round < ROUNDS; round++) {
      const headers = randomAnswer(random)
      const ours = {
        upstream: { prefix: '/', strippedPrefix: '', authorities: [] },
        path: '/',
        requestId: 'ours',
        signedIn: random.chance(0.5),
        cookies: random.chance(0.3) ? ['menshen_session=new'] : [],
        cookiesCanWait: random.chance(0.5),
      }
      const list = responseHeaders(headers, ours)
      const made = Object.fromEntries(Array.from({ length: list.length / 2 }, (_, n) => list.slice(2 * n, 2 * n + 2)))
      assert.equal(Object.keys(made).length * 2, list.length, 'no name twice')
      assert.deepEqual(made, simpleAnswer(headers, ours, BASE_URL), JSON.stringify([headers, ours]))
    }
  }
})

type Answer = Record<string, string | string[]>

const VALUES: Readonly<Record<string, readonly (string | string[])[]>> = {
  connection: ['keep-alive', 'close', 'X-Hop, etag', 'x-request-id', 'Cache-Control'],
  'keep-alive': ['timeout=5'],
  'transfer-encoding': ['chunked'],
  upgrade: ['h2c'],
  'x-hop': ['1'],
  etag: ['"a"'],
  'content-type': ['text/html', 'image/png'],
  'cache-control': ['public, max-age=60', 'no-store', 'max-age=5,s-maxage=9', 'private="x"', 'no-cache', 'Public'],
  'surrogate-control': ['max-age=1'],
  'cdn-cache-control': ['max-age=1'],
  'x-accel-expires': ['60'],
  'clear-site-data': ['"cache"', '"cookies"', '"*"', ['"cache"', '"cookies"']],
  'set-cookie': ['a=1', ['a=1', 'menshen_session=x'], '__host-MENSHEN_return=x', ' =menshen_session'],
  location: ['http://localhost:8080/x', '/x', ['/x', '//localhost:8080'], 'https://elsewhere.example/'],
  'content-location': ['http://localhost:8080/y'],
  'x-request-id': ['theirs'],
  'strict-transport-security': ['max-age=1'],
}

function randomAnswer({ chance, pick }: Random): Answer {
  const chosen = Object.entries(VALUES).filter(() => chance(0.4))
  return Object.fromEntries(chosen.map(([name, values]) => [name, pick(values)]))
}

const FOR_THE_CONNECTION = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade']
const FOR_SHARED_CACHES = ['surrogate-control', 'cdn-cache-control', 'x-accel-expires']
const MOVED: Readonly<Record<string, string>> = {
  'http://localhost:8080/x': '/x',
  'http://localhost:8080/y': '/y',
  '//localhost:8080': '/',
}
const PRIVATE: Readonly<Record<string, string>> = {
  'public, max-age=60': 'private, max-age=60',
  'no-store': 'no-store',
  'max-age=5,s-maxage=9': 'private, max-age=5',
  'private="x"': 'private',
  'no-cache': 'private, no-cache',
  Public: 'private',
}

function simpleAnswer(
  headers: Answer,
  ours: { requestId: string; signedIn: boolean; cookies: string[]; cookiesCanWait: boolean },
  baseUrl: string,
): Answer {
  const caching = String(headers['cache-control'] ?? '')
  const isAsset = headers['content-type'] !== 'text/html' && !headers['set-cookie'] && /max-age=[^0]/.test(caching)
  const cookies = ours.cookiesCanWait && isAsset ? [] : ours.cookies
  const named = String(headers.connection ?? '')
    .toLowerCase()
    .split(', ')
  const kept: Answer = {}
  for (const [name, value] of Object.entries(headers))
    if (!FOR_THE_CONNECTION.includes(name) && !named.includes(name)) kept[name] = value
  if (/cookies|\*/.test(String(headers['clear-site-data']))) delete kept['clear-site-data']
  for (const name of ['location', 'content-location'])
    if (kept[name]) kept[name] = [kept[name]].flat().map(place => (MOVED[place] ? baseUrl + MOVED[place] : place))
  const theirs = [headers['set-cookie'] ?? []].flat().filter(cookie => !/menshen/i.test(cookie))
  delete kept['set-cookie']
  if (theirs.length + cookies.length > 0) kept['set-cookie'] = [...theirs, ...cookies]
  kept['x-request-id'] ??= ours.requestId
  if (baseUrl.startsWith('https:')) kept['strict-transport-security'] ??= 'max-age=31536000'
  if (!ours.signedIn && cookies.length === 0) return kept
  for (const name of FOR_SHARED_CACHES) delete kept[name]
  return { ...kept, 'cache-control': cookies.length > 0 ? 'no-store' : (PRIVATE[caching] ?? 'private') }
}
