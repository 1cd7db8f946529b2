// Finds the value of the longest prefix of a path. However many prefixes there are, it looks only at as many slashes of the path as
// the longest prefix has segments.

/** A prefix ends where a segment does; `/` covers everything. */
export function createLongestPrefix<Value>(byPrefix: ReadonlyMap<string, Value>): (path: string) => Value | undefined {
  const longest = Math.max(0, ...Array.from(byPrefix.keys(), prefix => prefix.length))
  return path => {
    let end = path.length <= longest ? path.length : path.lastIndexOf('/', longest)
    for (; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const value = byPrefix.get(path.slice(0, end))
      if (value !== undefined) return value
    }
    return byPrefix.get('/')
  }
}
