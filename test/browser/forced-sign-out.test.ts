// S61: what a page can make a real browser send signs nobody out; only what the user does.

import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { after, before, type TestContext, test } from 'node:test'
import type { Browser, Page, Request, Response } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { freePort } from '../kit/free-port.ts'
import { setUp } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})

after(() => browser?.close())

/** By path: what the page does with /logout of this origin. */
const TRICKS: Record<string, (origin: string) => string> = {
  '/image': origin => `<img src="${origin}/logout">`,
  '/frame': origin => `<iframe src="${origin}/logout"></iframe>`,
  '/frame-without-referrer': origin => `<iframe referrerpolicy="no-referrer" src="${origin}/logout"></iframe>`,
  '/script': origin => `<script src="${origin}/logout"></script>`,
  '/style': origin => `<link rel="stylesheet" href="${origin}/logout">`,
  '/object': origin => `<object data="${origin}/logout"></object>`,
  '/fetch': origin => `<script>fetch("${origin}/logout", { mode: "no-cors", credentials: "include" })</script>`,
  '/prefetch': origin => `<link rel="prefetch" href="${origin}/logout">`,
}

/** What only another site may try: our own pages are the application's, and it could as well post the form. */
const FOREIGN_TRICKS: Record<string, (origin: string) => string> = {
  '/link': origin => `<a id="go" href="${origin}/logout">x</a>${CLICK}`,
  '/link-without-referrer': origin => `<a id="go" rel="noreferrer" href="${origin}/logout">x</a>${CLICK}`,
  '/refresh': origin =>
    `<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=${origin}/logout">`,
  '/get-form': origin => form('get', origin),
  '/post-form': origin => form('post', origin),
  '/post-form-without-origin': origin => `<meta name="referrer" content="no-referrer">${form('post', origin)}`,
}
const CLICK = '<script>document.getElementById("go").click()</script>'
const form = (method: string, origin: string) =>
  `<form method="${method}" action="${origin}/logout"></form><script>document.forms[0].submit()</script>`

function tricks(all: typeof TRICKS, origin: string): RequestListener {
  return ({ url = '' }, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>x</title><body>${all[url]?.(origin) ?? `<a href="/logout">退出</a>`}`)
  }
}

/** With an address that browsers take for secure, where they say what a request is for, and with one where they do not. */
for (const host of ['localhost', 'app.test']) {
  async function openApplication(t: TestContext) {
    const port = await freePort()
    const origin = `http://${host}:${port}`
    const env = { PORT: String(port), BASE_URL: origin }
    const scene = await setUp(t, { env, answer: tricks(TRICKS, '') })
    const user = await scene.user()
    const { page } = await openPage(t, browser)
    const [name = '', value = ''] = [...user.cookies][0] ?? []
    await page.context().addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Lax' }])
    const lives = async () => (await user.get('/_menshen/me')).status === 200
    return { origin, page, lives }
  }

  test(`no image, frame, script or fetch in an application at ${host} signs the user out`, async t => {
    const { origin, page, lives } = await openApplication(t)
    for (const path of Object.keys(TRICKS)) {
      await openAndWait(page, origin + path)
      assert.ok(await lives(), path)
    }
  })

  test(`another site cannot sign out a user of ${host}`, async t => {
    const { origin, page, lives } = await openApplication(t)
    const evil = await startUpstream(t, tricks({ ...TRICKS, ...FOREIGN_TRICKS }, origin))
    const site = evil.url.replace('127.0.0.1', 'evil.test')
    for (const path of Object.keys({ ...TRICKS, ...FOREIGN_TRICKS })) {
      await openAndWait(page, site + path)
      if (path in FOREIGN_TRICKS) await page.waitForURL(`${origin}/**`)
      assert.ok(await lives(), path)
    }
  })

  test(`a link at ${host} signs the user out, after a question where one is needed, and the login page confirms it once`, async t => {
    const { origin, page, lives } = await openApplication(t)
    await page.goto(`${origin}/page`)
    await page.getByRole('link', { name: '退出' }).click()
    if (host === 'app.test') {
      await page.getByRole('heading', { name: '要退出登录吗？' }).waitFor()
      assert.ok(await lives())
      await page.getByRole('button', { name: '退出登录' }).click()
    }
    await page.waitForURL(`${origin}/login`)
    await page.getByRole('status').getByText('您已安全退出登录。').waitFor()
    assert.equal(await lives(), false)
    await page.reload()
    assert.equal(await page.getByRole('status').count(), 0)
  })
}

/** Until /logout has been asked and has answered. */
async function openAndWait(page: Page, address: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = (seen: Request | Response) => new URL(seen.url()).pathname === '/logout' && resolve()
  page.on('response', look).on('requestfailed', look)
  await page.goto(address)
  await promise
  page.off('response', look).off('requestfailed', look)
}
