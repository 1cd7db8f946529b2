#!/usr/bin/env node
// The command: the source as it is, or in the npm package what was built of it. It has to parse on an old Node, and to
// import nothing before it has looked which one this is.
import { existsSync, readFileSync } from 'node:fs'

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const [major, minor] = engines.node.match(/\d+/g).map(Number)
const [ownMajor = 0, ownMinor = 0] = process.versions.node.split('.').map(Number)

if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
  process.stderr.write(
    `Menshen needs Node ${major}.${minor} or newer, and this is ${process.versions.node}; ` +
      'install a newer one from https://nodejs.org, or run npm ci without --omit=dev and then npm start, which brings its own.\n',
  )
  process.exit(1)
}

const { useCompileCache } = await import('./compile-cache.js')
useCompileCache()
const source = new URL('../src/command/main.ts', import.meta.url)
await import(existsSync(source) ? source.href : new URL('../dist/command/main.js', import.meta.url).href)
