// How often V8 collects the whole heap while buffers and requests pass through it, and new objects after a quiet time.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { isBefore } from '../../src/server/fast-path.ts'

const MODULE = new URL('../../src/server/fast-path.ts', import.meta.url)
/** Between what it takes with the flags, at most two, and without, at least nine. */
const MAX_COLLECTIONS = 5
const TRIES = 4
/** A collection beside the program would end later on a busy machine, and buffers that it has not seen cause the next one. */
const NODE_OPTIONS = ['--expose-gc', '--no-concurrent-marking', '--input-type=module', '--eval']

/** Three gigabytes that pass by, as a socket reads them, beside a heap that stays. */
const PASSING = `
  import { PerformanceObserver, constants } from 'node:perf_hooks'
  import { setV8Flags } from '${MODULE}'
  setV8Flags()
  globalThis.kept = Array.from({ length: 200_000 }, (_, n) => ({ n, text: 'kept ' + n }))
  globalThis.gc()
  let whole = 0
  new PerformanceObserver(list => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) whole++
  }).observe({ entryTypes: ['gc'] })
  const onTheirWay = []
  for (let n = 0; n < 49_152; n++) {
    onTheirWay[n % 64] = Buffer.allocUnsafeSlow(65_536)
    if (n % 16 === 0) await new Promise(setImmediate)
  }
  process.stdout.write(String(whole))
`

test('with the V8 flags, 3 GB of short-lived buffers cause at most 5 major collections, and without them more', async () => {
  await assertFewCollections(PASSING)
  const withoutFlags = PASSING.replace('setV8Flags()', '')
  assert.ok((await collectionsIn(withoutFlags)) > MAX_COLLECTIONS, 'without the flags there are more')
})

/** Objects of which the first live on, as connections do, and the others pass by, as requests do. */
const ALIKE = `
  import { PerformanceObserver, constants } from 'node:perf_hooks'
  import { setV8Flags } from '${MODULE}'
  setV8Flags()
  let whole = 0
  new PerformanceObserver(list => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) whole++
  }).observe({ entryTypes: ['gc'] })
  const make = number => {
    const listeners = []
    listeners.push(number)
    return { number, listeners, names: [], sizes: [number, 1] }
  }
  globalThis.kept = []
  for (let n = 0; n < 20_000; n++) {
    globalThis.kept.push(make(n))
    if (n % 2000 > 0) continue
    globalThis.gc({ type: 'minor' })
    await new Promise(setImmediate)
  }
  const onTheirWay = []
  for (let n = 0; n < 5_000_000; n++) {
    onTheirWay[n % 64] = make(n)
    if (n % 1000 === 0) await new Promise(setImmediate)
  }
  process.stdout.write(String(whole))
`

test('with the V8 flags, short-lived objects cause at most 5 major collections, even if the first of their kind survived', async () => {
  await assertFewCollections(ALIKE)
})

/** On a busy machine, V8 frees buffers later, which only adds collections: one run with few is enough. */
async function assertFewCollections(program: string): Promise<void> {
  const counts: number[] = []
  do counts.push(await collectionsIn(program))
  while (Math.min(...counts) > MAX_COLLECTIONS && counts.length < TRIES)
  assert.ok(Math.min(...counts) <= MAX_COLLECTIONS, `${counts} collections`)
}

/** What the program counts. */
async function collectionsIn(program: string): Promise<number> {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [...NODE_OPTIONS, program])
  assert.equal(stderr, '', 'V8 knows the flags')
  return Number(stdout)
}

/** Between what such a load leads to, 40, and 17 by doubling. */
const GROWN_MB = 30

/** A load, a quiet time, and a load again: how many megabytes there are for new objects after each. */
const QUIET = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { disableIdleGc } from '${MODULE}'
  disableIdleGc()
  const sizes = []
  const note = () => sizes.push(getHeapSpaceStatistics().find(space => space.space_name === 'new_space').space_size / 1e6)
  const recent = []
  const load = () => {
    for (let n = 0; n < 400_000; n++) recent[n % 20_000] = { n, text: 'new ' + n }
    note()
  }
  load()
  globalThis.gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  note()
  load()
  process.stdout.write(JSON.stringify(sizes))
`

test('with disableIdleGc, the space for new objects grows back to at least 30 MB after an idle period', async () => {
  const args = ['--expose-gc', '--input-type=module', '--eval', QUIET]
  const [before = 0, quiet = 0, after = 0] = JSON.parse((await promisify(execFile)(process.execPath, args)).stdout)
  assert.ok(quiet < before / 4, `${quiet} of ${before} MB in a quiet time`)
  assert.ok(after >= GROWN_MB, `${after} of ${before} MB`)
})

/** The flags that each version of V8 is started with. */
const FLAGS = `
  import v8 from 'node:v8'
  import { syncBuiltinESMExports } from 'node:module'
  let flags = []
  v8.setFlagsFromString = flag => flags.push(flag.replace(/=.*/, ''))
  syncBuiltinESMExports()
  const { disableIdleGc, setV8Flags } = await import('${MODULE}')
  const written = ['14.5.1', '14.6.1', '14.8.1', '15.0.245'].map(version => {
    flags = []
    setV8Flags(version)
    disableIdleGc(version)
    return flags
  })
  process.stdout.write(JSON.stringify(written))
`

test('V8 gets the flag for buffers before 14.8 only, and the flag for idle collections from 14.6 on', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', FLAGS])
  const buffers = '--external-memory-accounted-in-global-limit'
  const idle = '--memory-reducer-gc-count'
  const always = ['--no-allocation-site-pretenuring', '--max-inlined-bytecode-size-cumulative']
  const growth = '--semi-space-growth-factor'
  assert.deepEqual(JSON.parse(stdout), [
    [buffers, ...always, growth],
    [buffers, ...always, idle, growth],
    [...always, idle, growth],
    [...always, idle, growth],
  ])
})

test('V8 versions up to 14.7 are recognized as older than 14.8, and later ones such as 14.10 are not', () => {
  const versions = ['13.6.233.10-node.28', '14.6.202.34-node.34', '14.7.1', '14.8.1', '14.10.3', '15.0.245']
  assert.deepEqual(
    versions.map(version => isBefore(version, [14, 8])),
    [true, true, true, false, false, false],
  )
})
