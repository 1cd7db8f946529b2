// Loaded into every process of a test file: shows the watchdog (watchdog.ts) that its main thread still runs. This file is
// JavaScript, like keep-compiled.js.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the watchdog asks for the stack: a port of this process alone, as long as no more than 40,000 run. */
const FIRST_PORT = 20_000
const PORTS = 40_000

const { TEST_HEARTBEATS: folder } = process.env
const file = process.argv[1]

// What a test file starts inherits the variable, and is not watched.
const runner = folder && join(folder, 'runner')
if (runner && file && existsSync(runner) && readFileSync(runner, 'utf8') === String(process.ppid)) {
  process.debugPort = FIRST_PORT + (process.pid % PORTS)
  const heartbeat = join(folder, String(process.pid))
  const content = JSON.stringify({ file, port: process.debugPort, startedAt: Date.now() })
  const beat = () => writeFileSync(heartbeat, content)
  beat()
  setInterval(beat, 2000).unref()
  process.on('exit', () => rmSync(heartbeat, { force: true }))
}
