// Personal keys in a real browser: the form with a fresh sign-in and with an old one, and a script of the application that tries.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import type { Config } from '../../src/index.ts'
import { openPage, startBrowser } from '../kit/browser.ts'
import { setUpOidc } from '../kit/set-up.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

const config: Config = { rules: [{ path: '/', roles: ['*'], keys: 'personal' }] }

test('creating a personal key needs a recent sign-in, which keeps the form, and scripts of the application cannot create one', async t => {
  const { provider, ...gateway } = await setUpOidc(t, {
    config,
    now: Date.now(),
    answer(_request, response) {
      response.setHeader('content-type', 'text/html')
      response.end('<title>application</title><h1>application</h1>')
    },
  })
  const authenticate = () => {
    provider.idClaims = { auth_time: Math.floor(gateway.now() / 1000) }
  }
  authenticate()
  const { page, problems } = await openPage(t, browser)
  await page.goto(`${gateway.url}/_menshen/account`)
  await page.getByRole('button', { name: /登录/ }).click()
  await page.waitForURL(`${gateway.url}/_menshen/account`)

  const create = () => page.getByRole('button', { name: '创建密钥' }).click()
  await page.getByLabel('名称').fill('laptop')
  await create()
  await page.getByRole('heading', { name: '新密钥' }).waitFor()
  assert.match(await page.locator('main').innerText(), /mk_[\w-]{43}/)

  await page.goto(`${gateway.url}/`)
  const byScript = await page.evaluate(async () => {
    const body = new URLSearchParams({ name: 'script', days: '30' })
    const paths = ['account/keys', 'account/keys/revoke', 'account/end', 'sign-out-everywhere']
    const answers = await Promise.all(paths.map(path => fetch(`/_menshen/${path}`, { method: 'POST', body })))
    return answers.map(({ status }) => status)
  })
  assert.deepEqual(byScript, [403, 403, 403, 403])
  problems.length = 0

  gateway.passSeconds(700)
  await page.goto(`${gateway.url}/_menshen/account`)
  await page.getByLabel('名称').fill('second & last')
  await page.getByLabel('有效期').fill('7')
  await create()
  await page.getByRole('heading', { name: '请重新登录' }).waitFor()
  authenticate()
  await page.getByRole('link', { name: '重新登录' }).click()
  await page.waitForURL(url => url.pathname === '/_menshen/account')
  assert.equal(await page.getByLabel('名称').inputValue(), 'second & last')
  assert.equal(await page.getByLabel('有效期').inputValue(), '7')
  assert.equal(await page.getByText('second & last').count(), 0, 'no key was created by coming back')
  await create()
  await page.getByRole('heading', { name: '新密钥' }).waitFor()
  await page.getByRole('link', { name: '返回我的账号' }).click()
  await page.locator('strong', { hasText: 'second & last' }).waitFor()
  assert.deepEqual(problems, [])
})
