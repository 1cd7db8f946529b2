// A reporter that lists, after all tests, the files that took longest and those that took most of the processor.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

const SHOWN = 20

interface FileTime {
  readonly file: string
  readonly seconds: number
}

export default async function* slowestFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files: FileTime[] = []
  for await (const { type, data } of events) {
    if (type === 'test:summary' && data.file?.endsWith('.ts'))
      files.push({ file: relative(process.cwd(), realpathSync(data.file)), seconds: data.duration_ms / 1000 })
    // In a shared process (shared-process.ts) a file is a suite.
    if ((type === 'test:pass' || type === 'test:fail') && data.nesting === 0 && data.name.endsWith('.test.ts'))
      files.push({ file: data.name, seconds: data.details.duration_ms / 1000 })
  }
  yield* longest(`The slowest of ${files.length} files`, files)
  const times = readProcessorTimes(process.env.TEST_HEARTBEATS)
  const ofProcesses = times.filter(({ file }) => file.startsWith('/'))
  const total = ofProcesses.reduce((sum, { seconds }) => sum + seconds, 0)
  const ofFiles = times.filter(({ file }) => !file.endsWith('.mjs'))
  yield* longest(`Processor time of all files and what they started: ${total.toFixed(0)} s; the most`, ofFiles)
}

function* longest(title: string, files: readonly FileTime[]): Generator<string> {
  yield `\n${title}:\n`
  for (const { file, seconds } of files.toSorted((one, other) => other.seconds - one.seconds).slice(0, SHOWN))
    yield `${seconds.toFixed(1).padStart(7)} s  ${relative(process.cwd(), file)}\n`
}

/** What heartbeat.js wrote: a process has an absolute path, and a file in a shared process a relative one. */
function readProcessorTimes(folder = ''): FileTime[] {
  const path = join(folder, 'processor-times')
  if (!folder || !existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  return lines.map(line => JSON.parse(line))
}
