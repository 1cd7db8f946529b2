// Caddy as a plain reverse proxy, without authentication.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/kit/free-port.ts'
import { findProgram } from '../../test/kit/packages.ts'
import type { Cores } from './cores.ts'
import { folder, type Served, served, startUntil } from './processes.ts'

/** `undefined` if it is not installed. It runs on as many threads as the other servers have. */
export async function startCaddy(upstream: Served, cores: Cores): Promise<Served | undefined> {
  if (!findProgram('caddy')) return undefined
  const port = await freePort()
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, caddyfile(port, new URL(upstream.url).host))
  const command = ['caddy', 'run', '--config', file, '--adapter', 'caddyfile']
  const env = { GOMAXPROCS: '1', HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  return served(port, await startUntil('serving initial configuration', command, { on: cores.server, env }))
}

function caddyfile(port: number, upstream: string): string {
  return `{
	admin off
	auto_https off
	log {
		output stdout
	}
}
http://:${port} {
	bind 127.0.0.1
	reverse_proxy ${upstream}
}
`
}
