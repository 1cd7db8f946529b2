// Loaded into every process of a test file: shows the watchdog (watchdog.ts) that its main thread still runs. This file is
// JavaScript: for TypeScript, Node would load its compiler in every process.
import { appendFileSync, existsSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Where the watchdog asks for the stack: above the ports of the tests (free-port.ts), below those of the system. Test files of a
 * run start soon after each other, so that their processes have different ones.
 */
const FIRST_PORT = 30_000
const PORTS = 2768
/** One line per test file, for slowest-files.ts. */
const PROCESSOR_TIMES = 'processor-times'
/** What the kernel counts in, on every machine that runs Node. */
const TICKS_PER_SECOND = 100

const { TEST_HEARTBEATS: folder } = process.env
/** The runner may have been given a link to it. */
const file = process.argv[1] && existsSync(process.argv[1]) ? realpathSync(process.argv[1]) : undefined
let heartbeat = ''
let content = ''

// What a test file starts inherits the variable, and is not watched.
const runner = folder && join(folder, 'runner')
if (runner && file && existsSync(runner) && readFileSync(runner, 'utf8') === String(process.ppid)) {
  process.debugPort = FIRST_PORT + (process.pid % PORTS)
  heartbeat = join(folder, String(process.pid))
  beginFile(file)
  setInterval(beat, 2000).unref()
  process.on('exit', () => {
    recordProcessorTime(file, processorSeconds())
    rmSync(heartbeat, { force: true })
  })
}

/**
 * In a shared process: which of its files runs from now on. Its time begins now.
 * @param {string} name
 */
export function beginFile(name) {
  if (!heartbeat) return
  content = JSON.stringify({ file: name, port: process.debugPort, startedAt: Date.now() })
  beat()
}

function beat() {
  writeFileSync(heartbeat, content)
}

/** With the processes that it started and that have ended, where the system counts them. */
function processorSeconds() {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1_000_000
  if (process.platform !== 'linux') return own
  const status = readFileSync('/proc/self/stat', 'utf8')
  // After the name, which may have spaces: state is the first field, and the times of children are the 14th and 15th.
  const fields = status.slice(status.lastIndexOf(')') + 2).split(' ')
  return own + (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND
}

/**
 * @param {string} file
 * @param {number} seconds
 */
export function recordProcessorTime(file, seconds) {
  if (folder) appendFileSync(join(folder, PROCESSOR_TIMES), `${JSON.stringify({ file, seconds })}\n`)
}
