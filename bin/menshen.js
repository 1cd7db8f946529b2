#!/usr/bin/env node
// The command of the npm package: what was built if it is there, otherwise the source as it is.
import { existsSync } from 'node:fs'

const built = new URL('../dist/main.js', import.meta.url)
await import(existsSync(built) ? built.href : new URL('../src/main.ts', import.meta.url).href)
