// nginx in front of the gateway, as docs/deploying.md has it, with nginx itself.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createClient } from '../kit/client.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'
import { prepareNginx } from './nginx.ts'
import { type FrontProxy, openBehind } from './proxies.ts'
import { testAttacks } from './proxy-attacks.ts'
import { testJourneys } from './proxy-journeys.ts'
import { testSockets } from './proxy-sockets.ts'

const PAGE = 'docs/deploying.md'
const snippet = snippetsIn(PAGE, readPage(PAGE)).find(({ language }) => language === 'nginx')

const proxy: FrontProxy = {
  program: 'nginx',
  name: 'nginx and the gateway',
  mode: 'gateway',
  address: '127.0.0.2',
  // Without TLS, which test/docs-snippets.test.ts tries.
  config: (snippet?.text ?? assert.fail(`${PAGE} has no snippet for nginx`)).replaceAll(/ssl_certificate.*;/g, ''),
  replace: ({ proxy, menshen }) => [
    ['listen 443 ssl;', `listen 127.0.0.1:${proxy};`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
  ],
  prepare: prepareNginx,
}

testJourneys(proxy)
testAttacks(proxy)
testSockets(proxy)

test('a Prometheus on the same machine reads the metrics directly, and nobody through nginx', async t => {
  const { client, directUrl, scene } = await openBehind(t, proxy)
  assert.equal((await createClient(directUrl).get('/_menshen/metrics')).status, 200)
  assert.equal((await client().get('/_menshen/metrics')).status, 403)
  const [refused] = scene.lines.filter(({ event }) => event === 'metrics_refused')
  assert.partialDeepStrictEqual(refused?.facts, { address: '127.0.0.2', reason: 'proxy' })
})
