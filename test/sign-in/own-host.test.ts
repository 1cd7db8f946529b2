// This machine under another name than BASE_URL's: a browser is sent to the right one, with the page that it wanted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Gateway, setUp } from '../kit/set-up.ts'

const PAGE = {
  accept: 'text/html',
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-site': 'none',
}
/** The Host of a browser that is at another name of this machine. */
const otherName = ({ url }: Gateway) => ({ host: new URL(url).host.replace('localhost', '127.0.0.1') })
const DEEP = '/reports/%E4%B8%AD?a=1&b=%2F%2Fevil.example'

test('a browser that uses another loopback host is redirected to the same page at BASE_URL', async t => {
  const scene = await setUp(t)
  const { port } = new URL(scene.url)
  for (const host of [`127.0.0.1:${port}`, `[::1]:${port}`, `127.1.2.3:${port}`, '127.0.0.1'])
    for (const path of [DEEP, '/', '/login', '/login?error=access_denied', '/_menshen/console/sessions?username=x']) {
      const answer = await scene.visitor().get(path, { headers: { ...PAGE, host } })
      assert.equal(answer.status, 302)
      assert.equal(answer.headers.location, scene.baseUrl + path, `${host} ${path}`)
      assert.ok(!answer.setCookies.some(cookie => cookie.startsWith('menshen_return')), 'a cookie there is of no use')
    }
  const there = scene.visitor()
  const host = `localhost:${port}`
  assert.equal((await there.get(DEEP, { headers: { ...PAGE, host } })).headers.location, '/login')
  const back = await there.get(`/callback?code=${scene.provider.codeFor()}&state=a_idp`, { headers: { ...PAGE, host } })
  assert.equal(back.headers.location, DEEP)
})

test('requests other than page navigations are answered at the loopback host that they use', async t => {
  const scene = await setUp(t)
  const { host } = otherName(scene)
  const dests = ['image', 'iframe', 'script', 'style']
  for (const headers of [{}, { accept: 'text/html' }, ...dests.map(dest => ({ 'sec-fetch-dest': dest }))]) {
    const there = { headers: { host, ...headers } }
    assert.equal((await scene.visitor().get(DEEP, there)).headers.location, '/login', JSON.stringify(headers))
    assert.equal((await scene.visitor().get('/login', there)).status, 200, JSON.stringify(headers))
  }
  assert.equal((await scene.visitor().get('/', { headers: { host, 'sec-fetch-dest': 'empty' } })).status, 401)
  assert.equal(
    (await scene.visitor().request({ method: 'HEAD', path: '/login', headers: { host, ...PAGE } })).status,
    200,
  )
})

test('only loopback hosts are redirected, and only if BASE_URL is a loopback address', async t => {
  const scene = await setUp(t)
  for (const host of ['evil.example', '10.0.0.1', 'localhost.evil.example', '127.0.0.1.evil.example', 'x y', '[', '@'])
    assert.equal((await scene.visitor().get('/', { headers: { ...PAGE, host } })).headers.location, '/login', host)
  const elsewhere = await setUp(t, { env: { BASE_URL: 'https://app.example.com' } })
  const headers = { ...PAGE, ...otherName(elsewhere) }
  assert.equal((await elsewhere.visitor().get('/', { headers })).headers.location, '/login')
})

test('a proxy that sets its own Host header causes no redirect loop', async t => {
  const scene = await setUp(t)
  const headers = { ...PAGE, ...otherName(scene) }
  // The browser is at BASE_URL all the time, and keeps what it is given there.
  const browser = scene.visitor()
  const first = await browser.get('/page', { headers })
  assert.equal(first.headers.location, `${scene.baseUrl}/page`)
  assert.equal((await browser.get('/page', { headers })).headers.location, '/login')
  assert.equal((await browser.get('/login', { headers })).status, 200)
  scene.passSeconds(10)
  assert.equal((await browser.get('/page', { headers })).headers.location, `${scene.baseUrl}/page`)
  const trusting = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const passed = { ...PAGE, ...otherName(trusting) }
  assert.equal((await trusting.visitor().get('/page', { headers: passed })).headers.location, '/login')
})
