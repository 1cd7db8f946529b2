// Test files share processes: most of their time would go into loading the same modules again. Each file is a suite, so that its
// hooks are its own, and fails if it leaves anything behind that another file could notice. Files that start programs share
// processes of their own, because `npm test -- quick` leaves them out.

import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { after, before, describe } from 'node:test'
import { beginFile, recordProcessorTime } from './heartbeat.js'
import { attributeErrorsTo, followNoPromises } from './overlooked-errors.js'
import { until } from './until.ts'

const STARTS_PROGRAMS = /^node:(child_process|cluster|worker_threads)$/
/** What starts a browser, or replaces global objects. */
const NEEDS_OWN_PROCESS = /^(playwright-core|@opentelemetry\/sdk-.*|@hono\/node-server)$/
const IMPORTS = /^(?:import|export) (?!type )[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm
/** What keeps a process from ending. */
const OPEN = ['TCPServerWrap', 'PipeServerWrap', 'FSEventWrap', 'StatWatcher', 'Timeout']
const CLOSES_WITHIN_MS = 5000

/** Whether neither the file nor what it imports, apart from `src/`, needs a process of its own. */
export function canShare(file: string): boolean {
  return importsOf(file).every(name => !NEEDS_OWN_PROCESS.test(name))
}

export function startsPrograms(file: string): boolean {
  return importsOf(file).some(name => STARTS_PROGRAMS.test(name))
}

/** The packages and modules of Node that the file or what it imports, apart from `src/`, imports. */
function importsOf(file: string, seen = new Set<string>()): string[] {
  const path = resolve(file)
  if (seen.has(path) || !existsSync(path)) return []
  seen.add(path)
  return [...readFileSync(path, 'utf8').matchAll(IMPORTS)]
    .map(([, from, alone, dynamic]) => from ?? alone ?? dynamic ?? '')
    .flatMap(name => {
      if (!name.startsWith('.')) return [name]
      const imported = join(dirname(path), name)
      return imported.startsWith(resolve('src')) ? [] : importsOf(imported, seen)
    })
}

/** A few test files in one process. */
export interface Share {
  /** The file for the runner. */
  readonly path: string
  readonly files: readonly string[]
}

/** Writes into `folder` a file for the runner per process. */
export function writeShares(
  folder: string,
  files: readonly string[],
  processes: number,
  name = 'shared-process',
): Share[] {
  const shares = Array.from({ length: processes }, (_, share) => files.filter((_, n) => n % processes === share))
  return shares.map((share, n) => {
    const path = join(folder, `${name}-${n + 1}.test.mjs`)
    writeFileSync(
      path,
      `import ${JSON.stringify(import.meta.resolve('./overlooked-errors.js'))}
const { runHere } = await import(${JSON.stringify(import.meta.url)})
runHere(${JSON.stringify(share, null, 2)})
`,
    )
    return { path, files: share }
  })
}

/** The files after one that blocked or ended its process. */
export function filesNotRun(shares: readonly Share[]): string[] {
  return shares.flatMap(({ path, files }) => {
    const begun = existsSync(begunIn(path)) ? readFileSync(begunIn(path), 'utf8').split('\n') : []
    return existsSync(endOf(path)) || begun.length === 0 ? [] : files.filter(file => !begun.includes(file))
  })
}

const begunIn = (path: string) => `${path}.begun`
const endOf = (path: string) => `${path}.end`

export function runHere(files: readonly string[]): void {
  const path = realpathSync(process.argv[1] ?? '')
  process.once('exit', () => writeFileSync(endOf(path), ''))
  // Loading a file may change what the next one would find, so all are loaded before the first test.
  const { promise: allLoaded, resolve: loaded } = Promise.withResolvers<void>()
  let left = files.length
  for (const file of files)
    describe(file, async () => {
      let found: State
      let openBefore: string[]
      let usedBefore: NodeJS.CpuUsage
      before(() => {
        appendFileSync(begunIn(path), `${file}\n`)
        beginFile(file)
        attributeErrorsTo(file)
        found = readState()
        openBefore = openNow()
        usedBefore = process.cpuUsage()
      })
      try {
        await import(resolve(file))
      } finally {
        left -= 1
        if (left === 0) {
          followNoPromises()
          loaded()
        }
      }
      after(async () => {
        await leftAsFound(found, openBefore)
        const { user, system } = process.cpuUsage(usedBefore)
        recordProcessorTime(file, (user + system) / 1_000_000)
      })
      await allLoaded
    })
}

type State = ReturnType<typeof readState>

function readState() {
  return {
    environment: { ...process.env },
    folder: process.cwd(),
    umask: process.umask(),
    listeners: process.eventNames().map(name => `${String(name)}: ${process.listenerCount(name)}`),
    ...functionsOf({ globalThis, process, console, Date, Math, performance, crypto }),
  }
}

/** All that code can replace in these objects. */
function functionsOf(objects: Record<string, object>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(objects).flatMap(([name, object]) =>
      Reflect.ownKeys(object).flatMap(key => {
        const { value, get } = Object.getOwnPropertyDescriptor(object, key) ?? {}
        return typeof (get ?? value) === 'function' ? [[`${name}.${String(key)}`, get ?? value]] : []
      }),
    ),
  )
}

/** `openBefore` is what other files have opened while they were loaded. */
async function leftAsFound(found: State, openBefore: readonly string[]): Promise<void> {
  assert.deepEqual(readState(), found, 'the file leaves the process as it found it')
  const left = () => OPEN.filter(kind => countOf(openNow(), kind) > countOf(openBefore, kind))
  await until(() => left().length === 0, CLOSES_WITHIN_MS).catch(() =>
    assert.fail(`the file leaves open: ${left().join(', ')}`),
  )
}

function openNow(): string[] {
  return process.getActiveResourcesInfo().filter(name => OPEN.includes(name))
}

function countOf(names: readonly string[], name: string): number {
  return names.filter(one => one === name).length
}
