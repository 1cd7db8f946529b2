// Many instances in one process, which all see the same connections.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, createServer, request as send } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { addCookies, createMenshen, sendAnswer } from '../../src/index.ts'
import { freePort } from '../kit/free-port.ts'
import { listen } from '../kit/listen.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'

const INSTANCES = 20

test('twenty instances that handle the requests of one connection cause no warning about too many listeners', async t => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  t.after(() => process.off('warning', onWarning))
  const provider = await openScriptedProvider(t)
  const port = await freePort()
  const baseUrl = `http://localhost:${port}`
  const instances = await Promise.all(
    Array.from({ length: INSTANCES }, () =>
      createMenshen({ ...provider.options, baseUrl, rules: [{ path: '/', public: true }] }),
    ),
  )
  t.after(() => Promise.all(instances.map(menshen => menshen.close())))
  const server = createServer(async (request, response) => {
    const one = instances[Number(request.headers['x-instance'])]
    if (one) return one.listener(request, response)
    for (const menshen of instances) {
      const { answer, cookies } = await menshen.admit(request)
      if (answer) return sendAnswer(response, answer)
      addCookies(response, cookies)
    }
    response.end('admitted by all')
  })
  server.on('upgrade', async (request, socket) => {
    for (const menshen of instances) await menshen.admit(request)
    socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
  })
  await listen(t, server, port)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  const sockets = new Set<unknown>()
  const ask = async (path: string, instance = 'all', body = '') => {
    const method = body ? 'POST' : 'GET'
    const outgoing = send(baseUrl + path, { agent, method, headers: { 'x-instance': instance, origin: baseUrl } })
    const [answer] = await once(outgoing.end(body), 'response')
    sockets.add(outgoing.socket)
    return text(answer)
  }
  assert.equal(await ask('/'), 'admitted by all')
  for (let n = 0; n < INSTANCES; n++) {
    assert.match(await ask('/login', String(n)), /<html/)
    // A client that sends a body may be a slow one, and is watched.
    await ask('/login', String(n), 'x=1')
  }
  assert.equal(sockets.size, 1)
  const upgrade = send(baseUrl, { headers: { connection: 'upgrade', upgrade: 'websocket', origin: baseUrl } }).end()
  const [{ statusCode }, socket] = await once(upgrade, 'upgrade')
  socket.destroy()
  assert.equal(statusCode, 101)
  // Warnings come with the next tick.
  await new Promise(setImmediate)
  assert.deepEqual(warnings, [])
})
