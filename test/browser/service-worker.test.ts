// An application whose service worker passes the requests for its pages on.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { openGateway } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

const WORKER = `
addEventListener('install', () => skipWaiting())
addEventListener('activate', event => event.waitUntil(clients.claim()))
addEventListener('fetch', event => {
  const { pathname } = new URL(event.request.url)
  if (/^.(_menshen|login|callback|logout)/.test(pathname)) return
  event.respondWith(fetch(event.request))
})`

test('a user whose session has ended signs in again at an application whose service worker passes on its pages', async t => {
  const application = await startUpstream(t, ({ url }, response) => {
    const isWorker = url === '/worker.js'
    response.setHeader('content-type', isWorker ? 'text/javascript' : 'text/html')
    response.end(isWorker ? WORKER : '<title>the application</title>')
  })
  const port = await freePort()
  const hosts = { [`wiki.localhost:${port}`]: { upstream: application.url } }
  const env = { PORT: String(port), UPSTREAM: application.url }
  const { url } = await openGateway(t, env, { config: { hosts }, devProvider: true, hasRunningClock: true })
  for (const origin of [url, `http://wiki.localhost:${port}`]) {
    const { page } = await openPage(t, browser)
    const signInAndReturn = async (address: string) => {
      await page.goto(address)
      await page.getByRole('button', { name: '统一身份认证登录' }).click()
      await page.getByRole('button', { name: /zhangsan/ }).click()
      await page.waitForURL(address)
      assert.equal(await page.title(), 'the application')
    }
    await signInAndReturn(`${origin}/first`)
    await page.evaluate(async () => {
      const controlled = new Promise(resolve => navigator.serviceWorker.addEventListener('controllerchange', resolve))
      await navigator.serviceWorker.register('/worker.js')
      await controlled
    })
    await page.context().clearCookies({ name: 'menshen_session' })
    await signInAndReturn(`${origin}/second?a=b`)
  }
})
