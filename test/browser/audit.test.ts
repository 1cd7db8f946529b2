// The audit trail in a real browser: what happens appears by itself, and everything about a request is one key away.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { createClient } from '../kit/client.ts'
import { type Gateway, openGateway, wholeFile } from '../kit/set-up.ts'

const whole = wholeFile()
let browser: Browser
let menshen: Gateway

before(async () => {
  browser = await startBrowser()
  menshen = await openGateway(whole, {}, { devProvider: true, hasRunningClock: true })
})

after(() => browser?.close())

test('a new audit event appears at the top and is announced, and the keyboard opens its details and its request', async t => {
  const { page, problems } = await openPage(t, browser)
  await page.goto(menshen.url)
  await page.getByRole('button', { name: '统一身份认证登录' }).click()
  await page.getByRole('button', { name: /admin/ }).click()
  await page.waitForURL(`${menshen.url}/`)
  await page.goto(`${menshen.url}/_menshen/console`)
  await page.getByRole('link', { name: '审计' }).click()
  await page.getByRole('row', { name: /登录成功/ }).waitFor()

  const { headers } = await createClient(menshen.url).get('/callback?error=access_denied', {
    headers: { 'user-agent': '<img src=x onerror=alert(1)>' },
  })
  const requestId = String(headers['x-request-id'])
  const added = page.getByRole('row', { name: /登录失败/ })
  await added.waitFor()
  assert.match((await page.locator('tbody tr').first().textContent()) ?? '', /登录失败/)
  assert.match(await page.getByRole('status').innerText(), /新增 1 条记录/)

  await added.getByRole('button', { name: '详情' }).focus()
  await page.keyboard.press('Enter')
  const drawer = page.getByRole('dialog', { name: /登录失败/ })
  await drawer.getByText('用户取消或没有权限').waitFor()
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'hidden' })
  await added.getByRole('button', { name: '详情' }).click()
  await page.mouse.click(20, 400)
  await drawer.waitFor({ state: 'hidden' })
  await added.getByRole('button', { name: '详情' }).focus()
  await page.keyboard.press('Enter')
  await drawer.getByRole('link', { name: requestId }).focus()
  await page.keyboard.press('Enter')
  await page.waitForURL(`**/audit?requestId=${requestId}`)
  assert.equal(await page.locator('tbody tr').count(), 1)
  assert.equal(await page.getByLabel('请求编号').inputValue(), requestId)

  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('button', { name: '详情' }).click()
  await page.getByRole('button', { name: `复制 ${requestId}` }).click()
  await page.locator('#copied').getByText('已复制').waitFor({ state: 'attached' })
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), requestId)
  await page.getByRole('button', { name: '关闭' }).click()

  await page.getByLabel('请求编号').fill('')
  await page.getByLabel('用户', { exact: true }).fill('admin')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/audit?*user=admin*')
  assert.match((await page.locator('tbody').textContent()) ?? '', /登录成功/)
  assert.equal(await page.locator('tbody tr').count(), 1)
  assert.deepEqual(problems, [])
})

test('times in a link from another time zone are shown in local time and keep their meaning when submitted again', async t => {
  const { page } = await openPage(t, browser, { timezoneId: 'Asia/Shanghai' })
  await page.goto(`${menshen.url}/_menshen/console/audit?since=2026-03-01T08:00&zone=0`)
  await page.getByRole('button', { name: '统一身份认证登录' }).click()
  await page.getByRole('button', { name: /admin/ }).click()
  await page.waitForURL('**/audit?*')
  assert.equal(await page.getByLabel('从').inputValue(), '2026-03-01 16:00')
  await page.getByRole('button', { name: '查找' }).click()
  await page.waitForURL(/zone=-480/)
  assert.match(page.url(), /since=2026-03-01\+16%3A00/)
})
