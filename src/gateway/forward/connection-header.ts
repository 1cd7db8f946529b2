// The header Connection: it names other headers that are meant for this connection only (RFC 9110, 7.6.1).
import { splitList } from '../http/list-header.ts'

/** In lower case; `undefined` if it names none. */
export function namedBy(connection: string | undefined): string[] | undefined {
  if (connection === undefined || /^(keep-alive|close)$/i.test(connection)) return undefined
  return splitList(connection).map(name => name.toLowerCase())
}
