// `npm run bench`: everything, into bench/results.md. `npm run bench -- check storm` runs some parts and `--quick` a small
// version that only shows that they work: these print, and leave the results as they are.

import { writeFileSync } from 'node:fs'
import { findProgram } from '../test/kit/packages.ts'
import { benchCheck } from './check.ts'
import { shareCores } from './cores.ts'
import { benchGrowth } from './growth.ts'
import { benchLibrary } from './library.ts'
import { machine } from './machine.ts'
import { benchObserving } from './observing.ts'
import type { Part } from './part.ts'
import { QUICK, WHOLE } from './plan.ts'
import { benchProxy } from './proxy.ts'
import { type Findings, markTable, toMarkdown } from './report.ts'
import { benchSignIns } from './sign-ins.ts'
import { benchStorm } from './storm.ts'

const PARTS: Readonly<Record<string, Part>> = {
  check: benchCheck,
  proxy: benchProxy,
  observing: benchObserving,
  'sign-ins': benchSignIns,
  storm: benchStorm,
  growth: benchGrowth,
  library: benchLibrary,
}
const RESULTS = new URL('results.md', import.meta.url)
/** What has not ended by then hangs. */
const DEADLINE_MINUTES = 20

const args = process.argv.slice(2)
const quick = args.includes('--quick')
const chosen = args.filter(arg => arg !== '--quick')
const unknown = chosen.filter(name => !Object.hasOwn(PARTS, name))
if (unknown.length > 0) refuse(`There is no part ${unknown.join(', ')}; expected ${Object.keys(PARTS).join(', ')}.`)
if (!findProgram('wrk')) refuse('The benchmarks need a load generator; please install: wrk')
setTimeout(() => refuse(`Not done after ${DEADLINE_MINUTES} minutes; given up.`), DEADLINE_MINUTES * 60_000).unref()

const about = machine()
const cores = shareCores()
const bench = { plan: quick ? QUICK : WHOLE, cores, say: (line: string) => void process.stderr.write(`${line}\n`) }
const findings: Findings[] = []
for (const [name, part] of Object.entries(PARTS)) {
  if (chosen.length === 0 || chosen.includes(name)) findings.push(await part(bench))
}
const report = write(findings)
process.stdout.write(report)
if (!quick && chosen.length === 0) writeFileSync(RESULTS, report)

function write(all: readonly Findings[]): string {
  const tables = [markTable(all.flatMap(({ marks }) => marks)), ...all.map(({ table }) => table)]
  const date = new Date().toISOString().slice(0, 10)
  const title = quick ? '# A quick run: it works, its figures mean nothing' : '# Benchmarks'
  return `${title}

${date}: ${about}; ${cores.sentence}. A ratio is the median of ${bench.plan.rounds} rounds of ${bench.plan.roundSeconds} s in turn.

${tables.map(toMarkdown).join('\n')}`
}

function refuse(sentence: string): never {
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}
