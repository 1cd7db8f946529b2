// What the longest of many prefixes says about a path. However many prefixes there are, only as many slashes of the path are
// looked at as the longest prefix has segments.

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
