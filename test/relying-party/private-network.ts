// A private network and an open one on a single machine: names are resolved as a test says, and 127.0.0.2 stands for the open
// network, while everything else is private.
import dns from 'node:dns'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { BlockList } from 'node:net'
import type { TestContext } from 'node:test'
import { requireLinux } from '../kit/requirements.ts'

export const OPEN = '127.0.0.2'
export const PRIVATE = '127.0.0.1'
export const AT_OPEN = { host: OPEN, name: 'idp.test' }

type Callback = (error: Error | null, address: unknown, family?: number) => void

/** Makes these names lead where they say, from now on and whenever the test changes them. */
export function names(t: TestContext, leads: Record<string, string>) {
  requireLinux(OPEN)
  const real = dns.lookup
  const found = (name: string) => ({ address: leads[name] ?? '', family: 4 })
  t.mock.method(dns, 'lookup', (name: string, options: { all?: boolean }, callback: Callback) => {
    if (!(name in leads)) return real(name, options, callback as never)
    const { address, family } = found(name)
    process.nextTick(() => (options.all ? callback(null, [{ address, family }]) : callback(null, address, family)))
  })
  t.mock.method(dns.promises, 'lookup', (name: string) =>
    // What the test does not know is not answered at all.
    name in leads ? Promise.resolve([found(name)]) : new Promise(() => {}),
  )
  t.mock.method(BlockList.prototype, 'check', (address: string) => address !== OPEN)
  return leads
}

/** What waits in the private network at the provider's port; it counts who comes. */
export async function inside(t: TestContext, port: number) {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    response.end('{}')
  }).listen(port, PRIVATE)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return seen
}
