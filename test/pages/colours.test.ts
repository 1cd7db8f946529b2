// The colours of the style sheets: each has one meaning, and each can be seen where it is used, by day and by night.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Scheme, shadesOf } from '../../src/config/accent-color.ts'
import { createBranding } from '../../src/pages/branding.ts'

const FOLDER = new URL('../../browser/', import.meta.url)
const SCHEMES = ['light', 'dark'] as const
const SURFACES = ['card', 'paper', 'danger-back', 'warning-back', 'success-back'] as const
const MEANINGS = ['danger', 'warning', 'success'] as const
/** WCAG 2.2: 1.4.3 for text, 1.4.11 for what shows where a control is. */
const TEXT = 4.5
const CONTROL = 3

const sheets = readdirSync(FOLDER)
  .filter(name => name.endsWith('.css'))
  .map(name => ({ name, text: read(name).replaceAll(/\/\*[\s\S]*?\*\//g, '') }))
const tokens = tokensOf(read('menshen.css'))

for (const scheme of SCHEMES)
  test(`text and controls have enough contrast on every surface (${scheme})`, () => {
    const found: string[] = []
    const expect = (front: string, back: string, least: number) => {
      const ratio = contrast(token(scheme, front), token(scheme, back))
      if (ratio < least) found.push(`${front} on ${back}: ${ratio.toFixed(2)}`)
    }
    for (const surface of SURFACES) {
      for (const text of ['ink', 'link', 'soft']) expect(text, surface, TEXT)
      for (const control of ['field-line', 'accent', 'danger']) expect(control, surface, CONTROL)
    }
    for (const meaning of MEANINGS) {
      // A tag, and a sign beside a notice.
      for (const surface of [`${meaning}-back`, 'card', 'paper']) {
        expect(meaning, surface, TEXT)
        expect(`${meaning}-line`, surface, CONTROL)
      }
    }
    for (const fill of ['accent', 'accent-strong']) expect('on-accent', fill, TEXT)
    for (const fill of ['danger', 'danger-strong']) expect('on-danger', fill, TEXT)
    // A button that cannot be used.
    expect('soft', 'line', CONTROL)
    assert.deepEqual(found, [])
  })

test('accent, danger, warning and success have distinct hues, and the link colour is not the accent colour', () => {
  for (const scheme of SCHEMES) {
    const hues = ['accent', 'danger', 'warning', 'success'].map(name => hue(token(scheme, name)))
    for (const [n, one] of hues.entries())
      for (const other of hues.slice(n + 1)) assert.ok(distance(one, other) >= 25, `${scheme}: ${hues.join(', ')}`)
    assert.notEqual(token(scheme, 'accent'), token(scheme, 'link'))
  }
})

test('ACCENT_COLOR changes only the colours of the accent and the links', () => {
  const { assets } = createBranding({ ACCENT_COLOR: '#0a7d4f', LOGO_FILE: undefined }, {})
  const css = String(assets.get('accent.css')?.body)
  const names = new Set(Array.from(css.matchAll(/(--[\w-]+):/g), ([, name]) => name))
  assert.deepEqual([...names].sort(), ['--accent', '--accent-strong', '--link', '--on-accent'])
})

test('styles for danger, warning and success never use the colours of the accent or the links', () => {
  for (const { name, text } of sheets)
    for (const { selector, body } of rulesIn(text))
      if (/\.(?:bad|warn|warning|good|success|failure|danger)\b/.test(selector))
        assert.doesNotMatch(body, /--(?:accent|on-accent|link)\b/, `${name}: ${selector}`)
})

for (const scheme of SCHEMES)
  test(`each line in the plots of the overview has enough contrast with its card (${scheme})`, () => {
    const [list = ''] = /(?<=COLOURS = \[)[^\]]+/.exec(read('overview.js')) ?? []
    const colours = Array.from(list.matchAll(/#[0-9a-f]{6}/g), ([colour]) => colour)
    assert.ok(colours.length >= 4)
    for (const colour of colours) assert.ok(contrast(colour, token(scheme, 'card')) >= CONTROL, colour)
  })

test('every field has a border that can be seen', () => {
  let fields = 0
  for (const { name, text } of sheets)
    for (const { selector, body } of rulesIn(text)) {
      const border = /(?:^|;)\s*border(?:-color)?:([^;]+)/.exec(body)?.[1]
      if (!/\b(?:input|select|textarea)\b/.test(selector) || border === undefined) continue
      fields += 1
      assert.match(border, /var\(--(?:field-line|ink|soft|accent|danger|danger-line)\)/, `${name}: ${selector}`)
    }
  assert.ok(fields > 0)
})

test('every colour that a style sheet uses is defined, and every dark colour has a light one', () => {
  const common = new Set(Array.from(read('menshen.css').matchAll(/(--[\w-]+)\s*:/g), ([, found]) => found))
  for (const { name, text } of sheets) {
    const own = new Set(Array.from(text.matchAll(/(--[\w-]+)\s*:/g), ([, found]) => found))
    for (const [, used = ''] of text.matchAll(/var\((--[\w-]+)/g))
      assert.ok(own.has(used) || common.has(used), `${name}: ${used}`)
  }
  for (const name of tokens.dark.keys()) assert.ok(tokens.light.has(name), name)
})

test('colour values are written only in the colour table of menshen.css', () => {
  for (const { name, text } of sheets) {
    const rules = name === 'menshen.css' ? text.replaceAll(/:root \{[^}]*\}/g, '') : text
    assert.doesNotMatch(rules, /#[\da-f]{3,8}\b(?![^;{]*\{)/i, name)
  }
})

test('the dialogs of session.js use the colours of the pages', () => {
  const pairs = [...read('session.js').matchAll(/--([\w-]+): light-dark\((#\w+), (#\w+)\)/g)]
  assert.ok(pairs.length >= 6)
  for (const [, name = '', light, dark] of pairs)
    assert.deepEqual([light, dark], [token('light', name), token('dark', name)], name)
})

test('every ACCENT_COLOR has enough contrast on every surface', () => {
  for (let n = 0; n < 4096; n += 13) {
    const color = `#${n.toString(16).padStart(3, '0').replaceAll(/./g, '$&$&')}`
    for (const scheme of SCHEMES) {
      const { accent, link } = shadesOf(color, scheme)
      for (const surface of SURFACES) {
        assert.ok(contrast(accent, token(scheme, surface)) >= CONTROL, `${color} on ${surface}, ${scheme}`)
        assert.ok(contrast(link, token(scheme, surface)) >= TEXT, `${color} on ${surface}, ${scheme}`)
      }
    }
  }
})

function read(name: string): string {
  return readFileSync(new URL(name, FOLDER), 'utf8')
}

/** The first block is for light pages, the second for dark ones. */
function tokensOf(css: string) {
  const [light = '', dark = ''] = Array.from(css.matchAll(/:root \{([^}]*)\}/g), ([, body = '']) => body)
  const table = (body: string) =>
    new Map(Array.from(body.matchAll(/--([\w-]+):\s*(#[\da-f]{6});/g), ([, name = '', value = '']) => [name, value]))
  return { light: table(light), dark: table(dark) }
}

function token(scheme: Scheme, name: string): string {
  return tokens[scheme].get(name) ?? assert.fail(`${scheme} has no --${name}`)
}

function rulesIn(css: string): { selector: string; body: string }[] {
  return Array.from(css.matchAll(/([^{}]+)\{([^{}]*)\}/g), ([, selector = '', body = '']) => ({
    selector: selector.trim(),
    body,
  }))
}

function channels(hex: string): number[] {
  return [1, 3, 5].map(at => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
}

function contrast(one: string, other: string): number {
  const luminance = (hex: string) => {
    const linear = (share: number) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4)
    const [red = 0, green = 0, blue = 0] = channels(hex).map(linear)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const [light = 0, dark = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (light + 0.05) / (dark + 0.05)
}

/** In degrees. */
function hue(hex: string): number {
  const [red = 0, green = 0, blue = 0] = channels(hex)
  const most = Math.max(red, green, blue)
  const range = most - Math.min(red, green, blue)
  if (range === 0) return 0
  if (most === red) return (60 * ((green - blue) / range) + 360) % 360
  return most === green ? 60 * ((blue - red) / range + 2) : 60 * ((red - green) / range + 4)
}

function distance(one: number, other: number): number {
  const around = Math.abs(one - other)
  return Math.min(around, 360 - around)
}
