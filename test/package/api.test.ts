// The library's surface: what can be imported changes only together with the page that says so.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { apiPage } from '../../scripts/api.ts'

test('test/package/api.md is the page that `npm run docs` writes from the types, and it contains no `any`', () => {
  const page = apiPage()
  const lines = readFileSync(new URL('api.md', import.meta.url), 'utf8').split('\n')
  const different = page.split('\n').findIndex((line, n) => line !== lines[n])
  assert.ok(page === lines.join('\n'), `line ${different + 1} is "${lines[different]}"; npm run docs writes it`)
  const code = [...page.matchAll(/^```typescript\n(.*?)^```$/gms)].map(([, text = '']) => text).join('')
  assert.ok(code.includes('function createMenshen'))
  const declared = code.replaceAll(/\/\*.*?\*\/|'[^'\n]*'/gs, '')
  assert.doesNotMatch(declared, /\bany\b/)
})
