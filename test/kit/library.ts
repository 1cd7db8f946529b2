// Menshen as a library in an application: in the test's own process, or in a process of its own.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createMenshen, readSettings } from '../../src/index.ts'
import { createClient } from './client.ts'
import { freePort } from './free-port.ts'
import { type Environment, isReady } from './instance.ts'
import { listen } from './listen.ts'
import { tempFolder } from './temp.ts'
import { createTestLog } from './test-log.ts'
import { until } from './until.ts'

/** In a server that knows nothing about our options. It serves pages and sockets until the test ends. Sessions are kept in memory unless `env` says otherwise. */
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

const DOOR = new URL('../../src/index.ts', import.meta.url).href
const WS = import.meta.resolve('ws')

/** Runs an example that listens on port 3000, on a free port and with our sources. Resolves when it is ready; it ends with the test. */
export async function runProgram(t: TestContext, text: string) {
  const port = await freePort()
  const folder = tempFolder(t)
  const file = join(folder, 'application.mts')
  const own = text.replaceAll('3000', String(port)).replace("'menshen'", `'${DOOR}'`).replace("'ws'", `'${WS}'`)
  writeFileSync(file, own)
  const child = spawn(process.execPath, [file], { cwd: folder, stdio: 'inherit' })
  t.after(async () => {
    child.kill()
    if (!hasEnded(child)) await once(child, 'exit')
  })
  const url = `http://localhost:${port}`
  // A machine that is busy with other tests may take this long to load everything.
  await until(() => isReady(url), 60_000)
  return { port, child, visitor: createClient(url) }
}

export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
