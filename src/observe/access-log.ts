// Writes one line for each request when it has ended.
import type { Report } from '../events.ts'
import { withoutKeys } from '../util/key-form.ts'
import { type Observer, observedFields, type RequestConnection } from './observed-request.ts'

export function createAccessLog(write: Report): Observer {
  /** How many of the bytes that a connection has sent were already logged with its earlier requests. */
  const counted = new WeakMap<RequestConnection, number>()

  function bytesOf(connection: RequestConnection): number {
    const before = counted.get(connection) ?? 0
    counted.set(connection, connection.bytesWritten)
    return connection.bytesWritten - before
  }

  return {
    onRequest(request, status, ms, connection) {
      const { method, path, user, upstream } = request
      write('request', {
        ...observedFields(request),
        method,
        path: withoutKeys(path),
        ...(status === 0 ? {} : { status }),
        ...(connection ? { bytes: bytesOf(connection) } : {}),
        ms: Math.round(ms * 10) / 10,
        ...(user === undefined ? {} : { user }),
        ...(upstream === undefined ? {} : { upstream }),
      })
    },
  }
}
