// `menshen doctor` behind nginx as our own examples configure it: it has nothing to warn of.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readExample } from '../../examples/claims.ts'
import { runDoctorCommand } from '../../src/command/doctor-command.ts'
import { createPaint } from '../../src/command/terminal/colours.ts'
import { prepareNginx } from '../forward/nginx.ts'
import { type FrontProxy, openBehind } from '../forward/proxies.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'

const PAGE = 'docs/deploying.md'
const snippet = snippetsIn(PAGE, readPage(PAGE)).find(({ language }) => language === 'nginx')

const EXAMPLES: readonly FrontProxy[] = [
  {
    program: 'nginx',
    name: 'examples/nginx/menshen.conf',
    mode: 'forward-auth',
    config: readExample('nginx/menshen.conf'),
    replace: ({ proxy, menshen, application }) => [
      ['listen 80;', `listen 127.0.0.1:${proxy};`],
      ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
      ['127.0.0.1:8080', `127.0.0.1:${application}`],
    ],
    prepare: prepareNginx,
  },
  {
    program: 'nginx',
    name: PAGE,
    mode: 'gateway',
    config: (snippet?.text ?? assert.fail(`${PAGE} has no snippet for nginx`)).replaceAll(/ssl_certificate.*;/g, ''),
    replace: ({ proxy, menshen }) => [
      ['listen 443 ssl;', `listen 127.0.0.1:${proxy};`],
      ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
    ],
    prepare: prepareNginx,
  },
]

for (const proxy of EXAMPLES)
  test(`the way in through nginx of ${proxy.name} is good in every respect`, async t => {
    const { scene, url } = await openBehind(t, proxy)
    const environment = {
      ...scene.provider.settings,
      BASE_URL: url,
      PORT: new URL(scene.url).port,
      STORE: 'memory:',
      TRUSTED_PROXIES: '127.0.0.1',
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
