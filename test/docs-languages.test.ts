// A page that is there in two languages says the same in both: settings, commands, codes, addresses.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SETTINGS } from '../src/config/settings.ts'
import { PRESETS } from '../src/provider/presets/presets.ts'
import { snippetsIn } from './kit/snippets.ts'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const translated = readdirSync(new URL('../docs/zh-CN', import.meta.url)).map(name => [
  `docs/${name}`,
  `docs/zh-CN/${name}`,
])

for (const [english = '', chinese = ''] of [['README.md', 'README.zh-CN.md'], ...translated]) {
  test(`${chinese} names the same settings, commands, codes and addresses as ${english}`, () => {
    const [one, other] = [parts(english), parts(chinese)]
    for (const what of ['settings', 'commands', 'codes', 'addresses'] as const)
      assert.deepEqual([...other[what]].sort(), [...one[what]].sort(), what)
  })
}

test('first steps, the first production day, deploying, library, MCP, providers and troubleshooting are the Chinese pages', () => {
  assert.deepEqual(readdirSync(new URL('../docs/zh-CN', import.meta.url)).sort(), [
    'deploying.md',
    'first-production-day.md',
    'first-steps.md',
    'library.md',
    'mcp.md',
    'providers.md',
    'troubleshooting.md',
  ])
})

test('docs/library.md has the same code in both languages', () => {
  const [english, chinese] = ['docs/library.md', 'docs/zh-CN/library.md'].map(page =>
    snippetsIn(page, read(page)).map(({ language, text }) => ({ language, text })),
  )
  assert.deepEqual(chinese, english)
})

test('every preset has a section in docs/providers.md in both languages', () => {
  for (const page of ['docs/providers.md', 'docs/zh-CN/providers.md']) {
    const named = [...read(page).matchAll(/^## .*[（(]`([\w-]+)`[)）]$/gm)].map(([, name]) => name)
    assert.deepEqual(named.sort(), Object.keys(PRESETS).sort(), page)
  }
})

function parts(path: string) {
  // The list of pages leads to those of its own language.
  const text = read(path).replaceAll(/^\|? *\[.*\]\(.*$/gm, '')
  const words = new Set(text.match(/\b[A-Z][A-Z0-9_]{2,}\b/g))
  const codes = text.match(/`[^`\n]+`/g) ?? []
  return {
    settings: new Set([...words].filter(word => Object.hasOwn(SETTINGS, word))),
    commands: new Set(text.match(/(?<=`)(?:menshen|npm|npx|node bin\/menshen\.js)\b[^`\n]*/g)),
    codes: new Set(codes.filter(code => /^`[a-z]+(?:_[a-z]+)+`$/.test(code))),
    addresses: new Set(codes.filter(code => /^`\/[\w/.-]*`$/.test(code))),
  }
}
