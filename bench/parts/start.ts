// How long a start takes, and how large the npm package is.

import { join } from 'node:path'
import { median } from '../measure/statistics.ts'
import type { Part } from '../part.ts'
import { memoryOf } from '../process-memory.ts'
import { belowMark, kilobytes, megabytes, milliseconds } from '../report/words.ts'
import { startMenshen, startProvider } from '../servers/menshen.ts'
import { runToEnd } from '../servers/processes.ts'
import { openSqlite } from '../servers/stores.ts'

const MAX_PACKED = 400e3
const ROOT = join(import.meta.dirname, '..', '..')

export const start: Part = {
  async run({ plan, cores, say }) {
    say('starts')
    await using provider = await startProvider()
    await using store = await openSqlite()
    const times: number[] = []
    const memory: number[] = []
    while (times.length < plan.starts) {
      await using menshen = await startMenshen(store.address, provider, cores)
      times.push(menshen.startMs)
      memory.push(memoryOf(menshen.pid).anonymous)
    }
    const rows = [['sqlite', milliseconds(median(times)), megabytes(median(memory))]]
    const columns = ['store', 'until ready', 'memory of its own (RssAnon)']
    return { tables: [{ title: 'Start', columns, rows }], marks: [] }
  },
}

export const size: Part = {
  async run({ cores, say }) {
    say('the npm package')
    const printed = await runToEnd(['npm', 'pack', '--dry-run', '--json', '--prefix', ROOT, ROOT], { on: cores.all })
    const [packed] = JSON.parse(printed.slice(printed.indexOf('[')))
    const rows = [[kilobytes(packed.size), kilobytes(packed.unpackedSize), String(packed.entryCount)]]
    return {
      tables: [{ title: 'The npm package', columns: ['packed', 'unpacked', 'files'], rows }],
      marks: [belowMark('npm package, packed', packed.size, MAX_PACKED, kilobytes)],
    }
  },
}
