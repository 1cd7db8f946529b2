// Menshen inside the test's own process, with a clock that the test sets and a log that it can read.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type Config, createMenshen, readSettings } from '../../src/index.ts'
import { type Client, createClient } from './client.ts'
import { freePort } from './free-port.ts'
import type { Environment } from './process.ts'
import { createTestLog } from './test-log.ts'

export interface Wishes {
  config?: Config
  /** What its clock shows at first; today's time for those who deal with others that have a clock of their own. */
  now?: number
}

/** Sessions are kept in memory unless `env` says otherwise. */
export async function openMenshen(env: Environment, wishes: Wishes = {}) {
  const { config = {}, now = Date.parse('2026-03-01T08:00:00Z') } = wishes
  const port = Number(env.PORT ?? (await freePort()))
  const clock = { now }
  const { lines, log } = createTestLog()
  const settings = readSettings({ STORE: 'memory:', PORT: String(port), ...env })
  const menshen = await createMenshen({ settings, config, log, now: () => clock.now })
  const server = createServer(menshen.listener)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  // As BASE_URL names this machine, unless `env` says otherwise.
  const url = `http://localhost:${port}`

  return {
    url,
    lines,
    now: () => clock.now,
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
