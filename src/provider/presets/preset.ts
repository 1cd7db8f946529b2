// A preset: the configuration of a provider as data, with variables for the operator.

import type { ProviderConfig } from '../../config/provider.ts'

/** `company_token`: the code is spent at user info, with a cached token of the company (WeCom). */
export type ProviderKind = 'oauth2' | 'oidc' | 'company_token'

export interface Preset extends ProviderConfig {
  readonly kind: ProviderKind
  /** The name in Chinese, where it differs from `name`. */
  readonly nameZh?: string
  /** Values of `{tenant}` that accept users of any directory, whose e-mail addresses may be unverified. */
  readonly openTenants?: readonly string[]
  /** Anyone can have an account at the default addresses. */
  readonly isPublic?: true
  /** The variables in its addresses, such as `{realm}`; `{auth_url}` is AUTH_URL, `{user_info_url}` the user info address. */
  readonly variables?: Readonly<Record<string, Variable>>
}

export interface Variable {
  readonly description: string
  readonly default?: string
  /**
   * Replaces a default that is a whole address if `auth_url` is not the preset's, so that the tokens of a private installation
   * never go to the public service. If it is absent, the variable is required in that case.
   */
  readonly elsewhere?: string
}

// Merges configurations, and fills in variables.

/** Nested keys merge; every other key of the second replaces that of the first. */
export function mergeConfig<First extends ProviderConfig>(first: First, second: ProviderConfig): First {
  return merge(first, second) as First
}

function merge(first: object, second: object): object {
  const merged: Record<string, unknown> = { ...first }
  for (const [key, value] of Object.entries(second)) {
    if (value === undefined) continue
    const before = merged[key]
    merged[key] = key !== EXCLUSIVE_KEY && isPlain(before) && isPlain(value) ? merge(before, value) : value
  }
  return merged
}

/** The user info token goes into a header or into the query: one replaces the other. */
const EXCLUSIVE_KEY = 'token'

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function dropUndefined<T extends object>(given: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> }
}

/** Replaces each `{name}` by its value; names without a value are added to `open`. */
export function fillIn(text: string, vars: Readonly<Record<string, string | undefined>>, open: Set<string>): string {
  return text.replace(/\{(\w+)\}/g, (variable, name: string) => {
    const value = Object.hasOwn(vars, name) ? vars[name] : undefined
    if (value === undefined) open.add(name)
    return value ?? variable
  })
}
