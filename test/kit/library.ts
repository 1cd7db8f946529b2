// Menshen as a library in a server of the application's own, which knows nothing about our options.

import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { createMenshen, readSettings } from '../../src/index.ts'
import { freePort } from './free-port.ts'
import type { Environment } from './instance.ts'
import { listen } from './listen.ts'
import { createTestLog } from './test-log.ts'

/** It serves pages and sockets until the test ends. Sessions are kept in memory unless `env` says otherwise. */
export async function openLibrary(t: TestContext, env: Environment) {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const settings = readSettings({ STORE: 'memory:', PORT: String(port), BASE_URL: url, ...env })
  const menshen = await createMenshen({ settings, log: createTestLog().log })
  const server = createServer(menshen.listener).on('upgrade', menshen.upgradeListener)
  await listen(t, server, port)
  t.after(() => menshen.close())
  return { url, server }
}
