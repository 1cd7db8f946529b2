// What the gateway asked a real provider, from server to server: the browser's visits are not among it.
import type { IncomingMessage } from 'node:http'

export interface CallLog {
  note(request: IncomingMessage): void
  /** Method and path of each since the last time, in order. */
  take(): string[]
}

export function createCallLog(): CallLog {
  const calls: string[] = []
  return {
    note({ method, url = '', headers }) {
      if (headers['user-agent'] === 'menshen') calls.push(`${method} ${url.replace(/\?.*/, '')}`)
    },
    take: () => calls.splice(0),
  }
}
