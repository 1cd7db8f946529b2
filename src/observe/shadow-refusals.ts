// What shadow rules would have refused: how often each, and the latest refusals, since this process started.
import type { Rule } from '../config/file.ts'
import type { Observer } from './observed-request.ts'

export interface ShadowRefusal {
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly method: string
  readonly path: string
  /** Empty for a visitor. */
  readonly user: string
  readonly role: string
  readonly requestId: string
}

export interface RuleRefusals {
  readonly count: number
  /** The newest first. */
  readonly latest: readonly ShadowRefusal[]
}

export interface ShadowRefusals {
  readonly observer: Observer
  of(rule: Rule): RuleRefusals
}

const MAX_LATEST = 20
const MAX_TEXT_LENGTH = 200
const NONE: RuleRefusals = { count: 0, latest: [] }

export function createShadowRefusals(now: () => number): ShadowRefusals {
  const byRule = new WeakMap<object, RuleRefusals>()
  return {
    observer: {
      onEvent(code, { rule, ...fields }) {
        if (code !== 'shadow_refused' || typeof rule !== 'object' || rule === null) return
        const { count, latest } = byRule.get(rule) ?? NONE
        byRule.set(rule, { count: count + 1, latest: [refusal(fields, now()), ...latest.slice(0, MAX_LATEST - 1)] })
      },
    },
    of: rule => byRule.get(rule) ?? NONE,
  }
}

function refusal(fields: Readonly<Record<string, unknown>>, time: number): ShadowRefusal {
  const text = (name: string) => String(fields[name] ?? '').slice(0, MAX_TEXT_LENGTH)
  const [method, path, user, role, requestId] = [
    text('method'),
    text('path'),
    text('user'),
    text('role'),
    text('requestId'),
  ]
  return { time, method, path, user, role, requestId }
}
