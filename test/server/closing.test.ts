// What a server that stops does with the connections that it has.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { openGateway } from '../kit/set-up.ts'

const REQUEST = 'GET /_menshen/health HTTP/1.1\r\nHost: localhost\r\n\r\n'

test('a connection that the system has taken before the server closes is answered', async t => {
  const { url, end } = await openGateway(t, {})
  const port = Number(new URL(url).port)
  const sockets = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'))
  // The system has taken them, and the server has not yet looked.
  await new Promise(process.nextTick)
  const ended = end(10_000)
  const answers = sockets.map(async socket => {
    await once(socket, 'connect')
    socket.write(REQUEST)
    return text(socket)
  })
  for (const answer of await Promise.all(answers)) assert.match(answer, /^HTTP\/1\.1 200 /)
  await ended
})

test('a server that has closed refuses connections', async t => {
  const { url, end } = await openGateway(t, {})
  await end(10_000)
  const [error] = await once(connect(Number(new URL(url).port), '127.0.0.1'), 'error')
  assert.equal(error.code, 'ECONNREFUSED')
})
