// The console for people who do not see it well: in both languages, by day and by night, on a phone and on a desk.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { createAxe, type FindFaults } from '../kit/axe.ts'
import { changeDevice, startBrowser } from '../kit/browser.ts'
import { type ConsoleScene, DESK, openAsDeveloper, openConsole, PHONE } from '../kit/console-scene.ts'
import { wholeFile } from '../kit/set-up.ts'

const SIZES = { desk: DESK, phone: PHONE }

const whole = wholeFile()
let browser: Browser
let findFaults: FindFaults
let shared: ConsoleScene

before(async () => {
  browser = await startBrowser()
  findFaults = await createAxe()
  shared = await openConsole(whole)
})

after(() => browser?.close())

for (const locale of ['zh-CN', 'en'])
  test(`axe-core finds no fault in the console in ${locale}, on a desktop and a phone, in light and dark mode`, async t => {
    const { page, problems } = await openAsDeveloper(t, browser, shared, { ...DESK, locale, reducedMotion: 'reduce' })
    const found: string[] = []
    for (const [name, path] of Object.entries(shared.paths)) {
      await page.goto(shared.scene.url + path)
      assert.equal(await page.locator('html').getAttribute('lang'), locale)
      await openEverything(page, name)
      for (const [size, device] of Object.entries(SIZES)) {
        await changeDevice(page, device)
        for (const colorScheme of ['light', 'dark'] as const)
          for (const fault of await findFaults(page, colorScheme))
            found.push(`${name}, ${size}, ${colorScheme}: ${fault}`)
      }
      await changeDevice(page, DESK)
    }
    assert.deepEqual(found, [])
    assert.deepEqual(problems, [])
  })

/** What opens on demand is part of the page. */
async function openEverything(page: Page, name: string): Promise<void> {
  if (name === 'overview') await page.locator('#plot-times canvas').waitFor()
  await page.evaluate(() => {
    for (const details of document.querySelectorAll<HTMLDetailsElement>('main details:not(.menu)')) details.open = true
  })
  if (name === 'audit') await page.locator('button[popovertarget]').first().click()
}
