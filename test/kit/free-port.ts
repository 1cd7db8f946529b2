import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

// Below the ports that the system hands out by itself (32768 and up): no outgoing connection takes one of ours between here and its use.
const FIRST = 10_000
/** Up to 29,999: in a text, 30001 would be the port 3000 of the examples. */
const COUNT = 20_000
/** Runs of all tests at the same time on one machine, each with ports of its own. Whoever listens on such a port has its part. */
const RUNS = 3
const FIRST_LOCK = FIRST - RUNS
const PER_RUN = Math.floor(COUNT / RUNS)
/** Every process begins elsewhere, so that few ports are tried that others have. */
const STRETCH = 40
/** Both are of this run. The runner removes the folder. */
const { TEST_HEARTBEATS: folder, TEST_PORTS_FROM } = process.env

const [first, count] = TEST_PORTS_FROM ? [Number(TEST_PORTS_FROM), PER_RUN] : [FIRST, COUNT]
let next = (process.pid * STRETCH) % count

/** A port on which nothing listens, and that no other test of this run picks. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < count; tried++) {
    const port = first + next
    next = (next + 1) % count
    if (claim(port) && (await isFree(port))) return port
  }
  throw new Error(`All ports from ${first} to ${first + count - 1} are in use, or have been.`)
}

/** The variables that give the ports of one part to a run, until `close`; none if all parts are taken. */
export async function reservePorts(firstLock = FIRST_LOCK) {
  for (let run = 0; run < RUNS; run++) {
    const lock = createServer().listen(firstLock + run, '127.0.0.1')
    try {
      await once(lock, 'listening')
      return { env: { TEST_PORTS_FROM: String(FIRST + run * PER_RUN) }, close: () => void lock.close() }
    } catch {
      // It is another run's.
    }
  }
  return { env: {}, close() {} }
}

function claim(port: number): boolean {
  if (!folder) return true
  try {
    writeFileSync(join(folder, `port-${port}`), '', { flag: 'wx' })
    return true
  } catch {
    return false
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port)
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
