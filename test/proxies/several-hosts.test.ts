// The examples for several host names behind nginx, Caddy and HAProxy, with the programs themselves.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readExample } from '../../examples/claims.ts'
import { freePort } from '../kit/free-port.ts'
import { setUp } from '../kit/set-up.ts'
import { createBrowser } from '../kit/several-hosts.ts'
import { startUpstream } from '../kit/upstream.ts'
import { prepareNginx } from './nginx.ts'
import { type FrontProxy, startProxy } from './proxies.ts'

const NAMES = ['sso', 'wiki', 'grafana'] as const

type Example = Pick<FrontProxy, 'program' | 'config' | 'prepare'> & {
  readonly beside?: string
  replace(port: number): [from: string, to: string][]
}

const EXAMPLES: Example[] = [
  {
    program: 'nginx',
    config: readExample('nginx/menshen-hosts.conf'),
    beside: 'nginx',
    replace: port => [
      ['listen 80;', `listen 127.0.0.1:${port};`],
      ['listen 80 default_server;', `listen 127.0.0.1:${port} default_server;`],
    ],
    prepare: prepareNginx,
  },
  {
    program: 'caddy',
    config: readExample('caddy/hosts.Caddyfile'),
    beside: 'caddy',
    replace: port => NAMES.map(name => [`\n${name}.example.com {`, `\nhttp://${name}.example.com:${port} {`]),
    prepare(_folder, config) {
      writeFileSync(config, `{\n\tadmin off\n}\n\n${readFileSync(config, 'utf8')}`)
      return ['run', '--adapter', 'caddyfile', '--config', config]
    },
  },
  {
    program: 'haproxy',
    config: readExample('haproxy/haproxy-hosts.cfg'),
    replace: port => [
      ['bind :80', `bind 127.0.0.1:${port}`],
      ...NAMES.map((name): [string, string] => [`${name}.example.com`, `${name}.example.com:${port}`]),
      ['/etc/haproxy/', fileURLToPath(new URL('../../examples/haproxy/', import.meta.url))],
    ],
    prepare: (_folder, config) => ['-db', '-f', config],
  },
]

for (const { program, replace, ...example } of EXAMPLES)
  test(`behind ${program}, two applications on different host names share one sign-in`, async t => {
    const wiki = await startUpstream(t, (_, response) => response.end('the wiki'))
    const grafana = await startUpstream(t, (_, response) => response.end('grafana'))
    const port = await freePort()
    const [portal, wikiAt, grafanaAt] = NAMES.map(name => `http://${name}.example.com:${port}`) as [
      string,
      string,
      string,
    ]
    const scene = await setUp(t, {
      application: false,
      env: { BASE_URL: portal, TRUSTED_PROXIES: '127.0.0.1' },
      config: {
        hosts: {
          [`wiki.example.com:${port}`]: { rules: [{ path: '/open', public: true }] },
          [`grafana.example.com:${port}`]: { rules: [{ path: '/', users: ['zhangsan'] }] },
        },
      },
    })
    const proxy: FrontProxy = {
      ...example,
      program,
      mode: 'forward-auth',
      replace: () => [
        ...replace(port),
        ['127.0.0.1:3000', `127.0.0.1:${new URL(scene.url).port}`],
        ['127.0.0.1:8081', new URL(wiki.url).host],
        ['127.0.0.1:8082', new URL(grafana.url).host],
      ],
    }
    await startProxy(t, proxy, { proxy: port, menshen: Number(new URL(scene.url).port), application: 0 })
    const url = `http://127.0.0.1:${port}`
    const browser = createBrowser(url, scene.now)

    assert.equal((await browser.get(`${wikiAt}/open`)).text, 'the wiki')
    const hop = await browser.get(`${wikiAt}/page?a=1`)
    assert.equal(hop.status, 302)
    assert.equal(new URL(hop.headers.location ?? '').searchParams.get('to'), `${wikiAt}/page?a=1`)
    assert.equal((await browser.get(`${portal}/`)).headers.location, '/login')
    await browser.signIn(scene.provider, {}, portal)
    const page = await browser.open(`${wikiAt}/page?a=1`)
    assert.equal(page.text, 'the wiki')
    assert.equal(wiki.last().headers['x-forwarded-user'], 'zhangsan')
    assert.equal(wiki.last().headers.cookie || undefined, undefined)
    assert.equal((await browser.open(`${grafanaAt}/d`)).text, 'grafana')

    // A user whom the rules of the one refuse cannot ask for it under the name of the other.
    const other = createBrowser(url, scene.now)
    await other.signIn(scene.provider, { username: 'lisi' }, portal)
    assert.equal((await other.open(`${wikiAt}/`)).text, 'the wiki')
    assert.equal((await other.open(`${grafanaAt}/`)).status, 403)
    const before = grafana.received.length
    const cookie = `menshen_session=${other.cookies(wikiAt).get('menshen_session')}`
    const lie = `wiki.example.com:${port}`
    for (const headers of [
      { 'x-original-host': lie },
      { 'x-forwarded-host': lie },
      { 'x-original-host': lie, 'x-forwarded-host': lie },
    ])
      assert.notEqual((await other.get(`${grafanaAt}/`, { headers: { ...headers, cookie } })).status, 200)
    for (const [target, host] of [
      [`http://grafana.example.com:${port}/x`, lie],
      ['/x', `grafana.example.com:${port}\r\nhost: ${lie}`],
      ['/x', `${lie}\r\nhost: grafana.example.com:${port}`],
    ] as const) {
      const socket = connect(port, '127.0.0.1')
      socket.write(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\ncookie: ${cookie}\r\nconnection: close\r\n\r\n`)
      await text(socket)
    }
    assert.equal(grafana.received.length, before, 'nothing of it reaches the other application')

    assert.equal((await browser.post(`${grafanaAt}/logout`)).headers.location, `${portal}/login`)
    assert.equal((await browser.get(`${wikiAt}/page`)).status, 302)
    const unknown = await browser
      .get(`${portal}/`, { headers: { host: `evil.example.com:${port}` } })
      .catch(() => undefined)
    assert.ok(!unknown || unknown.status === 421 || unknown.text === '', 'an unknown name gets nothing')
  })
