// Puts what is said of a provider in several places together, and fills the holes that a preset leaves open.
import type { ProviderConfig } from '../../settings/config/provider-config.ts'

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
