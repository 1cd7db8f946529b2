// Who may read /_menshen/metrics: by the address of the connection alone, and never through a proxy.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type OutgoingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { startInstance } from '../kit/instance.ts'
import { requireLinux } from '../kit/requirements.ts'
import { setUp } from '../kit/set-up.ts'

interface Asking {
  /** The address that it comes from. */
  from?: string
  headers?: OutgoingHttpHeaders
}

async function ask(url: string, { from = '127.0.0.1', headers = {} }: Asking = {}) {
  if (from !== '127.0.0.1') requireLinux(from)
  const [answer] = await once(get(`${url}/_menshen/metrics`, { localAddress: from, headers, agent: false }), 'response')
  return { status: answer.statusCode as number, text: await text(answer) }
}

const HOSTILE: readonly OutgoingHttpHeaders[] = [
  { 'x-forwarded-for': '127.0.0.1' },
  { 'X-FORWARDED-PROTO': 'https' },
  { 'x-forwarded-anything': '' },
  { forwarded: 'for=127.0.0.1' },
  { via: '1.1 somewhere' },
  { 'x-real-ip': '127.0.0.1' },
]

test('this machine can read the metrics, and requests that came through a proxy get 403', async t => {
  const scene = await setUp(t)
  for (const from of ['127.0.0.1', '127.8.9.10']) assert.equal((await ask(scene.url, { from })).status, 200)
  for (const headers of HOSTILE) {
    const { status, text } = await ask(scene.url, { headers })
    assert.deepEqual([status, text], [403, ''], JSON.stringify(headers))
  }
})

test('a refused request for the metrics is logged with its address, the reason and a remedy', async t => {
  const scene = await setUp(t, { env: { METRICS_FROM: '127.0.0.2' } })
  await ask(scene.url)
  await ask(scene.url, { from: '127.0.0.2', headers: { 'x-forwarded-for': '9.9.9.9' } })
  const refused = scene.lines
    .filter(({ event }) => event === 'metrics_refused')
    .map(({ fields }) => fields as { address?: string; reason?: string; remedy?: string })
  assert.deepEqual(
    refused.map(({ address, reason }) => [address, reason]),
    [
      ['127.0.0.1', 'address'],
      ['127.0.0.2', 'proxy'],
    ],
  )
  assert.match(String(refused[0]?.remedy), /METRICS_FROM/)
})

test('with METRICS_FROM only the listed addresses can read the metrics, not this machine and not a signed-in developer', async t => {
  const scene = await setUp(t, { env: { METRICS_FROM: '127.0.0.2, 127.1.0.0/16' } })
  for (const from of ['127.0.0.2', '127.1.2.3']) assert.equal((await ask(scene.url, { from })).status, 200)
  for (const from of ['127.0.0.1', '127.2.0.1']) {
    assert.equal((await ask(scene.url, { from })).status, 403)
    assert.equal((await ask(scene.url, { from, headers: { 'x-forwarded-for': '127.0.0.2' } })).status, 403)
  }
  const user = await scene.user('admin')
  assert.equal((await user.get('/_menshen/metrics')).status, 403, 'no role opens it')
})

test('a trusted proxy cannot read the metrics even if METRICS_FROM includes its address', async t => {
  const scene = await setUp(t, { env: { METRICS_FROM: '127.0.0.0/8', TRUSTED_PROXIES: '127.0.0.2' } })
  assert.equal((await ask(scene.url, { from: '127.0.0.2' })).status, 403)
  assert.equal((await ask(scene.url)).status, 200)
})

test('no address in a network of trusted proxies can read the metrics, but an agent on this machine can', async t => {
  const scene = await setUp(t, { env: { METRICS_FROM: '127.0.0.1, 127.8.9.10', TRUSTED_PROXIES: '127.8.0.0/16' } })
  assert.equal((await ask(scene.url, { from: '127.8.9.10' })).status, 403)
  const refused = scene.lines.find(({ event }) => event === 'metrics_refused')
  assert.match(String(refused?.fields.remedy), /only the addresses of the proxies/)
  assert.equal((await ask(scene.url)).status, 200)
})

test('METRICS_FROM=none turns the metrics off with 404', async t => {
  const scene = await setUp(t, { env: { METRICS_FROM: 'none' } })
  assert.equal((await ask(scene.url)).status, 404)
})

test('METRICS_FROM also matches an IPv4 address that a dual-stack socket reports as IPv6', async t => {
  const PORT = String(await freePort())
  const menshen = await startInstance({
    HOST: '::',
    PORT,
    BASE_URL: `http://localhost:${PORT}`,
    METRICS_FROM: '127.0.0.2',
  })
  t.after(() => menshen.stop())
  const url = `http://127.0.0.1:${PORT}`
  assert.equal((await ask(url, { from: '127.0.0.2' })).status, 200)
  assert.equal((await ask(url)).status, 403)
})
