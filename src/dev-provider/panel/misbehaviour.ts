// The ways in which this provider can be told to misbehave, as data, and what it has been told.

/** From this value on a count does not run down. */
export const ALWAYS = 999

interface KnobRow {
  readonly name: string
  readonly label: string
  readonly hint: string
  readonly unit: string
  readonly usual: number
  readonly min: number
  readonly max: number
  readonly presets: readonly number[]
}

const COUNT = { unit: '次', usual: 0, min: 0, max: ALWAYS, presets: [0, 1, 3, ALWAYS] } as const

export const KNOBS = [
  {
    name: 'accessTokenSeconds',
    label: '访问令牌有效期',
    hint: '对之后签发的令牌生效。310 秒的令牌很快就会进入刷新窗口。',
    unit: '秒',
    usual: 7200,
    min: 1,
    max: 86_400,
    presets: [7200, 310, 60],
  },
  {
    name: 'delayMs',
    label: '响应延迟',
    hint: '令牌、用户信息和后台退出接口立即处理请求，但推迟答复。',
    unit: '毫秒',
    usual: 0,
    min: 0,
    max: 60_000,
    presets: [0, 1000, 6000],
  },
  { name: 'refuseRefreshes', label: '拒绝刷新', hint: '接下来的刷新请求返回 invalid_grant。', ...COUNT },
  { name: 'failTokenCalls', label: '令牌接口故障', hint: '接下来的令牌请求返回 HTTP 500。', ...COUNT },
  { name: 'failUserInfoCalls', label: '用户信息接口故障', hint: '接下来的用户信息请求返回 HTTP 500。', ...COUNT },
  {
    name: 'denyUserInfoCalls',
    label: '用户信息返回失败',
    hint: '接下来的用户信息请求返回 HTTP 200，但 success 为 false。',
    ...COUNT,
  },
] as const satisfies readonly KnobRow[]

type KnobName = (typeof KNOBS)[number]['name']
export type Knobs = Readonly<Record<KnobName, number>>
type CountName = Exclude<KnobName, 'accessTokenSeconds' | 'delayMs'>

export const USUAL = Object.fromEntries(KNOBS.map(knob => [knob.name, knob.usual])) as Knobs

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

export type Misbehaviour = ReturnType<typeof createMisbehaviour>

export function createMisbehaviour() {
  let knobs = USUAL

  return {
    current: () => knobs,
    change(change: Partial<Knobs>) {
      knobs = { ...knobs, ...change }
    },
    reset() {
      knobs = USUAL
    },
    /** Whether this call is one that shall go wrong. Asking uses it up. */
    strikes(name: CountName): boolean {
      const left = knobs[name]
      if (left > 0 && left < ALWAYS) knobs = { ...knobs, [name]: left - 1 }
      return left > 0
    },
  }
}
