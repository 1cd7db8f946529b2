// Parses the arguments of `npm run bench -- …`.

import { parseArgs } from 'node:util'
import { GROUPS, PARTS } from './parts/all.ts'
import { type Plan, QUICK, WHOLE } from './plan.ts'

export interface Asked {
  readonly plan: Plan
  /** Keyed by name, each with the requested cases; none means all of them. */
  readonly parts: ReadonlyMap<string, readonly string[]>
  /** Whether everything runs, as it should be published. */
  readonly isWhole: boolean
  /** Whether the results are saved. */
  readonly keeps: boolean
}

export const USAGE = `npm run bench                                    everything, into bench/results.md (about 40 minutes)
npm run bench -- check gateway:1KB --rounds 12   some parts, or cases of them: printed only
npm run bench -- check --keep                    whole parts, replaced in bench/results.md
npm run bench -- --quick                         shows that everything works; its figures mean nothing
npm run bench -- scale                           the simulation in bench/capacity.md, with the costs of bench/results.json

parts: ${Object.entries(PARTS)
  .map(([name, { cases = [] }]) => (cases.length > 0 ? `${name} (${cases.map(one => `:${one}`).join(' ')})` : name))
  .join(', ')}, growth (${GROUPS.growth?.join(' ')})
`

/** Throws an error that names the argument that cannot be understood. */
export function readCommandLine(args: readonly string[]): Asked {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      rounds: { type: 'string' },
    },
  })
  const plan = withRounds(values.quick ? QUICK : WHOLE, values.rounds)
  const names = positionals.flatMap(name => GROUPS[name] ?? [name])
  const hasCases = names.some(name => name.includes(':'))
  const isWhole = names.length === 0 && !values.quick
  if (values.keep && (hasCases || values.quick)) throw new Error('Only whole parts of a whole run can be kept.')
  return { plan, parts: readParts(names), isWhole, keeps: isWhole || values.keep }
}

function withRounds(plan: Plan, rounds: string | undefined): Plan {
  if (rounds === undefined) return plan
  if (!/^[1-9]\d{0,3}$/.test(rounds)) throw new Error(`--rounds takes a number, e.g. 12, and not ${rounds}.`)
  return { ...plan, rounds: Number(rounds), mostRounds: Number(rounds) }
}

function readParts(names: readonly string[]): Map<string, string[]> {
  const parts = new Map<string, string[]>()
  for (const name of names) {
    const [part = '', wanted] = name.split(':')
    const cases = PARTS[part]?.cases ?? []
    if (!Object.hasOwn(PARTS, part) || (wanted !== undefined && !cases.includes(wanted))) {
      throw new Error(`There is no part ${name}.\n\n${USAGE}`)
    }
    parts.set(part, [...(parts.get(part) ?? []), ...(wanted === undefined ? cases : [wanted])])
  }
  return parts.size > 0 ? parts : new Map(Object.keys(PARTS).map(name => [name, []]))
}
