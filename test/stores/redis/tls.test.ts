// TLS on every connection: to the sentinels and the primary that they name, and to all nodes of a cluster.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { readSettings } from '../../../src/index.ts'
import { openRedisStore } from '../../../src/stores/redis/store.ts'
import type { Store } from '../../../src/stores/store.ts'
import { makeCertificates, PRIMARY_NAME, startCluster, startWithSentinels } from '../../kit/redis-server.ts'

const PASSWORD = 'p@ss:w/ord'
const LOGIN = `:${encodeURIComponent(PASSWORD)}@`

const certificates = await makeCertificates()
const watched = await startWithSentinels(PASSWORD, certificates)
const cluster = await startCluster({ password: PASSWORD, tls: certificates })
after(async () => {
  await Promise.all([watched.stop(), cluster.stop()])
  certificates.remove()
})

const CA = `?ca=${encodeURIComponent(`${certificates.folder}/ca.crt`)}`
const sentinels = watched.sentinels.map(({ host }) => host).join(',')
const nodes = cluster.servers.map(({ host }) => host).join(',')
const KINDS = {
  sentinels: { scheme: 'sentinel', rest: `${LOGIN}${sentinels}/${PRIMARY_NAME}/2` },
  'a cluster': { scheme: 'cluster', rest: `${LOGIN}${nodes}` },
}

for (const [kind, { scheme, rest }] of Object.entries(KINDS)) {
  test(`a Redis store with ${kind} creates, lists, replaces and takes entries over TLS`, async t => {
    const address = `rediss+${scheme}://${rest}${CA}`
    assert.equal(readSettings({ STORE: address }).STORE, address)
    const { store } = await open(t, address)
    for (let i = 10; i < 30; i++) assert.ok(await store.create(`k${i}`, entry()))
    const { entries } = await store.list({ label: 'label', limit: 50 })
    assert.equal(entries.length, 20)
    const found = await store.read('k10')
    assert.ok(await store.replace('k10', entry(), found?.version ?? 0))
    assert.ok(await store.take('k10'))
    await store.ready()
  })

  test(`a Redis store with ${kind} refuses a certificate from an unknown authority`, async t => {
    const { store, lines } = await open(t, `rediss+${scheme}://${rest}`)
    await assert.rejects(store.create('k', entry()), { code: 'store_unavailable' })
    assert.match(JSON.stringify(lines), /certificate/)
    assert.ok(!JSON.stringify(lines).includes(encodeURIComponent(PASSWORD)))
  })

  test(`a Redis store with ${kind} behind TLS is unavailable if its address does not use TLS`, async t => {
    const { store } = await open(t, `redis+${scheme}://${rest}`)
    await assert.rejects(store.create('k', entry()), { code: 'store_unavailable' })
  })

  test(`an unreadable CA file for ${kind} is a bad_settings error`, async t => {
    await assert.rejects(open(t, `rediss+${scheme}://${rest}?ca=/none/such.crt`), { code: 'bad_settings' })
  })
}

function entry() {
  return { value: new Uint8Array(3), expiresAt: Date.now() + 60_000, labels: ['label'] }
}

async function open(t: TestContext, address: string): Promise<{ store: Store; lines: object[] }> {
  const lines: object[] = []
  const report = (event: string, fields?: object) => void lines.push({ ...fields, event })
  const store = await openRedisStore({ address, now: Date.now, report })
  t.after(() => store.close())
  return { store, lines }
}
