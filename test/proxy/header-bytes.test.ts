// Bytes above 0x7f in headers, which applications send as UTF-8 or as Latin-1: they arrive as they were sent.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import test, { type TestContext } from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { openWire, raw, request, startRawUpstream } from './raw.ts'

/** Every line as bytes, one character each. */
const LINES = [
  `Content-Disposition: attachment; filename="${bytesOf('报告.pdf')}"`,
  'Content-Disposition: attachment; filename="r\xe9sum\xe9.pdf"',
  `Location: ${bytesOf('/wiki/中文')}`,
  'Location: /caf\xe9',
  // Neither a character of UTF-8 nor a whole one.
  'X-Broken: \xe4\xb8\xff\x80',
]

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

interface Shape {
  readonly line?: string
  readonly status?: string
  readonly headers?: readonly string[]
  /** Sent together with the head. */
  readonly body?: string
  /** Sent once the head has reached the browser. */
  readonly later?: string
}

const SHAPES: Readonly<Record<string, Shape>> = {
  'a response with its body': { headers: ['content-length: 5'], body: 'hello' },
  'a response before a body of known length': { headers: ['content-length: 5'], later: 'hello' },
  'a response with a chunked body': { headers: ['transfer-encoding: chunked'], body: '5\r\nhello\r\n0\r\n\r\n' },
  'a response before a chunked body': { headers: ['transfer-encoding: chunked'], later: '5\r\nhello\r\n0\r\n\r\n' },
  'a response to HEAD': { line: 'HEAD / HTTP/1.1', headers: ['content-length: 5'] },
  'a response without a body': { status: '204 No Content' },
  'a redirect': { status: '302 Found', headers: ['content-length: 0'] },
  'an event stream': {
    headers: ['content-type: text/event-stream', 'transfer-encoding: chunked'],
    later: '5\r\nhello\r\n0\r\n\r\n',
  },
}

async function setUpBytes(t: TestContext, take: (socket: Socket, head: string) => void) {
  const upstream = await startRawUpstream(t, take)
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  return { scene, upstream, cookie: `cookie: ${cookieOf(await scene.user())}` }
}

function headOf(status: string, ...headers: string[]): string {
  return `${[`HTTP/1.1 ${status}`, ...headers].join('\r\n')}\r\n\r\n`
}

/** Names in lower case. */
function linesOf(answer: string): string[] {
  const [head = ''] = answer.split('\r\n\r\n')
  return head.split('\r\n').map(line => line.replace(/^[^:]*/, name => name.toLowerCase()))
}

for (const [what, { line = 'GET / HTTP/1.1', status = '200 OK', headers = [], body = '', later }] of Object.entries(
  SHAPES,
))
  test(`bytes above 0x7f in the headers of ${what} reach the browser as they were sent`, async t => {
    let sent = ''
    let socketOfApplication: Socket | undefined
    const { scene, cookie } = await setUpBytes(t, socket => {
      socketOfApplication = socket
      socket.write(sent, 'latin1')
    })
    for (const extra of LINES)
      for (const order of [
        [...headers, extra],
        [extra, ...headers],
      ]) {
        sent = headOf(status, ...order) + body
        const wire = await openWire(scene.url)
        wire.socket.write(request(line, cookie), 'latin1')
        if (later !== undefined) {
          await wire.sees('\r\n\r\n')
          socketOfApplication?.write(later, 'latin1')
        }
        const lines = linesOf(await wire.rest())
        assert.match(lines[0] ?? '', new RegExp(` ${status.slice(0, 3)} `, 'i'), extra)
        assert.ok(lines.includes(extra.replace(/^[^:]*/, name => name.toLowerCase())), `${extra}\n${lines.join('\n')}`)
      }
  })

const UPGRADE = [
  'GET / HTTP/1.1',
  'host: app.test',
  'connection: upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
]

test('bytes above 0x7f in the response to an upgrade reach the browser as they were sent', async t => {
  let sent = ''
  const { scene, cookie } = await setUpBytes(t, socket => socket.write(sent, 'latin1'))
  for (const extra of LINES)
    for (const [status, ...headers] of [
      ['403 Forbidden', 'content-length: 0'],
      ['302 Found', 'content-length: 0'],
      ['101 Switching Protocols', 'connection: upgrade', 'upgrade: websocket'],
    ] as const) {
      sent = headOf(status, ...headers, extra)
      const wire = await openWire(scene.url)
      wire.socket.write(`${[...UPGRADE, cookie].join('\r\n')}\r\n\r\n`)
      const lines = linesOf(await wire.sees('\r\n\r\n'))
      wire.socket.destroy()
      assert.match(lines[0] ?? '', new RegExp(` ${status.slice(0, 3)} `, 'i'))
      assert.ok(lines.includes(extra.replace(/^[^:]*/, name => name.toLowerCase())), `${extra}\n${lines.join('\n')}`)
    }
})

test('bytes above 0x7f in early hints and trailers reach the browser as they were sent', async t => {
  const { scene, cookie } = await setUpBytes(t, socket => {
    const name = bytesOf('样式')
    socket.write(headOf('103 Early Hints', `link: </${name}.css>; rel=preload`), 'latin1')
    socket.write(headOf('200 OK', 'transfer-encoding: chunked', 'trailer: x-name'), 'latin1')
    socket.write(`2\r\nok\r\n0\r\nx-name: ${name}\r\n\r\n`, 'latin1')
  })
  const answer = await raw(scene.url, request('GET / HTTP/1.1', cookie, 'te: trailers'))
  assert.ok(answer.includes(`link: </${bytesOf('样式')}.css>; rel=preload\r\n`), answer)
  assert.ok(answer.includes(`x-name: ${bytesOf('样式')}\r\n`), answer)
})

test('bytes above 0x7f in the headers of a request reach the application as they were sent', async t => {
  const { scene, upstream, cookie } = await setUpBytes(t, socket => socket.write(headOf('200 OK', 'content-length: 0')))
  const lines = [`X-Name: ${bytesOf('报告')}`, 'X-Latin: caf\xe9', 'X-Broken: \xe4\xb8\xff\x80']
  for (const [line, ...more] of [
    ['GET / HTTP/1.1'],
    ['POST / HTTP/1.1', 'content-length: 0'],
    ['POST / HTTP/1.1', 'content-length: 5'],
  ] as const) {
    await raw(scene.url, request(line, cookie, ...lines, ...more) + (more[0]?.endsWith('5') ? 'hello' : ''))
    for (const sent of lines)
      assert.ok(
        upstream.heads.some(head => head.includes(`${sent}\r\n`)),
        sent,
      )
    upstream.heads.length = 0
  }
  const wire = await openWire(scene.url)
  wire.socket.write(`${[...UPGRADE, cookie, ...lines].join('\r\n')}\r\n\r\n`, 'latin1')
  await once(wire.socket, 'data')
  wire.socket.destroy()
  for (const sent of lines) assert.ok(upstream.heads.at(-1)?.includes(`${sent}\r\n`), sent)
})
