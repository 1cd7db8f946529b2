#!/usr/bin/env node
// The command: the source as it is, or in the npm package what was built of it. It has to parse on an old Node, and to
// import nothing before it has looked which one this is.
import { existsSync, readFileSync } from 'node:fs'

const { engines } = readPackage('../package.json')
const [major, minor] = engines.node.match(/\d+/g).map(Number)

if (isNewEnough(process.versions.node)) {
  const { useCompileCache } = await import('./compile-cache.js')
  useCompileCache()
  const source = new URL('../src/cli/entry.ts', import.meta.url)
  await import(existsSync(source) ? source.href : new URL('../dist/cli/entry.js', import.meta.url).href)
} else if (isNewEnough(readPackage('../node_modules/node/package.json').version)) {
  // In a clone: the machine's Node is old, and npm ci has brought another.
  const { runWith } = await import('./own-node.js')
  runWith(new URL('../node_modules/node/bin/node', import.meta.url), new URL(import.meta.url))
} else {
  process.stderr.write(
    `Menshen needs Node ${major}.${minor} or newer, and this is ${process.versions.node}; ` +
      'install a newer one from https://nodejs.org or with npm install node@26, or run npm ci without --omit=dev in a clone.\n',
  )
  process.exit(1)
}

/** @param {string} version */
function isNewEnough(version) {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}

/** @param {string} path */
function readPackage(path) {
  const file = new URL(path, import.meta.url)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { version: '0' }
}
