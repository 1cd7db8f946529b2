// S48: a shared cache in front, even a careless one, never gives one user what another was given.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { cookieOf, createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { requireProgram } from '../kit/requirements.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const backend = (port: number) => `vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "${port}"; }\n`
const VCLS: Record<string, string> = {
  'in its default configuration': '',
  // Looks at no cookie, of the request or of the answer: only Cache-Control and Surrogate-Control hold it back.
  'that ignores cookies': `
sub vcl_recv {
  if (req.method == "GET" || req.method == "HEAD") { return (hash); }
  return (pass);
}
sub vcl_backend_response {
  if (beresp.http.Cache-Control ~ "(?i)(private|no-store|no-cache)" && beresp.http.Surrogate-Control !~ "max-age") {
    set beresp.uncacheable = true;
    set beresp.ttl = 120s;
    return (deliver);
  }
  set beresp.ttl = 120s;
  return (deliver);
}`,
}

/** The application invites every cache to keep what it says to this user. */
const INVITING: Record<string, Record<string, string>> = {
  '/s-maxage': { 'cache-control': 'public, s-maxage=600, max-age=600' },
  '/capitals': { 'cache-control': 'Public, S-MaxAge=600' },
  '/surrogate': { 'cache-control': 'public, max-age=600', 'surrogate-control': 'max-age=600' },
  '/cdn': { 'cdn-cache-control': 'max-age=600', 'x-accel-expires': '600' },
  '/expires': { expires: 'Fri, 01 Jan 2038 00:00:00 GMT' },
  '/nothing': {},
  '/vary': { 'cache-control': 'public, max-age=600', vary: 'accept-encoding' },
  '/etag': { 'cache-control': 's-maxage=600', etag: '"same"', 'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT' },
}

async function openBehindCache(t: TestContext, vcl: string) {
  const [port, menshenPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const scene = await setUp(t, {
    env: { BASE_URL: url, PORT: String(menshenPort), TRUSTED_PROXIES: '127.0.0.1' },
    config: { rules: [{ path: '/public', public: true }] },
    answer(request, response) {
      const user = String(request.headers['x-forwarded-user'] ?? 'nobody')
      const path = (request.url ?? '').replace('/public', '').replace(/\?.*/, '')
      for (const [name, value] of Object.entries(INVITING[path] ?? {})) response.setHeader(name, value)
      if (user !== 'nobody') response.setHeader('set-cookie', `app=${user}; Path=/`)
      response.end(`page of ${user}`)
    },
  })
  const folder = mkdtempSync(join(tmpdir(), 'menshen-'))
  writeFileSync(join(folder, 'test.vcl'), backend(menshenPort) + vcl)
  const where = ['-n', join(folder, 'work'), '-f', join(folder, 'test.vcl'), '-a', `127.0.0.1:${port}`]
  const small = ['-s', 'malloc,16m', '-p', 'thread_pools=1', '-p', 'thread_pool_min=10', '-p', 'thread_pool_max=50']
  const child = spawn(requireProgram('varnishd'), ['-F', '-j', 'none', '-T', 'none', ...where, ...small], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', text => (said += text))
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const client = () => createClient(url, scene.now)
  await until(() => {
    assert.equal(child.exitCode, null, said)
    return client()
      .get('/_menshen/health')
      .then(
        ({ status }) => status === 200,
        () => false,
      )
  }, 20_000)
  async function user(username: string) {
    const one = client()
    assert.equal((await signIn(one, scene.provider, { username })).headers.location, '/')
    return one
  }
  return { scene, client, user }
}

for (const [kind, vcl] of Object.entries(VCLS)) {
  test(`a Varnish ${kind} never serves a user’s page or cookie to another user or a visitor`, async t => {
    const { scene, client, user } = await openBehindCache(t, vcl)
    const [first, second] = [await user('zhangsan'), await user('lisi')]
    assert.notEqual(cookieOf(first), cookieOf(second))
    for (const folder of ['', '/public']) {
      for (const name of Object.keys(INVITING)) {
        const path = folder + name
        for (const [who, expected] of [
          [first, 'zhangsan'],
          [second, 'lisi'],
          [first, 'zhangsan'],
          [second, 'lisi'],
        ] as const) {
          const { text, setCookies } = await who.get(path)
          assert.equal(text, `page of ${expected}`, path)
          assert.deepEqual(setCookies, [`app=${expected}; Path=/`], path)
        }
        const stranger = await client().get(path)
        assert.equal(stranger.status, folder ? 200 : 302, path)
        assert.ok(!/zhangsan|lisi/.test(stranger.text + stranger.setCookies), path)
      }
    }
    assert.ok(scene.upstream.received.length > 0)
  })

  test(`a Varnish ${kind} never serves a response of Menshen’s own routes to another client`, async t => {
    const { scene, client, user } = await openBehindCache(t, vcl)
    const first = await user('zhangsan')
    const second = await user('lisi')
    for (const path of ['/_menshen/me', '/_menshen/account', '/login']) {
      const html = { headers: { accept: 'text/html' } }
      assert.ok(!(await first.get(path, html)).text.includes('lisi'), path)
      assert.ok(!(await second.get(path, html)).text.includes('zhangsan'), path)
      const stranger = await client().get(path, html)
      assert.ok(!/zhangsan|lisi|张三/.test(stranger.text), path)
    }
    // A refusal must not be kept either, nor a redirect with somebody's return path.
    assert.equal((await second.get('/_menshen/console')).status, 403)
    const developer = await user('admin')
    assert.equal((await developer.get('/_menshen/console')).status, 200)
    assert.equal((await second.get('/_menshen/console')).status, 403)
    const [away, again] = [await client().get('/deep/one?a=1'), await client().get('/deep/one?a=1')]
    for (const { status, setCookies } of [away, again]) {
      assert.equal(status, 302)
      assert.match(String(setCookies), /menshen_return=/)
    }
    assert.equal((await first.get('/deep/one?a=1')).text, 'page of zhangsan')
    // The same address of a callback twice: the second must not get the first one's cookie.
    const path = `/callback?code=${scene.provider.codeFor({ username: 'wangwu' })}&state=a_idp`
    const [one, other] = [client(), client()]
    await one.get(path)
    await other.get(path)
    assert.ok(one.cookies.has('menshen_session') && !other.cookies.has('menshen_session'))
    await first.post('/logout')
    assert.equal((await first.get('/s-maxage')).status, 302, 'after signing out no page comes from the cache')
    assert.equal((await second.get('/s-maxage')).text, 'page of lisi', 'nor is a sign-out given to somebody else')
  })

  test(`a Varnish ${kind} does cache a public page with s-maxage for visitors`, async t => {
    const { scene, client } = await openBehindCache(t, vcl)
    for (let n = 0; n < 3; n++) assert.equal((await client().get('/public/s-maxage')).text, 'page of nobody')
    assert.equal(scene.upstream.received.length, 1, 'or these tests prove nothing')
  })
}
