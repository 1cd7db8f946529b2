// Open streams of several host names: they end with the session, wherever that ends, and follow the rules of their own host.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { freePort } from '../kit/free-port.ts'
import { setUpInstances } from '../kit/instance.ts'
import { type Browser, createBrowser, GRAFANA, PORTAL, setUpHosts, WIKI } from '../kit/several-hosts.ts'
import { startUpstream } from '../kit/upstream.ts'

/** A socket of a page at this host, as far as the gateway at `url` lets it. */
async function openSocket(t: TestContext, url: string, browser: Browser, origin: string): Promise<WebSocket> {
  const cookie = [...browser.cookies(origin)].map(pair => pair.join('=')).join('; ')
  const headers = { host: new URL(origin).host, cookie, origin }
  const socket = new WebSocket(url.replace('http', 'ws'), { headers })
  t.after(() => socket.terminate())
  await once(socket, 'open')
  return socket
}

test('a sign-out at one host closes the WebSockets at every host', async t => {
  const scene = await setUpHosts(t)
  for (const { server } of [scene.wiki, scene.grafana]) new WebSocketServer({ server })
  const browser = await scene.signedIn()
  for (const host of [WIKI, GRAFANA]) await browser.open(`${host}/`)
  const sockets = [await openSocket(t, scene.url, browser, WIKI), await openSocket(t, scene.url, browser, GRAFANA)]
  const closed = sockets.map(socket => once(socket, 'close'))
  await browser.post(`${GRAFANA}/logout`)
  await Promise.all(closed)
})

test('the console ends a session at every host, and lists it once, with its hosts', async t => {
  const scene = await setUpHosts(t, { config: { roles: [{ role: 'developer', username: ['admin'] }] } })
  new WebSocketServer({ server: scene.wiki.server })
  const browser = await scene.signedIn('lisi')
  for (const host of [WIKI, GRAFANA]) await browser.open(`${host}/`)
  const socket = await openSocket(t, scene.url, browser, WIKI)
  const closed = once(socket, 'close')
  const admin = await scene.signedIn('admin')
  const list = (await admin.get(`${PORTAL}/_menshen/console/sessions?username=lisi`)).text
  assert.equal(list.match(/name="session"/g)?.length, 1)
  assert.match(list, /<code>grafana\.test<\/code><br><code>wiki\.test<\/code>/)
  const [, key = ''] = /name="session" value="([\w-]{43})"/.exec(list) ?? []
  assert.match((await admin.get(`${PORTAL}/_menshen/console/session?key=${key}`)).text, /wiki\.test/)
  const rules = (await admin.get(`${PORTAL}/_menshen/console/rules?host=wiki.test&path=/x`)).text
  assert.match(rules, /<option value="wiki\.test" selected\s*>wiki\.test<\/option>/)
  await admin.post(`${PORTAL}/_menshen/console/end`, { session: key })
  await closed
  assert.equal((await browser.get(`${WIKI}/_menshen/me`)).status, 401)
})

test('two processes share handoff codes and tickets, and a sign-out at one ends the session at both', async t => {
  const wiki = await startUpstream(t)
  const grafana = await startUpstream(t)
  new WebSocketServer({ server: wiki.server })
  const scene = await setUpInstances(t, { BASE_URL: PORTAL })
  const hosts = { 'wiki.test': { upstream: wiki.url }, 'grafana.test': { upstream: grafana.url } }
  writeFileSync(join(scene.folder, 'menshen.config.js'), `export default ${JSON.stringify({ hosts })}`)
  const [one, other] = await Promise.all([
    scene.start({ PORT: String(await freePort()) }),
    scene.start({ PORT: String(await freePort()) }),
  ])
  const browser = createBrowser(one.url)
  await browser.signIn(scene.provider)
  const enter = await browser.follow(await browser.get(`${WIKI}/`))
  const { location = '' } = enter.headers
  const nonce = `menshen_entry=${browser.cookies(WIKI).get('menshen_entry')}`
  const race = await Promise.all(
    [one, other, one, other].map(({ url }) => createBrowser(url).get(location, { headers: { cookie: nonce } })),
  )
  const entered = race.filter(({ setCookies }) => setCookies.some(set => set.startsWith('menshen_session=')))
  assert.equal(entered.length, 1, 'one of two processes takes the code')
  const cookie = entered[0]?.setCookies[0]?.split(';')[0] ?? ''
  for (const { url } of [one, other])
    assert.equal((await createBrowser(url).get(`${WIKI}/_menshen/me`, { headers: { cookie } })).status, 200)
  const socket = new WebSocket(one.url.replace('http', 'ws'), { headers: { host: 'wiki.test', cookie, origin: WIKI } })
  t.after(() => socket.terminate())
  await once(socket, 'open')
  const closed = once(socket, 'close')
  const answer = await createBrowser(other.url).post(`${WIKI}/logout`, {}, { headers: { cookie } })
  assert.equal(answer.headers.location, `${PORTAL}/login`)
  await closed
  for (const { url } of [one, other])
    assert.equal((await createBrowser(url).get(`${WIKI}/_menshen/me`, { headers: { cookie } })).status, 401)
  assert.equal((await browser.get(`${PORTAL}/_menshen/me`)).status, 401)

  // A restart, and a reload that takes a host away.
  await browser.signIn(scene.provider)
  const page = await browser.open(`${GRAFANA}/`)
  assert.equal(page.status, 200)
  writeFileSync(
    join(scene.folder, 'menshen.config.js'),
    `export default ${JSON.stringify({ hosts: { 'wiki.test': { upstream: wiki.url } } })}`,
  )
  const began = one.lines.length
  one.kill('SIGHUP').catch(() => {})
  await one.said(({ event, changed }) => event === 'config_reloaded' && String(changed).includes('hosts'))
  assert.ok(one.lines.length > began)
  assert.equal((await browser.get(`${GRAFANA}/`)).status, 421)
  assert.equal((await browser.open(`${WIKI}/`)).status, 200)
})
