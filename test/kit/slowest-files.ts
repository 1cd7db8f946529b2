// A reporter that lists, after all tests, the files that took longest.
import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

const SHOWN = 20

export default async function* slowestFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files: { readonly file: string; readonly seconds: number }[] = []
  for await (const { type, data } of events) {
    if (type === 'test:summary' && data.file?.endsWith('.ts'))
      files.push({ file: relative(process.cwd(), data.file), seconds: data.duration_ms / 1000 })
    // In a shared process (shared-process.ts) a file is a suite.
    if ((type === 'test:pass' || type === 'test:fail') && data.nesting === 0 && data.name.endsWith('.test.ts'))
      files.push({ file: data.name, seconds: data.details.duration_ms / 1000 })
  }
  const slowest = files.sort((one, other) => other.seconds - one.seconds).slice(0, SHOWN)
  yield `\nThe slowest of ${files.length} files:\n`
  for (const { file, seconds } of slowest) yield `${seconds.toFixed(1).padStart(7)} s  ${file}\n`
}
