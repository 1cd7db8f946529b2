// Several tabs at once, in a real browser: each ends on its own page.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { openGateway } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

test('five tabs opened at once each end on their own page after a sign-in in one of them', async t => {
  const upstream = await startUpstream(t, (_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<title>application</title>')
  })
  const menshen = await openGateway(t, { UPSTREAM: upstream.url }, { devProvider: true, hasRunningClock: true })
  const { page, problems } = await openPage(t, browser)
  const context = page.context()
  const paths = [1, 2, 3, 4, 5].map(n => `/page-${n}?a=${n}&error=x#part-${n}`)
  const tabs = [page]
  for (let n = 1; n < paths.length; n++) tabs.push(await context.newPage())
  await Promise.all(tabs.map((tab, n) => tab.goto(menshen.url + paths[n])))
  for (const [n, tab] of tabs.entries()) assert.equal(tab.url(), `${menshen.url}/login#part-${n + 1}`)
  // A reload and the switch of languages keep the page that the tab wants.
  await tabs[1]?.reload()
  await tabs[2]?.getByRole('button', { name: 'English' }).click()
  await tabs[2]?.getByRole('button', { name: /Continue with/ }).waitFor()
  await page.getByRole('button', { name: '统一身份认证登录' }).click()
  await page.getByRole('button', { name: /zhangsan/ }).click()
  await Promise.all(tabs.map((tab, n) => tab.waitForURL(menshen.url + paths[n], { timeout: 20_000 })))
  assert.deepEqual(problems, [])
})
