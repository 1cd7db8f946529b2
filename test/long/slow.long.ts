// A thousand visitors who never finish asking, while fifty users work.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, createClient, signIn } from '../kit/client.ts'
import { setUpInstances } from '../kit/instance.ts'
import { until } from '../kit/until.ts'

const SLOW = 1000
const USERS = 50
const MEASURE_MS = 12_000
const DRIP_MS = 2000
/** The deadline for headers, how often the server looks, and some patience. */
const CLOSED_AFTER_MS = 200_000

test(`${USERS} users get every page beside ${SLOW} slow connections, which the server closes`, {
  timeout: 400_000,
}, async t => {
  const { provider, start } = await setUpInstances(t, { STORE: 'memory:', RATE_LIMIT_PER_MINUTE: '0' })
  const { url } = await start()
  const users = await Promise.all(
    Array.from({ length: USERS }, async (_, n) => {
      const client = createClient(url)
      await signIn(client, provider, { username: `user${n}` })
      return client
    }),
  )
  await ask(users, 3000)
  const alone = await ask(users, MEASURE_MS)
  const began = performance.now()
  const slow = await openSlow(t, Number(new URL(url).port))
  const beside = await ask(users, MEASURE_MS)
  const stillOpen = slow.filter(({ socket }) => !socket.closed).length
  t.diagnostic(`alone: ${alone.count} answers, p50 ${alone.p50} ms, p99 ${alone.p99} ms`)
  t.diagnostic(`beside ${stillOpen} slow ones: ${beside.count} answers, p50 ${beside.p50} ms, p99 ${beside.p99} ms`)
  assert.ok(stillOpen > SLOW * 0.9, 'they were there while it was measured')
  await until(() => slow.every(({ socket }) => socket.closed), CLOSED_AFTER_MS)
  t.diagnostic(`all closed by the server ${Math.round((performance.now() - began) / 1000)} s after the first came`)
  assert.ok(slow.every(one => one.closedByServer))
  for (const client of users.slice(0, 5)) assert.equal((await client.get('/_menshen/me')).status, 200)
})

interface Slow {
  socket: Socket
  closedByServer: boolean
}

/** Each sends a little every two seconds: headers, half a request line, or nothing at all. */
async function openSlow(t: TestContext, port: number): Promise<Slow[]> {
  const beginnings = ['GET / HTTP/1.1\r\nhost: x\r\n', 'GET /pa', '']
  const slow = await Promise.all(
    Array.from({ length: SLOW }, async (_, n) => {
      const socket = connect(port, '127.0.0.1')
      const one: Slow = { socket, closedByServer: false }
      const gone = () => {
        one.closedByServer = true
        socket.destroy()
      }
      socket.on('error', gone).on('end', gone).resume()
      await once(socket, 'connect')
      const beginning = beginnings[n % beginnings.length] ?? ''
      if (beginning === '') return one
      socket.write(beginning)
      const drip = setInterval(() => socket.write(beginning.endsWith('\n') ? 'x: y\r\n' : 'x'), DRIP_MS)
      socket.once('close', () => clearInterval(drip))
      return one
    }),
  )
  t.after(() => {
    for (const { socket } of slow) socket.destroy()
  })
  return slow
}

/** Every user asks again as soon as there was an answer and a moment's thought. */
async function ask(users: readonly Client[], durationMs: number) {
  const times: number[] = []
  const end = performance.now() + durationMs
  const work = async (client: Client) => {
    while (performance.now() < end) {
      const began = performance.now()
      assert.equal((await client.get('/')).status, 200)
      times.push(performance.now() - began)
      await pause(100)
    }
  }
  await Promise.all(users.map(work))
  times.sort((a, b) => a - b)
  const at = (share: number) => Math.round((times[Math.floor(times.length * share)] ?? 0) * 10) / 10
  return { count: times.length, p50: at(0.5), p99: at(0.99) }
}
