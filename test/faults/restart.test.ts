// Ends and new starts while people sign in: nobody who was told something hears the contrary afterwards.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { isServed, type SignedInUser, setUpInstances, signedIn, userOf } from '../kit/instance.ts'
import { signInUnderKills } from './kills.ts'
import { startProxy, type TestProxy } from './proxy.ts'

test('a rolling restart of two instances behind proxies, with and without keep-alive, loses no request', async t => {
  const { provider, start } = await setUpInstances(t)
  const ports = [String(await freePort()), String(await freePort())]
  const instances = await Promise.all(ports.map(PORT => start({ PORT })))
  const proxies = [await startProxy(t, instances), await startProxy(t, instances, { keepAlive: true })]
  const user = await signedIn(instances[0] ?? assert.fail(), provider)
  const statuses = new Map<number | string, number>()
  const count = (status: number | string) => statuses.set(status, (statuses.get(status) ?? 0) + 1)
  const newcomers: SignedInUser[] = []
  let isOver = false
  t.after(() => {
    isOver = true
  })

  async function visit(proxy: TestProxy): Promise<void> {
    while (!isOver) {
      await user.get(proxy).then(
        ({ status }) => count(status),
        error => count(error.code),
      )
      await pause(1)
    }
  }
  async function comeIn(proxy: TestProxy): Promise<void> {
    while (!isOver) {
      const client = createClient(proxy.url)
      const { status, headers } = await signIn(client, provider)
      count(headers.location === '/' ? 200 : status)
      if (headers.location === '/') newcomers.push(userOf(client))
      await pause(10)
    }
  }
  const visits = proxies.flatMap(proxy => [visit(proxy), visit(proxy), comeIn(proxy)])
  for (const [n, instance] of instances.entries()) {
    await pause(100)
    assert.deepEqual(await instance.kill('SIGTERM'), { code: 0, signal: null })
    await start({ PORT: ports[n] ?? '' })
  }
  isOver = true
  await Promise.all(visits)
  assert.deepEqual([...statuses.keys()], [200], JSON.stringify([...statuses]))
  for (const newcomer of newcomers.slice(-20))
    for (const proxy of proxies) assert.ok(isServed(await newcomer.get(proxy)))
  t.diagnostic(`${statuses.get(200)} requests, retried: ${JSON.stringify(proxies.map(({ retries }) => retries))}`)
})

test('three kill -9 during sign-ins and sign-outs lose no confirmed sign-in and undo no confirmed sign-out', async t => {
  const { signIns, signOuts, startsMs } = await signInUnderKills(t, 3)
  assert.ok(signIns > 12 && signOuts > 3, `${signIns} signed in, ${signOuts} signed out`)
  t.diagnostic(`${signIns} signed in, ${signOuts} signed out, ready after at most ${startsMs.at(-1)} ms`)
})
