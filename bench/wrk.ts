// Load by wrk: as many requests as a server can answer, on connections that stay open.

import { fileURLToPath } from 'node:url'
import { runToEnd } from './processes.ts'

export interface Load {
  readonly url: string
  readonly cookie?: string
  /** What varies the requests or looks at the answers, with its arguments. */
  readonly lua?: readonly [path: string, ...args: string[]]
}

const CONNECTIONS = 32
/** Longer than any round: an answer that comes late counts as late, not as lost. */
const TIMEOUT = '60s'

/** Requests per second. Throws if a single one went wrong. */
export async function measure({ url, cookie, lua }: Load, seconds: number): Promise<number> {
  const printed = await runToEnd([
    'wrk',
    ...['-t', '1', '-c', String(CONNECTIONS), '-d', `${seconds}s`, '--timeout', TIMEOUT],
    ...(cookie ? ['-H', `Cookie: ${cookie}`] : []),
    ...(lua ? ['-s', fileURLToPath(new URL(lua[0], import.meta.url))] : []),
    url,
    ...(lua ? ['--', ...lua.slice(1)] : []),
  ])
  const [wrong] = /Socket errors.*|Non-2xx.*|Wrong answers.*/.exec(printed) ?? []
  if (wrong) throw new Error(`${url}: ${wrong}`)
  return Number(/Requests\/sec:\s*([\d.]+)/.exec(printed)?.[1])
}
