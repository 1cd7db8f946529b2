// nginx in front of the gateway, as docs/behind-a-proxy.md has it, with nginx itself.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createClient } from '../kit/client.ts'
import { testAttacks } from './attacks.ts'
import { testJourneys } from './journeys.ts'
import { NGINX_AND_GATEWAY } from './nginx.ts'
import { openBehind } from './proxies.ts'
import { testSockets } from './sockets.ts'
import { testTransfers } from './transfers.ts'

testJourneys(NGINX_AND_GATEWAY)
testAttacks(NGINX_AND_GATEWAY)
testSockets(NGINX_AND_GATEWAY)
testTransfers(NGINX_AND_GATEWAY)

test('Prometheus on the same machine can read the metrics directly, but not through nginx', async t => {
  const { client, directUrl, scene } = await openBehind(t, NGINX_AND_GATEWAY)
  assert.equal((await createClient(directUrl).get('/_menshen/metrics')).status, 200)
  assert.equal((await client().get('/_menshen/metrics')).status, 403)
  const [refused] = scene.lines.filter(({ event }) => event === 'metrics_refused')
  assert.partialDeepStrictEqual(refused?.fields, { address: '127.0.0.2', reason: 'proxy' })
})
