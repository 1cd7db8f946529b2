// Several host names with one sign-in, in a real browser.

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

test('a user who signed in at one host opens another without a click, and a sign-out there ends both sessions', async t => {
  const application = (name: string) =>
    startUpstream(t, (_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<title>${name}</title>`)
    })
  const [wiki, grafana] = await Promise.all([application('the wiki'), application('grafana')])
  const port = await freePort()
  const hosts = {
    [`wiki.localhost:${port}`]: { upstream: wiki.url },
    [`grafana.localhost:${port}`]: { upstream: grafana.url },
  }
  const options = { config: { hosts }, devProvider: true, hasRunningClock: true }
  const menshen = await openGateway(t, { PORT: String(port) }, options)
  const [wikiAt, grafanaAt] = [`http://wiki.localhost:${port}`, `http://grafana.localhost:${port}`]
  const { page, problems } = await openPage(t, browser)

  await page.goto(`${wikiAt}/pages/1?a=b#part`)
  assert.ok(page.url().startsWith(`${menshen.url}/login`), page.url())
  await page.getByRole('button', { name: '统一身份认证登录' }).click()
  await page.getByRole('button', { name: /zhangsan/ }).click()
  await page.waitForURL(`${wikiAt}/pages/1?a=b#part`)
  assert.equal(await page.title(), 'the wiki')

  const tab = await page.context().newPage()
  await tab.goto(`${grafanaAt}/d/1#panel`)
  assert.equal(tab.url(), `${grafanaAt}/d/1#panel`)
  assert.equal(await tab.title(), 'grafana')

  const cookies = await page.context().cookies()
  const sessions = cookies.filter(({ name }) => name === 'menshen_session')
  assert.deepEqual(
    sessions.map(({ domain }) => domain).sort(),
    ['grafana.localhost', 'localhost', 'wiki.localhost'],
    'each host has its own, and none has a Domain',
  )
  assert.equal(new Set(sessions.map(({ value }) => value)).size, 3)

  await tab.goto(`${grafanaAt}/logout`)
  await tab.waitForURL(`${menshen.url}/login*`)
  await page.reload()
  assert.ok(page.url().startsWith(`${menshen.url}/login`), 'the first host is a visitor’s again')
  assert.deepEqual(problems, [])
})
