#!/usr/bin/env node
// The command: the source as it is, or in the npm package what was built of it. Compiled code is kept for the next
// start, which then takes half the time.
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'

enableCompileCache()
const source = new URL('../src/command/main.ts', import.meta.url)
await import(existsSync(source) ? source.href : new URL('../dist/command/main.js', import.meta.url).href)
