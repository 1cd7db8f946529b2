// GET /_menshen/check: whether a request is signed in, for a proxy that asks about each one. It passes through no
// framework, and builds nothing that it already has.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Opened } from '../session/opened.ts'
import { type Admission, admit } from './admission.ts'
import { safetyHeaders } from './answers.ts'
import type { House } from './house.ts'
import { identityHeaders } from './identity.ts'
import type { Visit } from './request.ts'

export const CHECK_PATH = '/_menshen/check'

const STATUS = { admitted: 200, refused: 403, visitor: 401 } as const

export type Check = (visit: Visit, response: ServerResponse) => Promise<void>

export function createCheck(house: House): Check {
  const nobody: OutgoingHttpHeaders = { ...safetyHeaders(house), 'content-length': 0 }
  const made = new WeakMap<Opened, OutgoingHttpHeaders>()

  function headersFor(opened: Opened): OutgoingHttpHeaders {
    const known = made.get(opened)
    if (known) return known
    const headers = { ...nobody, ...identityHeaders(opened) }
    made.set(opened, headers)
    return headers
  }

  function headersOf(admission: Admission): OutgoingHttpHeaders {
    const headers = admission.outcome === 'visitor' ? nobody : headersFor(admission.opened)
    return admission.cookies.length > 0 ? { ...headers, 'set-cookie': [...admission.cookies] } : headers
  }

  return async (visit, response) => {
    const admission = await admit(house, visit)
    response.writeHead(STATUS[admission.outcome], headersOf(admission)).end()
  }
}
