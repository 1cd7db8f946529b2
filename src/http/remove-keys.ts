// Removes keys from a request before an embedding application handles it. The gateway leaves them out when it forwards a request.

import type { IncomingMessage } from 'node:http'
import { plainName } from '../util/header-names.ts'
import { containsKey, KEY_HEADER } from '../util/key-form.ts'
import { isRequest } from './form.ts'

/** As far as the headers of a request can be changed: those of some frameworks cannot. */
export function removeKeys(request: IncomingMessage | Request): void {
  if (isRequest(request)) removeFromWeb(request.headers)
  else removeFromMessage(request)
}

function removeFromWeb(headers: Headers): void {
  try {
    for (const [name, value] of [...headers]) if (isForUs(name, value)) headers.delete(name)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
  }
}

function removeFromMessage(request: IncomingMessage): void {
  const { headers, rawHeaders = [] } = request
  for (const name in headers) if (isForUs(name, headers[name])) delete headers[name]
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2)
    if (isForUs(rawHeaders[i] ?? '', rawHeaders[i + 1])) {
      // Node builds `headersDistinct` from the raw headers on first access, by their original number: so read it before removing one.
      removeFromDistinct(request.headersDistinct ?? {})
      rawHeaders.splice(i, 2)
    }
}

function removeFromDistinct(headers: IncomingMessage['headersDistinct']): void {
  for (const [name, values = []] of Object.entries(headers)) {
    const others = values.filter(value => !isForUs(name, value))
    if (others.length === 0) delete headers[name]
    else headers[name] = others
  }
}

const AUTHORIZATION = 'authorization'

function isForUs(name: string, value: unknown): boolean {
  // Nearly all names have another length. Converting each to its plain form took a tenth of a request in Express (`npm run bench -- library`).
  if (name.length !== KEY_HEADER.length && name.length !== AUTHORIZATION.length) return false
  const plain = plainName(name)
  return plain === KEY_HEADER || (plain === AUTHORIZATION && containsKey(String(value)))
}
