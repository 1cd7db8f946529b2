// examples/next with the packed package and the real Next: installed into an empty folder, built, started, and attacked.

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient, signIn } from '../kit/client.ts'
import { signInAtDevProvider } from '../kit/dev-sign-in.ts'
import { freePort } from '../kit/free-port.ts'
import { type ScriptedProvider, startScriptedProvider } from '../kit/scripted-provider.ts'
import { until } from '../kit/until.ts'
import { raw, request } from '../proxy/raw.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LIFE = 7200
const PAGE = { accept: 'text/html' }
const DATA = { accept: 'application/json' }
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
const ENVIRONMENT = { ...process.env, PATH, NEXT_TELEMETRY_DISABLED: '1', npm_config_update_notifier: 'false' }
const run = promisify(execFile)

const folder = mkdtempSync(join(tmpdir(), 'menshen-next-'))
const opened = new AsyncDisposableStack()
opened.defer(() => rmSync(folder, { recursive: true, force: true }))
let provider: ScriptedProvider
let url: string

before(
  async () => {
    await setUpInstances()
    provider = opened.adopt(await startScriptedProvider({ expiresIn: LIFE }), provider => provider.close())
    url = await start(['start'], { ...provider.settings, SECRET: 's'.repeat(32) }, opened)
  },
  { timeout: 600_000 },
)

after(() => opened.disposeAsync())

async function setUpInstances(): Promise<void> {
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT, env: ENVIRONMENT })
  const [packed = ''] = readdirSync(folder)
  cpSync(join(ROOT, 'examples/next'), folder, { recursive: true })
  cpSync(join(ROOT, 'docs/images/login.png'), join(folder, 'public/reports/chart.png'))
  mkdirSync(join(folder, 'app/api/cached'))
  writeFileSync(join(folder, 'app/api/cached/route.ts'), CACHED_ROUTE)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  manifest.dependencies.menshen = `file:${packed}`
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--silent']
  await run('npm', ['install', ...options], { cwd: folder, env: ENVIRONMENT })
  // With the types of the real Next; and nothing of Menshen is started meanwhile.
  await run('npx', ['next', 'build'], { cwd: folder, env: ENVIRONMENT })
  assert.ok(!readdirSync(folder).includes('data'))
}

/** A route that lets everybody keep its answer. */
const CACHED_ROUTE = `export const GET = () =>
  new Response('cached', { headers: { 'cache-control': 'public, max-age=600', 'set-cookie': 'theirs=1' } })
`

/** Resolves when Next answers. It ends with `stack`. */
async function start(
  args: readonly string[],
  settings: Record<string, string>,
  stack: AsyncDisposableStack,
): Promise<string> {
  const port = String(await freePort())
  const address = `http://localhost:${port}`
  const child = spawn(process.execPath, ['node_modules/next/dist/bin/next', ...args, '-p', port], {
    cwd: folder,
    env: { ...ENVIRONMENT, ...settings, BASE_URL: address },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(child, 'exit')
  stack.defer(async () => {
    child.kill()
    await exited
  })
  const client = createClient(address)
  const isReady = () => client.get('/_menshen/ready').then(({ status }) => status === 200)
  await until(() => isReady().catch(() => false), 120_000)
  return address
}

async function signedIn(username = 'zhangsan', expiresIn = LIFE) {
  const client = createClient(url)
  provider.behaviour.expiresIn = expiresIn
  const landed = await signIn(client, provider, { username })
  provider.behaviour.expiresIn = LIFE
  assert.equal(landed.headers.location, '/')
  return client
}

/** What the form of the home page would send. */
function form(page: string, fields: Record<string, string>): FormData {
  const data = new FormData()
  for (const [, name = '', value = ''] of page.matchAll(/<input type="hidden" name="([^"]*)"(?: value="([^"]*)")?/g))
    data.append(name, value.replaceAll('&quot;', '"'))
  for (const [name, value] of Object.entries(fields)) data.append(name, value)
  return data
}

suite('a visitor', () => {
  test('a visitor is redirected to the login page and back after signing in, and the style sheet of the login page is served', async () => {
    const visitor = createClient(url)
    const wanted = await visitor.get('/?x=1', { headers: PAGE })
    assert.equal(wanted.headers.location, '/login')
    const login = await visitor.follow(wanted)
    assert.equal(login.status, 200)
    const [, asset = ''] = /"(\/_menshen\/assets\/[^"]+\.css[^"]*)"/.exec(login.text) ?? []
    assert.match((await visitor.get(asset)).headers['content-type'] ?? '', /^text\/css/)
    const landed = await signIn(visitor, provider, { username: 'zhangsan', nickname: '张三' })
    assert.equal(landed.headers.location, '/?x=1')
    assert.match((await visitor.follow(landed)).text, /张三/)
  })

  test('a visitor gets 401 from an API route and can see a public page', async () => {
    const visitor = createClient(url)
    assert.equal((await visitor.get('/api/me', { headers: DATA })).status, 401)
    const about = await visitor.get('/about', { headers: PAGE })
    assert.equal(about.status, 200)
    assert.match(about.text, /访客/)
  })

  test('a visitor with a forged session cookie, or with two, gets 401', async () => {
    const user = await signedIn()
    const cookie = `menshen_session=${user.cookies.get('menshen_session')}`
    assert.equal((await user.get('/api/me')).status, 200)
    for (const wrong of [`menshen_session=${'A'.repeat(43)}`, `${cookie}; menshen_session=other`, `${cookie}x`])
      assert.equal((await user.get('/api/me', { headers: { cookie: wrong, ...DATA } })).status, 401, wrong)
  })
})

suite('a page for developers', () => {
  const ways = ['/reports', '/reports/', '//reports', '/%72eports', '/reports?_rsc', '/reports?x', '/REPORTS']
  const forms = [
    '/reports.rsc',
    '/reports.txt',
    '/reports.html',
    '/reports.segments/_tree.segment.rsc',
    '/reports/index',
  ]
  const around = [
    '/_next/../reports',
    '/_next/static/../../reports',
    '/_next/static/..%2f..%2freports',
    '/about/../reports',
  ]
  const others = ['/_next/static/%2e%2e/%2e%2e/reports', '/_next/data/x/reports.json', '/_next/static\\..\\..\\reports']
  const paths = [...ways, ...forms, ...around, ...others]
  const HEADERS = [[], ['rsc: 1'], ['rsc: 1', 'next-router-prefetch: 1', 'next-router-segment-prefetch: /_tree']]
  const FORGED = [
    ['x-middleware-subrequest: proxy:proxy:proxy:proxy:proxy'],
    ['x-middleware-next: 1'],
    ['x-matched-path: /about'],
  ]

  async function seen(path: string, ...headers: string[]): Promise<boolean> {
    const answer = await raw(url, request(`GET ${path} HTTP/1.1`, ...headers))
    return Buffer.from(answer, 'latin1').toString().includes('报表')
  }

  test('a page for developers is shown only to developers, however the path and the headers are written', async () => {
    const cookieOf = async (username: string) => {
      const user = await signedIn(username)
      return `cookie: menshen_session=${user.cookies.get('menshen_session')}`
    }
    const [common, developer] = [await cookieOf('zhangsan'), await cookieOf('admin')]
    for (const path of paths)
      for (const headers of [...HEADERS, ...FORGED])
        for (const who of [[], [common]])
          assert.ok(!(await seen(path, ...headers, ...who)), `${path} ${headers} ${who}`)
    assert.ok(await seen('/reports', developer))
    assert.ok(await seen('/reports?_rsc', 'rsc: 1', developer))
    assert.ok(await seen('/_next/static/../../reports', developer))
  })

  test('an image of a page for developers reaches no other user, neither by its path nor through the image optimizer', async () => {
    const optimized = '/_next/image?url=%2Freports%2Fchart.png&w=64&q=75'
    for (const path of ['/reports/chart.png', optimized]) {
      for (const client of [createClient(url), await signedIn()]) {
        const { status, headers } = await client.get(path, { headers: { accept: 'image/*' } })
        assert.doesNotMatch(headers['content-type'] ?? '', /^image/, `${path} ${status}`)
      }
    }
    const image = await (await signedIn('admin')).get('/reports/chart.png')
    assert.equal(image.headers['content-type'], 'image/png')
  })
})

suite('a user', () => {
  test('an API route and a public page know the user, and only a developer gets the page for developers', async () => {
    const user = await signedIn()
    assert.equal((await user.get('/api/me')).json<{ userRole: string }>().userRole, 'common')
    assert.match((await user.get('/about')).text, /zhangsan/)
    const refused = await user.get('/reports', { headers: PAGE })
    assert.equal(refused.status, 403)
    assert.doesNotMatch(refused.text, /报表/)
    const admin = await signedIn('admin')
    const reports = await admin.get('/reports', { headers: PAGE })
    assert.match(reports.text, /报表/)
    // Rendered beforehand, which Next lets shared caches keep.
    assert.match(reports.headers['cache-control'] ?? '', /^private/)
    assert.ok(reports.headers['x-request-id'])
  })

  test('a request with a due refresh makes the proxy refresh the tokens once and renew the cookie', async () => {
    const user = await signedIn('lisi', 200)
    const before = provider.callsTo('refresh').length
    const page = await user.get('/', { headers: PAGE })
    assert.equal(page.status, 200)
    assert.equal(provider.callsTo('refresh').length, before + 1)
    assert.match(page.setCookies.join(), /^menshen_session=[^;]+; Path=\/; Max-Age=7200; HttpOnly; SameSite=Lax$/i)
    assert.equal((await user.get('/')).status, 200)
    assert.equal(provider.callsTo('refresh').length, before + 1)
  })

  test('a response that renews the session cookie has Cache-Control no-store, even if the route allows caching', async () => {
    const user = await signedIn('lisi', 200)
    const { headers, setCookies } = await user.get('/api/cached')
    assert.match(setCookies.join('\n'), /menshen_session=/)
    assert.match(setCookies.join('\n'), /theirs=1/)
    assert.match(String(headers['cache-control']), /no-store/)
  })

  test('a user can call a server action; a visitor and a page of another site cannot', async () => {
    const user = await signedIn('wangwu')
    const send = async (note: string, headers: Record<string, string>) => {
      const body = form((await user.get('/', { headers: PAGE })).text, { note })
      const cookie = `menshen_session=${user.cookies.get('menshen_session')}`
      return fetch(url, { method: 'POST', body, headers: { cookie, ...PAGE, ...headers }, redirect: 'manual' })
    }
    const saved = await send('第一', { origin: url })
    assert.equal(saved.status, 200)
    assert.match(await saved.text(), /第一/)
    for (const origin of ['https://evil.example', 'null']) {
      const foreign = await send('第二', { origin })
      assert.doesNotMatch(await foreign.text(), /第二/, origin)
    }
    assert.equal((await send('第三', { origin: url, cookie: '' })).status, 401)
    assert.match((await user.get('/')).text, /第一/)
  })

  test('the session cookie of a user gets 401 after the sign-out', async () => {
    const user = await signedIn()
    const cookie = `menshen_session=${user.cookies.get('menshen_session')}`
    const out = await user.post('/logout', '', { headers: { origin: url } })
    assert.equal(out.headers.location, '/login')
    assert.equal((await user.get('/api/me', { headers: { cookie, ...DATA } })).status, 401)
  })
})

suite('a developer', () => {
  for (const bundler of ['--turbopack', '--webpack'])
    test(`a developer who changes a rule stays signed in, and an invalid rule leads to 500 with its problem (${bundler})`, {
      timeout: 600_000,
    }, async () => {
      const file = join(folder, 'menshen.ts')
      const original = readFileSync(file, 'utf8')
      const change = (from: string, to: string) => {
        assert.ok(original.includes(from))
        writeFileSync(file, original.replace(from, to))
      }
      // Next runs one development server in a folder.
      await using stack = new AsyncDisposableStack()
      stack.defer(() => writeFileSync(file, original))
      const address = await start(['dev', bundler], { DEV_PROVIDER_PORT: String(await freePort()) }, stack)
      const developer = createClient(address)
      await signInAtDevProvider(developer, 'zhangsan')
      const reports = () => developer.get('/reports', { headers: PAGE })
      // Next may compile for longer than the client waits.
      const statusOf = (answer: ReturnType<typeof reports>) => answer.then(({ status }) => status).catch(() => 0)
      const becomes = (expected: number) => until(async () => (await statusOf(reports())) === expected, 240_000)
      const isSignedIn = async () => {
        const me = () => statusOf(developer.get('/api/me', { headers: DATA }))
        await until(async () => (await me()) !== 0, 240_000)
        return (await me()) === 200
      }
      await becomes(403)
      assert.ok(await isSignedIn())
      change("['developer']", "['common']")
      await becomes(200)
      assert.ok(await isSignedIn())
      change("path: '/reports'", "path: 'reports'")
      await becomes(500)
      assert.match((await reports()).text, /rules\.1\.path: expected a plain path that starts with/)
      change("['developer']", "['developer', 'common']")
      await becomes(200)
      assert.ok(await isSignedIn())
    })
})
