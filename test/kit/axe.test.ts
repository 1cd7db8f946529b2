import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { createAxe } from './axe.ts'
import { openPage, startBrowser } from './browser.ts'

const STYLE = `<style>
  body { background: #fff; color: #000 }
  .faint { color: #ccc }
  @media (prefers-color-scheme: dark) { body { background: #000; color: #fff } .dim { color: #333 } .faint { color: #ccc } }
</style>`
const page = (main: string) =>
  `<!doctype html><html lang="en"><title>Page</title>${STYLE}<main><h1>Page</h1>${main}</main>`

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

/** Opens the pages one after the other, all at one address, and returns what axe finds on each, by day and by night. */
async function faultsOf(t: Parameters<typeof openPage>[0], pages: readonly string[]): Promise<string[][][]> {
  const { page: opened } = await openPage(t, browser)
  const findFaults = await createAxe()
  const all: string[][][] = []
  for (const main of pages) {
    await opened.setContent(page(main))
    all.push([await findFaults(opened, 'light'), await findFaults(opened, 'dark')])
  }
  return all
}

test('low-contrast text is found in light and dark mode, even on a page whose other text was checked before', async t => {
  const dim = '<p class="dim">dim</p>'
  const faint = '<p class="faint">faint</p>'
  assert.deepEqual(
    await faultsOf(t, ['<p>clear</p>', `<p>clear</p>${dim}`, `<p>clear</p>${faint}`, `<b>clear</b>${dim}`]),
    [
      [[], []],
      [[], [`color-contrast: ${dim}`]],
      [[`color-contrast: ${faint}`], []],
      // Its colours have been reported.
      [[], []],
    ],
  )
})

test('disabled or hidden text is checked once it is enabled or shown', async t => {
  const button = '<button class="faint">go</button>'
  const [disabled, enabled] = await faultsOf(t, [button.replace('>', ' disabled>'), button])
  assert.deepEqual([disabled, enabled?.[0]?.length], [[[], []], 1])
  const text = '<p class="faint">text</p>'
  const [hidden, shown] = await faultsOf(t, [`<div hidden>${text}</div><p>clear</p>`, `<div>${text}</div>`])
  assert.deepEqual(
    [hidden, shown],
    [
      [[], []],
      [[`color-contrast: ${text}`], []],
    ],
  )
})

test('rules that are not about colours are tested on every page', async t => {
  const image = '<img src="data:,">'
  const found = await faultsOf(t, ['<p>clear</p>', `<p>clear</p>${image}`, `<p>clear</p>${image}`])
  assert.deepEqual(found, [
    [[], []],
    [[`image-alt: ${image}`], []],
    [[`image-alt: ${image}`], []],
  ])
})
