// One minute before a session ends because its user does nothing, session.js asks whether they are still there.

import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openPage, startBrowser } from '../kit/browser.ts'
import { setUp } from '../kit/set-up.ts'

const POLICY = "default-src 'self'; img-src data:; style-src 'self'; require-trusted-types-for 'script'"
const PAGE = `<!doctype html><html lang="en"><title>form</title><link rel="icon" href="data:,">
<script type="module" src="/_menshen/assets/session.js"></script>
<h1>Travel expenses</h1><form><label>Note <textarea>half an hour of work</textarea></label></form>`
/** Of 20 minutes and their quarter, so many seconds are left. */
const LEFT = 45
const QUIET = 1500 - LEFT

let browser: Browser
before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

for (const [locale, title, stay, reason] of [
  ['en', 'Are you still there?', 'Stay signed in', 'You were signed out because you were inactive.'],
  ['zh-CN', '您还在吗？', '继续使用', '由于长时间没有操作，您已自动退出登录。'],
] as const)
  test(`in ${locale} the idle warning appears in every tab, one click closes it in all, and the login page explains the sign-out`, async t => {
    const scene = await setUp(t, {
      env: { SESSION_IDLE_MINUTES: '20', PAGE_LANGUAGE: 'auto' },
      provider: { expiresIn: 360_000 },
      now: Date.now(),
      answer: sendPage,
    })
    const { page, problems } = await openPage(t, browser, { locale })
    await page.goto(scene.url)
    await page.locator('#sign-in button').click()
    await page.waitForURL(`${scene.url}/`)
    const other = await page.context().newPage()
    await other.goto(scene.url)
    const warning = (tab: Page) => tab.getByRole('alertdialog', { name: title })

    scene.passSeconds(QUIET)
    for (const tab of [page, other]) {
      await look(tab)
      await warning(tab).waitFor()
    }
    assert.match((await warning(page).getByRole('timer').textContent()) ?? '', /^0:(4[0-5]|3\d)$/)
    const isFocused = (label: string) =>
      page.evaluate(label => {
        const host = document.activeElement
        return host?.shadowRoot?.activeElement?.textContent === label
      }, label)
    assert.equal(await isFocused(stay), true)
    await other.getByRole('button', { name: stay }).click()
    for (const tab of [page, other]) await warning(tab).waitFor({ state: 'detached' })
    assert.equal(await page.getByLabel('Note').inputValue(), 'half an hour of work')

    scene.passSeconds(QUIET)
    await look(page)
    await warning(page).waitFor()
    await page.keyboard.press('Escape')
    await warning(page).waitFor({ state: 'detached' })
    assert.deepEqual(problems, [])

    scene.passSeconds(QUIET)
    await look(page)
    await warning(page).waitFor()
    scene.passSeconds(LEFT)
    await look(page)
    await page.getByRole('dialog').getByRole('link').waitFor()
    assert.equal(await warning(page).count(), 0)
    await other.goto(`${scene.url}/report`)
    await other.getByText(reason).waitFor()
  })

test('the main button of the idle warning has the colour of ACCENT_COLOR', async t => {
  const scene = await setUp(t, {
    env: { SESSION_IDLE_MINUTES: '20', ACCENT_COLOR: '#0a7d4f' },
    provider: { expiresIn: 360_000 },
    now: Date.now(),
    answer: sendPage,
  })
  const { page, problems } = await openPage(t, browser, { colorScheme: 'light' })
  await page.goto(scene.url)
  await page.locator('#sign-in button').click()
  await page.waitForURL(`${scene.url}/`)
  const color = (label: string) =>
    page.getByRole('button', { name: label }).evaluate(button => getComputedStyle(button).backgroundColor)
  scene.passSeconds(QUIET)
  await look(page)
  await page.getByRole('alertdialog').waitFor()
  assert.equal(await color('继续使用'), 'rgb(10, 125, 79)')
  assert.equal(await color('退出登录'), 'rgba(0, 0, 0, 0)')
  assert.deepEqual(problems, [])
})

function sendPage(_request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('content-type', 'text/html; charset=utf-8')
  response.setHeader('content-security-policy', POLICY)
  response.end(PAGE)
}

/** As when its user comes back to the tab. */
function look(page: Page): Promise<unknown> {
  return page.evaluate(() => window.dispatchEvent(new Event('focus')))
}
