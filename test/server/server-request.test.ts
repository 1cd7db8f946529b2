// Our own request class reads headers exactly as Node does, only faster.

import assert from 'node:assert/strict'
import { createServer, IncomingMessage } from 'node:http'
import test from 'node:test'
import { ServerRequest } from '../../src/server/fast-path.ts'
import { listen } from '../kit/listen.ts'
import { raw } from '../proxy/raw.ts'
import { createRandom, type Random } from '../security/random.ts'

const NAMES = [
  ...['Accept', 'accept', 'ACCEPT', 'Cookie', 'cookie', 'X-Request-Id', 'x-request-id', 'X-Original-URI', 'Referer'],
  ...['User-Agent', 'user-agent', 'Authorization', 'Set-Cookie', 'set-cookie', 'Date', 'If-Match', 'Content-Type'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '1', '0', '!#$%&', 'Keep-Alive', 'Expires'],
]
const VALUES = ['', 'a', 'b; c', '1, 2', '=', '\xe9\xff', 'x'.repeat(300)]

/** Now and then the same names as before, in the same order or in another. */
function nextHead(random: Random, before: readonly string[]): string[] {
  if (random.chance(0.3)) return [...before]
  if (random.chance(0.2)) return before.toReversed()
  const count = random.chance(0.02) ? 150 : random.below(12)
  return Array.from({ length: count }, (_, n) => (count > 12 ? `x-${n}` : random.pick(NAMES)))
}

test('ServerRequest parses the headers of 2,000 random requests exactly as Node does', async t => {
  let compared = 0
  let leftToNode = 0
  const server = createServer({ IncomingMessage: ServerRequest, maxHeaderSize: 65_536 }, (request, response) => {
    const own = request.headers
    const nodes = Reflect.get(IncomingMessage.prototype, 'headers', request)
    assert.deepStrictEqual(own, nodes)
    assert.deepEqual(Object.keys(own), Object.keys(nodes))
    assert.equal(request.headers, own, 'they are read once')
    compared++
    if (own === nodes) leftToNode++
    response.end()
  })
  const { url } = await listen(t, server)
  const random = createRandom(26)
  const requests: string[] = []
  for (let round = 0, names: string[] = []; round < 2000; round++) {
    names = nextHead(random, names)
    const lines = names.map(name => `${name}: ${random.pick(VALUES)}\r\n`)
    requests.push(`GET / HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`)
  }
  requests.push('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await raw(url, requests.join(''))
  assert.equal(compared, requests.length)
  assert.ok(leftToNode > 100 && leftToNode < compared - 100, `${leftToNode} were left to Node`)
})
