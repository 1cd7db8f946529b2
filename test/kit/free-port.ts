import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the ports that the system hands out by itself (32768 and up): nobody's outgoing connection takes one of ours between here and its use.
const FIRST = 10_000
/** Up to 29,999: in a text, 30001 would be the port 3000 of the examples. */
const COUNT = 20_000
/** Every process has a stretch of its own, so that two test files side by side never pick the same port. */
const STRETCH = 40

let next = (process.pid * STRETCH) % COUNT

/** A port that nobody listens on, and that no other test picks. */
export async function freePort(): Promise<number> {
  const port = FIRST + next
  next = (next + 1) % COUNT
  return (await isFree(port)) ? port : freePort()
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
