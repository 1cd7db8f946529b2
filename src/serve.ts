// An http server that ends politely: it stops accepting, finishes what is in flight, and gives up on what takes too long.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { isWebSocket } from './gateway/forward/upgrade.ts'
import type { Menshen } from './index.ts'

export interface Serving {
  close(patienceMs: number): Promise<void>
}

const IDLE_CHECK_MS = 50

/** Rejects with the error of `listen`, for example EADDRINUSE. */
export async function serve({ listener, upgradeListener }: Menshen, port: number, host: string): Promise<Serving> {
  const server = createServer({ shouldUpgradeCallback: isWebSocket }, listener)
  server.on('checkContinue', listener)
  server.on('upgrade', upgradeListener)
  server.listen(port, host)
  await once(server, 'listening')
  return {
    async close(patienceMs) {
      const closed = once(server, 'close')
      server.close()
      // A connection that was busy a moment ago may wait for a next request that must not come here any more.
      const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
      const patience = setTimeout(() => server.closeAllConnections(), patienceMs)
      await closed
      clearInterval(idle)
      clearTimeout(patience)
    },
  }
}
