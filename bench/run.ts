// `npm run bench`: measures the requested parts (see command-line.ts), prints the results, and saves them if they should be kept.

import { findProgram } from '../test/kit/packages.ts'
import { type Asked, readCommandLine } from './command-line.ts'
import { PARTS } from './parts/all.ts'
import { machine } from './report/machine.ts'
import { markTable, toMarkdown } from './report/markdown.ts'
import { type PartResult, readResults, toSection, writeResults } from './report/results.ts'
import { type Cores, shareCores } from './servers/cores.ts'
import { endAll } from './servers/processes.ts'

/** A part that takes longer hangs. */
const DEADLINE_MINUTES = 15

const asked = understand()
if (!findProgram('wrk')) refuse('The benchmarks need a load generator; please install: wrk')
const about = machine()
const kept = asked.isWhole ? undefined : readResults()
if (asked.keeps && kept && kept.machine !== about) refuse(`The results are of another machine: ${kept.machine}`)

const cores = shareCores()
let known: Record<string, PartResult> = { ...kept?.parts }
const measured: Record<string, PartResult> = {}
for (const name of asked.parts.keys()) {
  const result = await measurePart(name, asked, cores)
  measured[name] = result
  process.stdout.write(`${toSection(name, result)}\n`)
  known = { ...known, [name]: result }
  // After each part, so that a later failure loses nothing.
  if (asked.keeps) writeResults({ machine: about, parts: inOrder(known) })
}
const marks = Object.values(measured).flatMap(({ findings }) => findings?.marks ?? [])
process.stdout.write(`${toMarkdown(markTable(marks))}\n${about}; ${cores.sentence}\n`)
if (Object.values(measured).some(({ failure }) => failure)) process.exitCode = 1
endAll()

async function measurePart(name: string, { plan, parts }: Asked, cores: Cores): Promise<PartResult> {
  const startedAt = Date.now()
  const wanted = parts.get(name) ?? []
  const wants = (one: string) => wanted.length === 0 || wanted.includes(one)
  const say = (line: string) => void process.stderr.write(`${line}\n`)
  const costs = () => Object.assign({}, ...Object.values(known).map(({ findings }) => findings?.costs))
  const { rounds, roundSeconds } = plan
  const soFar = () => ({
    at: new Date(startedAt).toISOString().slice(0, 16).replace('T', ' '),
    seconds: (Date.now() - startedAt) / 1000,
    rounds,
    roundSeconds,
  })
  const deadline = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => deadline.reject(new Error(`not done after ${DEADLINE_MINUTES} minutes`)),
    DEADLINE_MINUTES * 60_000,
  )
  try {
    const findings = await Promise.race([PARTS[name]?.run({ plan, cores, say, wants, costs }), deadline.promise])
    return { ...soFar(), ...(findings ? { findings } : {}) }
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error)
    say(`${name} failed: ${failure}`)
    return { ...soFar(), failure }
  } finally {
    clearTimeout(timer)
    endAll() // the processes of a part that was given up
  }
}

function inOrder(parts: Readonly<Record<string, PartResult>>): Record<string, PartResult> {
  const rows = Object.keys(PARTS).flatMap(name => (parts[name] ? [[name, parts[name]]] : []))
  return Object.fromEntries(rows)
}

function understand(): Asked {
  try {
    return readCommandLine(process.argv.slice(2))
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

function refuse(sentence: string): never {
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}
