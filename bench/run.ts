// `npm run bench`: everything, into bench/results.md. `npm run bench -- check gateway:1KB --rounds 12` measures some parts
// or cases of them, `--quick` only shows that everything works: these print, and leave the results as they are.

import { parseArgs } from 'node:util'
import { findProgram } from '../test/kit/packages.ts'
import type { Part } from './part.ts'
import { check, home } from './parts/check.ts'
import { gateway } from './parts/gateway.ts'
import { QUICK, WHOLE } from './plan.ts'
import { machine } from './report/machine.ts'
import { markTable, toMarkdown } from './report/markdown.ts'
import { shareCores } from './servers/cores.ts'

const PARTS: Readonly<Record<string, Part>> = { check, home, gateway }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, rounds: { type: 'string' } },
})
if (!findProgram('wrk')) refuse('The benchmarks need a load generator; please install: wrk')

const about = machine()
const cores = shareCores()
const say = (line: string) => void process.stderr.write(`${line}\n`)
const usual = values.quick ? QUICK : WHOLE
const plan = values.rounds ? { ...usual, rounds: Number(values.rounds) } : usual
for (const [name, part] of Object.entries(PARTS)) {
  const asked = positionals.filter(one => one.split(':')[0] === name)
  if (positionals.length > 0 && asked.length === 0) continue
  const wants = (one: string) => asked.length === 0 || asked.includes(name) || asked.includes(`${name}:${one}`)
  const { tables, marks } = await part.run({ plan, cores, say, wants })
  process.stdout.write([...tables, markTable(marks)].map(table => toMarkdown(table)).join('\n'))
}
say(about)

function refuse(sentence: string): never {
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}
