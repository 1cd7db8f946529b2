// `menshen doctor` behind nginx as our own examples configure it: it has nothing to warn of.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runDoctorCommand } from '../../src/cli/commands/doctor.ts'
import { createPaint } from '../../src/cli/terminal.ts'
import { NGINX_AND_GATEWAY, NGINX_EXAMPLE } from '../proxies/nginx.ts'
import { openBehind } from '../proxies/proxies.ts'

const EXAMPLES = { 'examples/nginx/menshen.conf': NGINX_EXAMPLE, 'examples/nginx/gateway.conf': NGINX_AND_GATEWAY }

for (const [name, proxy] of Object.entries(EXAMPLES))
  test(`menshen doctor reports no proxy problem behind nginx with ${name}`, async t => {
    const { scene, url } = await openBehind(t, proxy)
    const environment = {
      ...scene.provider.settings,
      BASE_URL: url,
      PORT: new URL(scene.url).port,
      STORE: 'memory:',
      TRUSTED_PROXIES: proxy.address ?? '127.0.0.1',
      UPSTREAM: proxy.mode === 'gateway' ? scene.upstream.url : '',
    }
    const { text } = await runDoctorCommand(['--json'], { environment, now: scene.now, paint: createPaint(false) })
    const { checks } = JSON.parse(text) as { checks: { name: string; level: string; seen: string }[] }
    const found = checks.filter(({ name }) => name.startsWith('proxy'))
    assert.deepEqual(
      found.map(({ name, level }) => [name, level]),
      ['host', 'proto', 'client address', 'upgrade'].map(part => [`proxy ${part}`, 'good']),
      text,
    )
  })
