import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

// Below the ports that the system hands out by itself (32768 and up): no outgoing connection takes one of ours between here and its use.
const FIRST = 10_000
/** Up to 29,999: in a text, 30001 would be the port 3000 of the examples. */
const COUNT = 20_000
/** Every process begins elsewhere, so that few ports are tried that others have. */
const STRETCH = 40
/** Of this run; the runner removes it. */
const { TEST_HEARTBEATS: folder } = process.env

let next = (process.pid * STRETCH) % COUNT

/** A port on which nothing listens, and that no other test of this run picks. */
export async function freePort(): Promise<number> {
  const port = FIRST + next
  next = (next + 1) % COUNT
  return claim(port) && (await isFree(port)) ? port : freePort()
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
