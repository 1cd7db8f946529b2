// The results of the benchmarks: bench/results.json has them all, part by part, and bench/results.md
// and bench/capacity.md are written from it.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { writeCapacityPage } from './capacity-page.ts'
import type { Findings } from './findings.ts'
import { givenUpSection, isGivenUp } from './given-up.ts'
import { markTable, toMarkdown } from './markdown.ts'

/** One part's, or why there is nothing. */
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

const HOW_TO_READ = `A **ratio** is the median over many short rounds, Menshen and the other in turn, four rounds of each at a time; its
**spread** is the distance of the quartiles, as a share of the median. Where neither spread is within a tenth, the run proves nothing: it goes on,
for up to twice as long and with more rounds at a time, and says so where that proves nothing either.
**no slower** stands where the median is above 1: nobody is faster than a server that does less, so that much is noise. **CPU** is processor
time a request, of all threads of the server; it suffers less from a shared machine, and it decides where the spread of the rates is too wide,
and where the other server was **not at its limit** (it had time to spare: the load, or somebody else on its core, was the limit).`

export function readResults(): Results | undefined {
  return existsSync(JSON_FILE) ? JSON.parse(readFileSync(JSON_FILE, 'utf8')) : undefined
}

export function writeResults(results: Results): void {
  writeFileSync(JSON_FILE, `${JSON.stringify(results, null, 2)}\n`)
  writeFileSync(PAGE, toPage(results))
  writeCapacityPage(results)
}

export function toPage({ machine, parts }: Results): string {
  const all = Object.values(parts)
  const marks = all.flatMap(({ findings }) => findings?.marks ?? [])
  return [
    '# Benchmarks\n',
    `Made by \`npm run bench\` on ${machine}.\n`,
    `${HOW_TO_READ}\n`,
    toMarkdown(markTable(marks.filter(mark => !isGivenUp(mark)))),
    givenUpSection(marks),
    ...Object.entries(parts).map(([name, result]) => toSection(name, result)),
  ].join('\n')
}

export function toSection(name: string, { at, seconds, rounds, roundSeconds, findings, failure }: PartResult): string {
  const when = `*\`${name}\`, ${at}, ${rounds} rounds of ${roundSeconds} s or more, ${Math.round(seconds)} s in all.*\n`
  if (!findings) return `## ${name}\n\n${when}\n**Not measured**: ${failure}\n`
  return `${findings.tables.map(table => toMarkdown(table)).join('\n')}\n${when}`
}
