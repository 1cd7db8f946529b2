// A real proxy in front: started from its example file, with the ports of a test in place of the example's.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Rule } from '../../src/index.ts'
import { createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { findProgram } from '../kit/packages.ts'
import { raw, request } from './raw.ts'
import { cookieOf, openScene, type Scene, until } from './scene.ts'

export interface Proxy {
  program: string
  /** Its file among the examples. */
  example: string
  /** What takes the place of what, in that file. */
  replace(ports: Ports): [from: string, to: string][]
  /** Writes whatever else it needs, and gives its arguments. */
  prepare(folder: string, config: string): string[]
}

export interface Ports {
  proxy: number
  menshen: number
  application: number
}

const RULES: Rule[] = [
  { path: '/internal', roles: ['developer'] },
  { path: '/public', public: true },
]
const HTML = { accept: 'text/html', 'sec-fetch-dest': 'document' }
const NAMES = ['User', 'Email', 'Preferred-Username', 'Groups'].map(name => `X-Forwarded-${name}`)
const FORGED = [...NAMES, 'X-Menshen-Assertion'].flatMap(name => [
  `${name}: forged`,
  `${name.toLowerCase()}: forged`,
  `${name.replaceAll('-', '_')}: forged`,
  `${name.replace(/-(?=\w+$)/, '_')}: forged`,
])

async function openBehind(t: TestContext, proxy: Proxy) {
  const port = await freePort()
  const env = { TRUSTED_PROXIES: '127.0.0.1', BASE_URL: `http://127.0.0.1:${port}`, PORT: String(await freePort()) }
  const scene = await openScene(t, {
    env,
    config: { rules: RULES },
    answer: async (request, response) => {
      const body = await text(request)
      response.setHeader('set-cookie', 'app=1; Path=/').end(`page ${request.url}${body}`)
    },
  })
  const ports = { proxy: port, menshen: Number(env.PORT), application: Number(new URL(scene.upstream.url).port) }
  await startProxy(t, proxy, ports)
  const client = () => createClient(env.BASE_URL, scene.now)
  return {
    scene,
    url: env.BASE_URL,
    client,
    async user(username = 'zhangsan', more = {}) {
      const user = client()
      await signIn(user, scene.provider, { username, ...more })
      return user
    },
  }
}

async function startProxy(t: TestContext, { program, example, replace, prepare }: Proxy, ports: Ports): Promise<void> {
  const path = findProgram(program) ?? assert.fail(`${program} is not installed`)
  const folder = mkdtempSync(join(tmpdir(), 'menshen-'))
  let config = readFileSync(fileURLToPath(new URL(`../../examples/${example}`, import.meta.url)), 'utf8')
  for (const [from, to] of replace(ports)) {
    assert.ok(config.includes(from), `${example} has no ${from}`)
    config = config.replaceAll(from, to)
  }
  writeFileSync(join(folder, 'example'), config)
  const args = prepare(folder, join(folder, 'example'))
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const child = spawn(path, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', text => (said += text))
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  await until(() => {
    assert.equal(child.exitCode, null, said)
    return listens(ports.proxy)
  })
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return once(socket, 'connect')
    .then(
      () => true,
      () => false,
    )
    .finally(() => socket.destroy())
}

function truth({ upstream }: Scene): Record<string, unknown> {
  return Object.fromEntries(NAMES.map(name => [name, upstream.last().headers[name.toLowerCase()] || undefined]))
}

/** The same for every proxy. */
export function testProxy(proxy: Proxy): void {
  const { program } = proxy

  test(`behind ${program} a visitor signs in and comes back to the page that was asked for`, async t => {
    const { scene, client } = await openBehind(t, proxy)
    const visitor = client()
    const away = await visitor.get('/reports/%E4%B8%AD?a=1&b=%2F', { headers: HTML })
    assert.equal(away.status, 302)
    const login = await visitor.follow(away)
    assert.match(login.text, /登录/)
    assert.equal(login.url, `${scene.baseUrl}/login`)
    const back = await signIn(visitor, scene.provider)
    const page = await visitor.follow(back)
    assert.equal(page.text, 'page /reports/%E4%B8%AD?a=1&b=%2F')
    assert.deepEqual(truth(scene), {
      'X-Forwarded-User': 'zhangsan',
      'X-Forwarded-Email': 'zhangsan@example.com',
      'X-Forwarded-Preferred-Username': encodeURIComponent('张三'),
      'X-Forwarded-Groups': 'common',
    })
    assert.match(String(scene.upstream.last().headers['x-menshen-assertion']), /^eyJ/)
    const { cookies } = visitor
    assert.ok(cookies.has('menshen_session') && cookies.has('app'))
    await visitor.get('/')
    assert.equal(scene.upstream.last().headers.cookie, 'app=1')
    const form = 'x'.repeat(300_000)
    assert.equal((await visitor.post('/', form)).text, `page /${form}`)
    assert.equal((await client().get('/', { headers: { accept: 'application/json' } })).status, 401)
    assert.equal((await client().post('/', 'x')).status, 401)
  })

  test(`behind ${program} forged identities never survive`, async t => {
    const { scene, url, user } = await openBehind(t, proxy)
    // Nothing is known of this user but the name, so there is nothing to write over a forged header with.
    const nameless = await user('lisi', { email: '', nickname: '' })
    for (const [path, more, name] of [
      ['/', [`cookie: ${cookieOf(nameless)}`], 'lisi'],
      ['/public', [`cookie: ${cookieOf(nameless)}`], 'lisi'],
      ['/public', [], undefined],
    ] as const) {
      await raw(url, request(`GET ${path} HTTP/1.1`, ...more, ...FORGED).replace('app.test', new URL(url).host))
      const { lines } = scene.upstream.last()
      assert.deepEqual(
        lines.filter(([, value]) => value.includes('forged')),
        [],
      )
      assert.equal(truth(scene)['X-Forwarded-User'], name)
    }
  })

  test(`behind ${program} the rules hold, for every spelling of a path`, async t => {
    const { scene, url, user, client } = await openBehind(t, proxy)
    const [common, admin] = [await user(), await user('admin')]
    const refused = await common.get('/internal/x', { headers: HTML })
    assert.equal(refused.status, 403)
    assert.match(refused.text, /没有访问权限/)
    assert.equal((await admin.get('/internal/x')).text, 'page /internal/x')
    assert.equal((await client().get('/public')).text, 'page /public')
    scene.upstream.received.length = 0
    for (const trick of [
      ...[
        '/x/../internal',
        '/x/%2e%2e/internal',
        '//internal',
        '/%2finternal',
        '/internal%2fx',
        '/internal;x',
        '/internal/',
      ],
      ...[
        '/public/..%2finternal',
        '/public/..;/internal',
        '/x/..%5cinternal',
        '/%69nternal',
        '/%2569nternal',
        '/internal%00',
      ],
    ])
      await raw(
        url,
        request(`GET ${trick} HTTP/1.1`, `cookie: ${cookieOf(common)}`).replace('app.test', new URL(url).host),
      )
    assert.deepEqual(scene.upstream.received, [])
    assert.equal((await common.get('/fine')).text, 'page /fine')
  })

  test(`behind ${program} a refresh during a check reaches the browser`, async t => {
    const { scene, user } = await openBehind(t, proxy)
    const client = await user()
    assert.deepEqual((await client.get('/')).setCookies, ['app=1; Path=/'])
    scene.passSeconds(7200 - 200)
    const page = await client.get('/')
    assert.equal(page.text, 'page /')
    assert.equal(page.setCookies.length, 2)
    assert.match(page.setCookies.join('\n'), /menshen_session=.*Max-Age=7200/)
    scene.passSeconds(300)
    assert.equal((await client.get('/')).text, 'page /')
    assert.equal(scene.provider.callsTo('refresh').length, 1)
  })
}
