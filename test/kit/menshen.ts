// Menshen inside the test's own process, with a clock that the test sets and a log that it can read.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createMenshen, readSettings } from '../../src/index.ts'
import { type Client, createClient } from './client.ts'
import { freePort } from './free-port.ts'
import type { Environment } from './process.ts'
import { createTestLog } from './test-log.ts'

/** Sessions are kept in memory unless `env` says otherwise. */
export async function openMenshen(env: Environment) {
  const port = await freePort()
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const { lines, log } = createTestLog()
  const settings = readSettings({ STORE: 'memory:', PORT: String(port), ...env })
  const menshen = await createMenshen({ settings, log, now: () => clock.now })
  const server = createServer(menshen.listener)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  // As BASE_URL names this machine, unless `env` says otherwise.
  const url = `http://localhost:${port}`

  return {
    url,
    lines,
    /** A new browser, so to speak: its cookies expire by the same clock. */
    visitor: (): Client => createClient(url, () => clock.now),
    passSeconds(seconds: number): void {
      clock.now += seconds * 1000
    },
    async close(): Promise<void> {
      server.close()
      server.closeAllConnections()
      await menshen.close()
    },
  }
}
