#!/usr/bin/env node
// The command: what was built if it is there, otherwise the source as it is. Compiled code is kept for the next start,
// which then takes half the time.
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'

enableCompileCache()
const built = new URL('../dist/main.js', import.meta.url)
await import(existsSync(built) ? built.href : new URL('../src/main.ts', import.meta.url).href)
