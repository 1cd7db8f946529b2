// How often Menshen waits for Redis, and that two processes still act as one. A round trip is what one write to a socket brings
// there: commands that are sent together are answered together.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import type { Client } from '../../kit/client.ts'
import { startRedis } from '../../kit/redis-server.ts'
import { openGateway, setUp } from '../../kit/set-up.ts'
import { until } from '../../kit/until.ts'

const LIFE = 7200
const server = await startRedis()
const counter = await startCounter(server.port)
after(() => {
  counter.close()
  return server.stop()
})

test('a sign-in and a refresh take few round trips to Redis', async t => {
  const env = { STORE: `redis://127.0.0.1:${counter.port}`, RATE_LIMIT_PER_MINUTE: '600', STATE_CHECK: 'bound' }
  const gateway = await setUp(t, { env, provider: { expiresIn: LIFE } })
  const { provider, upstream } = gateway
  const other = await openGateway(t, {
    ...provider.settings,
    ...env,
    UPSTREAM: upstream.url,
    BASE_URL: gateway.baseUrl,
  })

  let signIns = 0

  async function startSignIn(client: Client) {
    const started = await client.post('/login', {}, { headers: { origin: gateway.baseUrl } })
    const state = new URL(started.headers.location ?? '').searchParams.get('state')
    const secret = `menshen_attempt=${client.cookies.get('menshen_attempt')}`
    return { secret, path: `/callback?code=${provider.codeFor()}&state=${state}` }
  }

  /** From the form to the page, which `last` serves. The event of the audit trail comes a moment later. */
  async function signIn(first: Client, last: Client = first): Promise<string> {
    const { secret, path } = await startSignIn(first)
    const back = await last.get(path, { headers: { cookie: secret } })
    assert.equal((await last.follow(back)).status, 200)
    signIns++
    await until(async () => (await server.command('XLEN', 'menshen:trail')) === `${signIns}`)
    return `menshen_session=${last.cookies.get('menshen_session')}`
  }

  async function tripsOf(work: () => Promise<unknown>): Promise<number> {
    counter.reset()
    await work()
    return counter.trips().length
  }

  const isServed = async (client: Client, cookie: string) =>
    assert.equal((await client.get('/', { headers: { cookie } })).status, 200)

  // Keys of signatures and of data are read once, and scripts are sent once.
  for (const client of [gateway.visitor(), other.visitor()]) await signIn(client)
  let cookie = ''

  await t.test(
    'a sign-in takes at most seven round trips: two limits, start and end of the attempt, its trace, the session, the event',
    async () => {
      const trips = await tripsOf(async () => {
        cookie = await signIn(gateway.visitor())
      })
      assert.ok(trips <= 7, counter.summary())
    },
  )

  await t.test(
    'a sign-in that another process finishes takes at most one more round trip, to read the attempt',
    async () => {
      const trips = await tripsOf(() => signIn(gateway.visitor(), other.visitor()))
      assert.ok(trips <= 8, counter.summary())
    },
  )

  await t.test('a request takes no round trip, and the first one at another process takes at most one', async () => {
    assert.equal(await tripsOf(() => isServed(gateway.client, cookie)), 0, counter.summary())
    assert.ok((await tripsOf(() => isServed(other.client, cookie))) <= 1, counter.summary())
  })

  await t.test('a refresh takes at most two round trips: the lease, and the session with its indexes', async () => {
    gateway.passSeconds(LIFE - 200)
    const trips = await tripsOf(() => isServed(gateway.client, cookie))
    assert.equal(provider.callsTo('refresh').length, 1)
    assert.ok(trips <= 2, counter.summary())
  })

  await t.test('a refresh at another process takes at most one more round trip, to read the session', async () => {
    gateway.passSeconds(LIFE - 200)
    other.passSeconds(2 * (LIFE - 200))
    // The answer of Redis to this comes after what it has announced before: the other process has refreshed the session.
    assert.equal((await other.client.get('/_menshen/ready')).status, 200)
    const trips = await tripsOf(() => isServed(other.client, cookie))
    assert.equal(provider.callsTo('refresh').length, 2)
    assert.ok(trips <= 3, counter.summary())
  })

  await t.test('when a refresh is due, requests at both processes cause only one', async () => {
    for (const each of [gateway, other]) each.passSeconds(LIFE - 200)
    await Promise.all(Array.from({ length: 20 }, (_, n) => isServed(n % 2 ? gateway.client : other.client, cookie)))
    assert.equal(provider.callsTo('refresh').length, 3)
    assert.equal(provider.reuses, 0)
  })

  await t.test('a code that reaches both processes at once is redeemed once', async () => {
    const { secret, path } = await startSignIn(gateway.visitor())
    const redeemed = provider.callsTo('token').length
    const answers = await Promise.all(
      [gateway, other, gateway, other].map(each => each.visitor().get(path, { headers: { cookie: secret } })),
    )
    const opened = answers.filter(({ setCookies }) => setCookies.some(text => text.startsWith('menshen_session=')))
    assert.equal(opened.length, 1)
    assert.equal(provider.callsTo('token').length - redeemed, 1)
  })

  await t.test(
    'a sign-out at one process ends the session at the other, even right after a refresh there',
    async () => {
      for (const each of [gateway, other]) each.passSeconds(LIFE - 200)
      await isServed(other.client, cookie)
      await gateway.client.post('/logout', {}, { headers: { cookie, origin: gateway.baseUrl } })
      await until(async () => (await other.client.get('/', { headers: { cookie } })).status === 302)
    },
  )
})

/** A proxy in front of Redis that keeps what is sent. */
async function startCounter(port: number) {
  /** Heartbeats, and what each process says of itself every few seconds. */
  const isBackground = (text: string) => /^\*1\r\n\$4\r\nPING\r\n$/.test(text) || /instance|\r\nZCOUNT\r\n/.test(text)
  let sent: string[] = []
  const proxy = createServer({ noDelay: true }, client => {
    const redis = connect({ port, host: '127.0.0.1', noDelay: true })
    client.on('data', bytes => {
      sent.push(bytes.toString('latin1'))
      redis.write(bytes)
    })
    redis.pipe(client)
    client.on('error', () => {}).on('close', () => redis.destroy())
    redis.on('error', () => {}).on('close', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const trips = () => sent.filter(text => !isBackground(text))
  return {
    port: (proxy.address() as AddressInfo).port,
    trips,
    /** The commands of each trip and their first keys. */
    summary: () =>
      trips()
        .map(text => text.match(/EVALSHA|EVAL|[A-Z]{3,}(?=\r)|menshen:[\w:{}-]+/g)?.slice(0, 3))
        .join('\n'),
    reset() {
      sent = []
    },
    close: () => proxy.close(),
  }
}
