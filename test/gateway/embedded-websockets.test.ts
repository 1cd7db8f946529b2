// The WebSocket server of docs/library.md, and one that somebody would write without it, in front of clients that reset.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { cookieOf } from '../kit/client.ts'
import { hasEnded, runProgram } from '../kit/library.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'

const RESETS = 200

const documented = () =>
  snippetsIn('docs/library.md', readPage('docs/library.md')).find(({ text }) => text.includes('WebSocketServer'))
    ?.text ?? assert.fail('no snippet has a WebSocketServer')

/** Without `sendAnswer`, and without a listener for errors. */
const OBVIOUS = `
import { createServer } from 'node:http'
import { createMenshen } from 'menshen'
const menshen = await createMenshen({ baseUrl: 'http://localhost:3000', devProvider: true })
createServer(menshen.listener).on('upgrade', async (request, socket) => {
  const { answer } = await menshen.admit(request)
  await new Promise(resolve => setTimeout(resolve, 20))
  socket.end('HTTP/1.1 ' + (answer?.status ?? 200) + ' x\\r\\nconnection: close\\r\\n\\r\\n')
}).listen(3000)
`

const HEAD = [
  'GET /socket HTTP/1.1',
  'Host: a',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
]
const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='

async function ask(port: number, lines: readonly string[] = [], body = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  socket.write(`${[...HEAD, KEY, ...lines].join('\r\n')}\r\n\r\n${body}`)
  return socket
}

async function answerTo(port: number, lines: readonly string[] = [], body = ''): Promise<string> {
  const socket = await ask(port, lines, body)
  let text = ''
  socket.setEncoding('latin1').on('data', (part: string) => (text += part))
  await once(socket, 'close')
  return text
}

const BODIES: readonly (readonly [lines: string[], body: string])[] = [
  [[], ''],
  [['Content-Length: 5'], ''],
  [['Transfer-Encoding: chunked'], '1\r\nx\r\n'],
]

/** Some before the request was read, and some while or after it was answered. */
async function resetOften(port: number): Promise<void> {
  for (let n = 0; n < RESETS; n++) {
    const [lines, body] = BODIES[n % BODIES.length] ?? assert.fail()
    const socket = await ask(port, lines, body)
    for (let turn = 0; turn < n % 7; turn++) await new Promise(resolve => setImmediate(resolve))
    const closed = once(socket, 'close')
    socket.resetAndDestroy()
    await closed
  }
}

suite('a WebSocket server in an application', () => {
  test('the documented WebSocket server admits users, refuses visitors and other sites, and survives client resets', async t => {
    const { port, child, visitor } = await runProgram(t, documented())
    assert.match(await answerTo(port), /^HTTP\/1\.1 401 [\s\S]*connection: close[\s\S]*"requestId"/)
    assert.match(await answerTo(port, ['Origin: https://evil.example']), /^HTTP\/1\.1 403 /)
    await resetOften(port)
    assert.ok(!hasEnded(child))
    const { text } = await visitor.get('/login')
    const address = /data-authorize="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const body = new URLSearchParams({ username: 'admin' })
    const back = await fetch(`${address}&state=abc_idp`, { method: 'POST', body, redirect: 'manual' })
    const { pathname, search } = new URL(back.headers.get('location') ?? '')
    assert.equal((await visitor.get(pathname + search)).status, 302)
    const client = new WebSocket(`ws://localhost:${port}/socket`, { headers: { cookie: cookieOf(visitor) } })
    const [said] = await once(client, 'message')
    assert.equal(String(said), 'Hello admin')
    client.terminate()
    assert.match(
      await answerTo(port, [`Cookie: ${cookieOf(visitor)}`, 'Content-Length: 5'], 'GET /'),
      /^(HTTP\/1\.1 400 |$)/,
    )
    assert.equal((await visitor.get('/page')).text, 'a page')
  })

  test('a WebSocket server without error listeners survives client resets if it calls admit', async t => {
    const { port, child, visitor } = await runProgram(t, OBVIOUS)
    await resetOften(port)
    assert.equal((await visitor.get('/_menshen/ready')).status, 200)
    assert.ok(!hasEnded(child))
  })
})
