// Lists of headers, and headers whose value is a list, separated by commas.

/** Alternating names and values. A list of values is sent as several headers. */
export type HeaderList = (string | string[])[]

export function splitList(header: string | string[] | undefined): string[] {
  return String(header ?? '')
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
}

/** More than the names of all headers that exist. */
const MAX_CONNECTION_LENGTH = 1024

/**
 * The headers that `Connection` names: they are for this connection only (RFC 9110, 7.6.1). In lower case; `undefined` if there are none.
 * A set: a request may have as many headers as names.
 */
export function connectionHeaders(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || /^(keep-alive|close)$/i.test(connection)) return undefined
  return new Set(splitList(startOfList(connection, MAX_CONNECTION_LENGTH).toLowerCase()))
}

/** The beginning of a list that is longer than any client needs, without the element that would be cut. */
export function startOfList(header: string, maxLength: number): string {
  return header.length <= maxLength ? header : header.slice(0, Math.max(0, header.lastIndexOf(',', maxLength)))
}
