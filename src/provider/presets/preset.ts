// What a preset is: a provider's configuration as data, and what it leaves to the operator.

import type { ProviderConfig } from '../../config/provider-config.ts'

/** `company_token`: the code is spent at user info, with a token of the company that is kept for a while (WeCom). */
export type ProviderKind = 'oauth2' | 'oidc' | 'company_token'

export interface Preset extends ProviderConfig {
  readonly kind: ProviderKind
  /** Values of `{tenant}` by which anybody's directory counts: nobody is known to have verified what stands in it. */
  readonly openTenants?: readonly string[]
  /** The holes in its addresses, such as `{realm}`; `{auth_url}` is AUTH_URL. */
  readonly variables?: Readonly<Record<string, Variable>>
}

export interface Variable {
  readonly sentence: string
  readonly default?: string
  /**
   * In place of a default that is a whole address, where `auth_url` is not the preset's: tokens of an installation of one's own
   * never go to the public service. Without it, the variable has to be said then.
   */
  readonly elsewhere?: string
}

// Puts what is said of a provider in several places together, and fills the holes that a preset leaves open.

/** Nested keys merge; everything else of the second takes the place of the first's. */
export function mergeConfig(first: ProviderConfig, second: ProviderConfig): ProviderConfig {
  return merge(first, second) as ProviderConfig
}

function merge(first: object, second: object): object {
  const merged: Record<string, unknown> = { ...first }
  for (const [key, value] of Object.entries(dropUndefined(second))) {
    const before = merged[key]
    merged[key] = key !== EITHER_OR && isPlain(before) && isPlain(value) ? merge(before, value) : value
  }
  return merged
}

/** The user info token goes into a header or into the query: one of them takes the place of the other. */
const EITHER_OR = 'token'

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function dropUndefined<T extends object>(given: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> }
}

/** Puts the values in place of `{names}`; those that have none are added to `open`. */
export function fillIn(text: string, vars: Readonly<Record<string, string | undefined>>, open: Set<string>): string {
  return text.replace(/\{(\w+)\}/g, (hole, name: string) => {
    const value = Object.hasOwn(vars, name) ? vars[name] : undefined
    if (value === undefined) open.add(name)
    return value ?? hole
  })
}
