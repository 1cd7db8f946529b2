// Headers whose value is a list, separated by commas.

export function splitList(header: string | string[] | undefined): string[] {
  return String(header ?? '')
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
}

/** The headers that `Connection` names: they are for this connection only (RFC 9110, 7.6.1). In lower case; `undefined` without any. */
export function connectionHeaders(connection: string | undefined): string[] | undefined {
  if (connection === undefined || /^(keep-alive|close)$/i.test(connection)) return undefined
  return splitList(connection).map(name => name.toLowerCase())
}
