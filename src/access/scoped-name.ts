// With several providers, a name alone does not identify a user: `lisi` of the partners must not pass for `lisi` of the staff, at a
// rule or at an application. The main provider's names stay unchanged; all others are prefixed with their provider's id.

/** A user's name, sub or group as known beyond its provider. Without an id there is only one provider. */
export type ScopedName = (provider: string | undefined, name: string) => string

/** `ids` are those of all providers, the main one first. */
export function createScopedName(ids: readonly string[]): ScopedName {
  const [main] = ids
  const prefixes = ids.map(id => `${id}:`)
  return (provider, name) => {
    if (provider === undefined || ids.length < 2) return name
    // A user of the main provider may have a name that looks prefixed, such as `github:ann`.
    const isUnprefixed = provider === main && !prefixes.some(prefix => name.startsWith(prefix))
    return isUnprefixed ? name : `${provider}:${name}`
  }
}
