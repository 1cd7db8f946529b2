// axe-core in the page of a real browser. Most of its time goes into the contrast of each text, by day and by night, in each
// language and each size of the window. The verdict on a contrast depends on nothing but the styles of the text and of what is
// around it, so a text whose styles axe has judged before is not judged again:
//
//   login, zh-CN, light   every rule, every text
//   login, zh-CN, dark    contrast and links; every text, because no colour is one of the day
//   login, en, light      every rule but contrast; contrast only of texts in colours that the Chinese page does not have
//   login, en, dark       nothing, if it has the colours of the Chinese page

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

export type ColorScheme = 'light' | 'dark'

/** The attribute of the texts whose contrast axe judges. */
const MARK = 'data-contrast-is-judged'

export type FindFaults = Awaited<ReturnType<typeof createAxe>>

/**
 * Returns a function for all pages of a test file: the rules that the page breaks in a colour scheme, with the elements that
 * break them. By night it tests colours only; the other rules are those of the day.
 */
export async function createAxe() {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  const judged = new Set<string>()
  return async (page: Page, colorScheme: ColorScheme): Promise<string[]> => {
    await page.emulateMedia({ colorScheme })
    if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(source)
    const result = await page.evaluate(runAxe, { colorScheme, mark: MARK, judged: [...judged] })
    for (const key of result.judged) judged.add(key)
    return result.faults
  }
}

/** Runs in the page, alone. */
async function runAxe(given: {
  colorScheme: string
  mark: string
  judged: string[]
}): Promise<{ faults: string[]; judged: string[] }> {
  type Result = { id: string; nodes: { element: Element }[] }
  type Results = Record<'violations' | 'passes' | 'incomplete', Result[]>
  type Axe = { configure(spec: object): void; run(context: Document, options: object): Promise<Results> }
  const { axe } = globalThis as unknown as { axe: Axe }
  axe.configure({ noHtml: true, rules: [{ id: 'color-contrast', selector: `[${given.mark}]` }] })
  for (const transition of document.getAnimations()) transition.finish()
  const isDay = given.colorScheme === 'light'
  const judged = new Set(given.judged)
  const faults: string[] = []
  const keys = new Map<Element, string>()

  const address = location.origin + location.pathname
  const page = `page ${address}`
  const links = `links ${address} ${hash([...document.querySelectorAll('a')].map(styleKey).join())}`
  // axe does not judge a text that is hidden or disabled, whatever its colours are.
  const notJudged = (element: Element) => {
    const isDisabled = element.closest(':disabled, [aria-disabled=true]') !== null
    return ['not judged', address, innerWidth, isDisabled, styleKey(element)].join(' ')
  }
  const texts = [...document.body.querySelectorAll('*')].filter(element => element.checkVisibility() && isText(element))
  const left = () => texts.filter(element => !judged.has(styleKey(element)) && !judged.has(notJudged(element)))
  const isNew = isDay && !judged.has(page)
  const chosen = isNew ? texts : [...new Map(left().map(element => [styleKey(element), element])).values()]
  const unclear = new Set<Element>()
  await run(chosen, isDay ? 'all' : judged.has(links) ? [] : ['link-in-text-block'])
  judged.add(links)
  if (isDay) judged.add(page)
  await run(
    left().filter(element => !chosen.includes(element)),
    [],
  )
  for (const element of left()) if (!unclear.has(element)) judged.add(notJudged(element))
  return { faults, judged: [...judged] }

  /**
   * The contrast of these texts, and other rules on the whole page. They are one run: each run computes where every
   * element of the page is, which takes longer than the rules.
   */
  async function run(some: Element[], others: 'all' | string[]): Promise<void> {
    const contrast = some.length > 0 ? ['color-contrast'] : []
    if (others !== 'all' && others.length + contrast.length === 0) return
    const rules = others === 'all' ? { rules: { 'color-contrast': { enabled: some.length > 0 } } } : {}
    const runOnly = others === 'all' ? {} : { runOnly: [...contrast, ...others] }
    const resultTypes = ['violations', 'passes', 'incomplete']
    for (const element of some) element.setAttribute(given.mark, '')
    const options = { resultTypes, elementRef: true, selectors: false, ...rules, ...runOnly }
    const results = await axe.run(document, options)
    for (const element of some) element.removeAttribute(given.mark)
    for (const { id, nodes } of results.violations)
      faults.push(`${id}: ${nodes.map(({ element }) => element.outerHTML.slice(0, 300)).join(', ')}`)
    const contrasts = (all: Result[]) =>
      all.filter(({ id }) => id === 'color-contrast').flatMap(({ nodes }) => nodes.map(({ element }) => element))
    for (const element of contrasts([...results.passes, ...results.violations])) judged.add(styleKey(element))
    for (const element of contrasts(results.incomplete)) unclear.add(element)
  }

  function isText(element: Element): boolean {
    const isOwnText = (node: Node) => node.nodeType === Node.TEXT_NODE && Boolean(node.textContent?.trim())
    return element.matches('input, select, textarea') || [...element.childNodes].some(isOwnText)
  }

  /** The same for two elements if they, and all elements around them, have the same styles. */
  function styleKey(element: Element | null): string {
    if (!element) return ''
    const known = keys.get(element)
    if (known !== undefined) return known
    const style = getComputedStyle(element)
    const key = hash(
      [
        styleKey(element.parentElement),
        ...[style.color, style.backgroundColor, style.backgroundImage, style.opacity, style.filter, style.mixBlendMode],
        ...[
          style.fontSize,
          style.fontWeight,
          style.fontStyle,
          style.textShadow,
          style.textDecorationLine,
          style.position,
        ],
        ...[style.borderBottomStyle, style.borderBottomWidth, style.borderBottomColor, style.fill],
      ].join(';'),
    )
    keys.set(element, key)
    return key
  }

  /** 53 bits: no two of a few hundred styles are expected to have the same. */
  function hash(text: string): string {
    let [high, low] = [0xdeadbeef, 0x41c6ce57]
    for (let n = 0; n < text.length; n++) {
      high = Math.imul(high ^ text.charCodeAt(n), 2654435761)
      low = Math.imul(low ^ text.charCodeAt(n), 1597334677)
    }
    high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
    low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
    return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36)
  }
}
