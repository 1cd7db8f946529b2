// The results of the benchmarks: bench/results.json has them all, part by part, and bench/results.md
// and bench/capacity.md are written from it.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { writeCapacityPage } from './capacity-page.ts'
import type { Findings } from './findings.ts'
import { markTable, toMarkdown } from './markdown.ts'

/** The result of one part, or why there is none. */
export interface PartResult {
  readonly at: string
  readonly seconds: number
  readonly rounds: number
  readonly roundSeconds: number
  readonly findings?: Findings
  readonly failure?: string
}

export interface Results {
  readonly machine: string
  readonly parts: Readonly<Record<string, PartResult>>
}

const JSON_FILE = new URL('../results.json', import.meta.url)
const PAGE = new URL('../results.md', import.meta.url)

const METHOD = `- A **ratio** is the median over many short rounds, in which Menshen and the other server take turns. Its **spread** is the distance between the quartiles, relative to the median.
- **no slower** means a median above 1. Menshen does more than the other server, so the difference is noise.
- **CPU** is processor time per request, over all threads of the server. It decides where the spread of the rates is above a tenth, and where the other server was **not at its limit**.
- A run **proves nothing** if neither spread is within a tenth after up to twice the time.
- [Capacity](capacity.md) has the simulation of larger installations.`

export function readResults(): Results | undefined {
  return existsSync(JSON_FILE) ? JSON.parse(readFileSync(JSON_FILE, 'utf8')) : undefined
}

export function writeResults(results: Results): void {
  writeFileSync(JSON_FILE, `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(PAGE, toPage(results))
  writeCapacityPage(results)
}

export function toPage({ machine, parts }: Results): string {
  const marks = Object.values(parts).flatMap(({ findings }) => findings?.marks ?? [])
  const sections = Object.entries(parts).filter(([name]) => name !== 'scale')
  return [
    '# Benchmarks\n',
    `Made by \`npm run bench\` on ${machine}.\n`,
    `${METHOD}\n`,
    toMarkdown(markTable(marks)),
    ...sections.map(([name, result]) => toSection(name, result)),
  ].join('\n')
}

export function toSection(name: string, { at, seconds, rounds, roundSeconds, findings, failure }: PartResult): string {
  const when = `*\`${name}\`, ${at}, ${rounds} rounds of ${roundSeconds} s or more, ${Math.round(seconds)} s in all.*\n`
  if (!findings) return `## ${name}\n\n${when}\n**Not measured**: ${failure}\n`
  return `${findings.tables.map(table => toMarkdown(table)).join('\n')}\n${when}`
}
