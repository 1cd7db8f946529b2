// The ways in which this provider can be told to misbehave, as data, and their current values.

/** A count of this value does not run down. */
export const ALWAYS = 999

interface KnobRow {
  readonly name: string
  readonly unit: 'seconds' | 'milliseconds' | 'times'
  readonly default: number
  readonly min: number
  readonly max: number
  readonly presets: readonly number[]
}

const COUNT = { unit: 'times', default: 0, min: 0, max: ALWAYS, presets: [0, 1, 3, ALWAYS] } as const

export const KNOBS = [
  {
    name: 'accessTokenSeconds',
    unit: 'seconds',
    default: 7200,
    min: 1,
    max: 86_400,
    presets: [7200, 310, 60],
  },
  {
    name: 'delayMs',
    unit: 'milliseconds',
    default: 0,
    min: 0,
    max: 60_000,
    presets: [0, 1000, 6000],
  },
  { name: 'refuseRefreshes', ...COUNT },
  { name: 'failTokenCalls', ...COUNT },
  { name: 'failUserInfoCalls', ...COUNT },
  { name: 'denyUserInfoCalls', ...COUNT },
] as const satisfies readonly KnobRow[]

type KnobName = (typeof KNOBS)[number]['name']
export type Knobs = Readonly<Record<KnobName, number>>
type CountName = Exclude<KnobName, 'accessTokenSeconds' | 'delayMs'>

export const DEFAULT_KNOBS = Object.fromEntries(KNOBS.map(knob => [knob.name, knob.default])) as Knobs

/** The change that a form asks for; undefined if it names an unknown knob or a value out of bounds. */
export function readChange(fields: ReadonlyMap<string, string>): Partial<Knobs> | undefined {
  const change: Partial<Record<KnobName, number>> = {}
  for (const [name, text] of fields) {
    const knob = KNOBS.find(candidate => candidate.name === name)
    const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
    if (!knob || !(value >= knob.min && value <= knob.max)) return undefined
    change[knob.name] = value
  }
  return change
}

export type FaultInjection = ReturnType<typeof createFaultInjection>

export function createFaultInjection() {
  let knobs = DEFAULT_KNOBS

  return {
    current: () => knobs,
    change(change: Partial<Knobs>) {
      knobs = { ...knobs, ...change }
    },
    reset() {
      knobs = DEFAULT_KNOBS
    },
    /** Whether this call must fail. Asking takes one off the count. */
    strikes(name: CountName): boolean {
      const left = knobs[name]
      if (left > 0 && left < ALWAYS) knobs = { ...knobs, [name]: left - 1 }
      return left > 0
    },
  }
}
