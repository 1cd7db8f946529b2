// Writes bench/capacity.md: what one core and one Redis can carry, and the simulation of larger installations.

import { writeFileSync } from 'node:fs'
import type { Table } from './findings.ts'
import { toMarkdown } from './markdown.ts'
import type { Results } from './results.ts'
import { kilobytes, megabytes, microseconds, whole } from './words.ts'

const PAGE = new URL('../capacity.md', import.meta.url)
const INTRODUCTION = `# Capacity

The first three tables are measured, the others are a simulation with these costs (assumptions: \`bench/scale/installation.ts\`).
Where a run of [results.md](results.md) proves nothing, its cost is rough. [Operating](../docs/operating.md#capacity) explains how to use
this page, which \`npm run bench\` writes.
`

/** The rows about a core, each with the name of its cost. */
const ON_A_CORE = [
  ['a signed-in check, `sqlite:`', 'check on sqlite, CPU µs'],
  ['a signed-in check, `memory:`', 'check on memory, CPU µs'],
  ['a signed-in check, `redis://`', 'check on redis, CPU µs'],
  ['a check of a session that is not in the cache, `sqlite:`', 'check of cold users, cache small, CPU µs'],
  ['a check of a session that is not in the cache, `redis://`', 'check on redis, not cached, CPU µs'],
  ['a page of 1 KB through the gateway', 'page of 1KB through the gateway, CPU µs'],
  ['a page of 64 KB through the gateway', 'page of 64KB through the gateway, CPU µs'],
  ['a sign-in, `sqlite:`', 'sign-in on sqlite, CPU µs'],
  ['a refresh, `sqlite:`', 'refresh on sqlite, CPU µs'],
] as const
const ON_REDIS = [
  ['a check of a session that a process has not cached', 'check on redis, not cached, Redis µs'],
  ['a sign-in', 'sign-in on redis, Redis µs'],
  ['a refresh', 'refresh on redis, Redis µs'],
  ['telling one process of a change', 'invalidation, Redis µs'],
] as const
const IN_MEMORY = [
  ['a process at its start', 'memory at the start, bytes', megabytes],
  ['a session in its cache', 'memory of a session in the cache, bytes', kilobytes],
  ['an open event stream', 'memory of an open stream, bytes', kilobytes],
  ['a session in Redis', 'session in Redis, bytes', kilobytes],
] as const

export function writeCapacityPage(results: Results): void {
  writeFileSync(PAGE, `${INTRODUCTION}${toCapacityTables(results)}`)
}

/** Contains only what was measured. */
function toCapacityTables({ machine, parts }: Results): string {
  const costs: Record<string, number> = Object.assign(
    {},
    ...Object.values(parts).map(({ findings }) => findings?.costs),
  )
  const cost = (name: string) => costs[name] ?? Number.NaN
  const times = (rows: readonly (readonly [said: string, name: string])[]) =>
    rows
      .filter(([, name]) => Number.isFinite(cost(name)))
      .map(([said, name]) => [said, microseconds(cost(name)), whole(1e6 / cost(name))])
  const memory = IN_MEMORY.filter(([, name]) => Number.isFinite(cost(name)))
  const measured: Table[] = [
    { title: 'One core with one process', columns: ['', 'CPU', 'a second at most'], rows: times(ON_A_CORE) },
    { title: 'One Redis', columns: ['', 'CPU', 'a second at most'], rows: times(ON_REDIS) },
    { title: 'Memory', columns: ['', ''], rows: memory.map(([said, name, say]) => [said, say(cost(name))]) },
  ]
  const simulated = parts.scale?.findings?.tables ?? []
  const tables = [...measured, ...simulated].filter(({ rows }) => rows.length > 0)
  return `\nMeasured on ${machine}.\n\n${tables.map(table => toMarkdown(table, '##')).join('\n')}`
}
