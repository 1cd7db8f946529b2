// The console in a real browser: in both languages, on a phone and on a desk, enlarged, in the colours of the user, and without
// scripts.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { changeDevice, startBrowser } from '../kit/browser.ts'
import { CONSOLE, type ConsoleScene, DESK, openAsDeveloper, openConsole, PHONE } from '../kit/console-scene.ts'
import { wholeFile } from '../kit/set-up.ts'

const whole = wholeFile()
let browser: Browser
/** For tests that end no session. */
let shared: ConsoleScene

before(async () => {
  browser = await startBrowser()
  shared = await openConsole(whole)
})

after(() => browser?.close())

test('at 400 % zoom with forced colours, no page of the console scrolls sideways, cuts off a button or animates', async t => {
  for (const locale of ['zh-CN', 'en']) {
    const viewport = { width: 320, height: 256 }
    const { page } = await openAsDeveloper(t, browser, shared, {
      viewport,
      locale,
      forcedColors: 'active',
      reducedMotion: 'reduce',
    })
    for (const [name, path] of Object.entries(shared.paths)) {
      await page.goto(shared.scene.url + path)
      if (name === 'overview') await page.locator('#plot-times canvas').waitFor()
      const { width, cut } = await page.evaluate(measure)
      assert.ok(width <= 320, `${name} in ${locale} is ${width} px wide`)
      assert.deepEqual(cut, [], `${name} in ${locale}`)
      assert.equal(await page.evaluate(() => document.getAnimations().length), 0)
    }
  }
})

test('no table of the console breaks a word in the middle, on a desktop or on a phone', async t => {
  for (const locale of ['zh-CN', 'en']) {
    const { page } = await openAsDeveloper(t, browser, shared, { ...DESK, locale })
    for (const name of ['sessions', 'audit', 'rules', 'health']) {
      await page.goto(shared.scene.url + shared.paths[name])
      for (const device of [DESK, { viewport: { width: 1024, height: 800 } }, PHONE]) {
        await changeDevice(page, device)
        assert.deepEqual(await page.evaluate(brokenWords), [], `${name}, ${locale}, ${device.viewport.width} px`)
      }
    }
  }
})

test('plot legends are beside their plots and in the language of the page', async t => {
  for (const [locale, words] of [
    ['zh-CN', ['身份认证平台（中位数）', '存储（99 分位）', '失败：换取令牌失败']],
    ['en', ['Provider, median', 'Store, 99th percentile', 'Failed: the token exchange failed']],
  ] as const) {
    const { page } = await openAsDeveloper(t, browser, shared, { ...DESK, locale })
    await page.goto(shared.scene.url + CONSOLE)
    await page.locator('#plot-times canvas').waitFor()
    const text = (await page.locator('.u-legend').allInnerTexts()).join('\n')
    for (const word of words) assert.ok(text.includes(word), word)
    assert.doesNotMatch(text, /p50|p99|token_error/)
    for (const name of ['signIns', 'sessions', 'requests', 'times']) {
      const plot = await page.locator(`#plot-${name} .u-wrap`).boundingBox()
      const legend = await page.locator(`#plot-${name} .u-legend`).boundingBox()
      assert.ok(plot && legend && legend.x >= plot.x + plot.width - 1, name)
    }
  }
})

test('the banner and the figures with their trends are visible without scrolling', async t => {
  for (const options of [DESK, PHONE]) {
    const { page } = await openAsDeveloper(t, browser, shared, { ...options, locale: 'en' })
    await page.goto(shared.scene.url + CONSOLE)
    for (const selector of ['.banner.down', '.figures .spark', '.figures .trend']) {
      const box = await page.locator(selector).last().boundingBox()
      assert.ok(box && box.y + box.height < options.viewport.height, `${selector} ends at ${box && box.y + box.height}`)
    }
  }
})

test('dismissed advice stays hidden in this browser until its content changes', async t => {
  const { page } = await openAsDeveloper(t, browser, shared, { ...DESK, locale: 'en' })
  const advice = page.locator('#advice details')
  await page.goto(shared.scene.url + CONSOLE)
  assert.equal(await advice.getAttribute('open'), null)
  await advice.locator('summary').click()
  const lines = advice.locator('li:visible')
  const count = await lines.count()
  assert.ok(count > 1)
  const first = await lines.first().locator('p').innerText()
  await lines.first().getByRole('button', { name: 'Dismiss' }).click()
  assert.equal(await lines.count(), count - 1)
  assert.equal(await advice.locator('summary .tag').innerText(), String(count - 1))
  await page.reload()
  await advice.locator('summary').click()
  assert.equal(await lines.count(), count - 1)
  assert.ok(!(await advice.innerText()).includes(first))
  // Advice with another content has another fingerprint.
  await page.evaluate(() => localStorage.setItem('menshen-dismissed-advice', JSON.stringify(['of former advice'])))
  await page.reload()
  await advice.locator('summary').click()
  assert.equal(await lines.count(), count)
  while ((await lines.count()) > 0) await lines.first().getByRole('button', { name: 'Dismiss' }).click()
  assert.ok(await advice.isHidden())
  await page.getByRole('button', { name: 'Show again' }).click()
  assert.ok(await advice.isVisible())
})

test('typing in a filter hides rows that do not match and sections without a matching row', async t => {
  const { page, problems } = await openAsDeveloper(t, browser, shared, { ...DESK, locale: 'en' })
  await page.goto(`${shared.scene.url}${CONSOLE}/settings`)
  const rows = page.locator('tbody tr:visible')
  const all = await rows.count()
  await page.getByLabel('Filter', { exact: true }).last().fill('session_max')
  assert.deepEqual(await page.locator('tbody tr:visible th > code').allInnerTexts(), ['SESSION_MAX_HOURS'])
  assert.equal(await page.locator('section[data-filtered]:visible').count(), 1)
  await page.getByLabel('Filter', { exact: true }).last().fill('no such setting')
  await page.getByText('Nothing matches.').waitFor()
  await page.getByLabel('Filter', { exact: true }).last().fill('')
  await page.getByLabel(/Changed only/).check()
  const changed = await rows.count()
  assert.ok(changed > 0 && changed < all)
  assert.equal(await page.locator('tbody tr:visible .changed').count(), changed)
  await page.goto(`${shared.scene.url}${CONSOLE}/rules`)
  await page.getByLabel('Filter', { exact: true }).last().fill('FINANCE')
  assert.deepEqual(await page.locator('[data-filtered] tbody tr:visible th > code').allInnerTexts(), ['/finance'])
  assert.deepEqual(problems, [])
})

for (const javaScriptEnabled of [true, false])
  test(`several sessions are selected and ended at once, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async t => {
    const opened = await openConsole(t)
    const { page, problems } = await openAsDeveloper(t, browser, opened, { ...DESK, locale: 'en', javaScriptEnabled })
    await page.goto(`${opened.scene.url}${CONSOLE}/sessions`)
    await page.getByLabel('Select all sessions of lisi').check()
    await page.getByLabel(/^Select session: maria/).check()
    if (javaScriptEnabled) {
      // The two sessions of the user are included.
      assert.equal(await page.locator('tbody input[name=session]:checked').count(), 3)
      await page.getByText('2 selected').waitFor()
    }
    await page.getByRole('button', { name: 'End selected sessions' }).click()
    await page.getByRole('heading', { name: 'End the 2 selected items?' }).waitFor()
    const named = await page.locator('.choices').innerText()
    assert.match(named, /李四 lisi\s+All sessions and personal keys/)
    assert.match(named, /María García maria\.garcia@subsidiary\.example\.com\s+Chrome · Windows · 10\.0\.0\.8/)
    await page.getByRole('button', { name: 'End selected sessions' }).click()
    await page.getByText('Ended 3 sessions of 2 users.').waitFor()
    assert.deepEqual(await page.locator('.user code').allInnerTexts(), ['admin'])
    assert.deepEqual(problems, [])
  })

test('without scripts, the event drawer opens and closes, and filters and time ranges work', async t => {
  const { page } = await openAsDeveloper(t, browser, shared, { ...DESK, locale: 'en', javaScriptEnabled: false })
  await page.goto(`${shared.scene.url}${CONSOLE}/audit`)
  await page.getByRole('link', { name: 'Last 15 minutes' }).click()
  await page.waitForURL('**/audit?range=15m')
  const drawer = page.getByRole('dialog', { name: /Sign-in failed/ })
  await page
    .getByRole('row', { name: /Sign-in failed/ })
    .getByRole('button', { name: 'Details' })
    .click()
  assert.match(await drawer.innerText(), /Reason\s+the token exchange failed/)
  await drawer.getByRole('button', { name: 'Close' }).click()
  assert.ok(await drawer.isHidden())
  await page.goto(`${shared.scene.url}${CONSOLE}/settings`)
  await page.getByLabel(/Changed only/).check()
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.waitForURL('**/settings?filter=&changed=yes')
  assert.ok(await page.getByText('CLIENT_ID', { exact: true }).first().isVisible())
  assert.ok(await page.getByText('LOGIN_PATH', { exact: true }).first().isHidden())
})

// What follows runs in the page, each function by itself.

function measure() {
  const width = document.documentElement.scrollWidth
  const shown = [...document.querySelectorAll('main button, main a, main input:not([type=hidden])')].filter(element =>
    element.checkVisibility(),
  )
  const cut = shown.filter(element => element.getBoundingClientRect().right > innerWidth)
  return { width, cut: cut.map(element => element.outerHTML) }
}

/** Words of at most 24 characters that stand on two lines. Chinese sentences break anywhere, Chinese names do not. */
function brokenWords(): string[] {
  const broken: string[] = []
  for (const cell of document.querySelectorAll('main th, main td')) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.parentElement?.checkVisibility() || node.parentElement.closest('.unseen')) continue
      const words = new Intl.Segmenter('zh-CN', { granularity: 'word' }).segment(node.textContent ?? '')
      for (const { segment, index, isWordLike } of words) {
        // Parts of an address are not words.
        if (!isWordLike || !/\p{L}{3}|\p{Script=Han}/u.test(segment) || segment.length > 24) continue
        // A code without an end has to break somewhere.
        if (node.parentElement.matches('code') && (node.textContent ?? '').length > 24) continue
        if (/\p{Script=Han}/u.test(segment) && cell.matches('.long')) continue
        const range = document.createRange()
        range.setStart(node, index)
        range.setEnd(node, index + segment.length)
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
        if (lines.size > 1) broken.push(`${segment} in ${cell.textContent?.trim().slice(0, 60)}`)
      }
    }
  }
  return broken
}
