// The applications behind: chosen by the path alone, each with its own pool of connections.
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import { readablePath } from '../../access/canonical-path.ts'
import { isWithin } from '../../access/rules.ts'
import type { Config, UpstreamConfig } from '../../settings/config-file.ts'
import type { Settings } from '../../settings/read.ts'
import { authorityOf } from './own-location.ts'

export interface Upstream {
  readonly prefix: string
  readonly pool: Dispatcher
  /** What the application calls itself. */
  readonly host: string
  /** Whom its assertions are for. */
  readonly audience: string
  /** The name that its certificate has to show, whatever Host it is sent. */
  readonly servername: string
  /** For connections that are not requests: where and how to connect. */
  readonly connection: { readonly origin: string; readonly socketPath?: string; readonly ca?: string }
}

export interface Upstreams {
  /** `undefined` if none is configured for the path. */
  for(path: string): Upstream | undefined
  /** The hosts and ports of all of them. */
  readonly authorities: ReadonlySet<string>
  close(): Promise<void>
}

export function openUpstreams(settings: Settings, config: Config): Upstreams {
  const ca = settings.UPSTREAM_CA_FILE && readFileSync(settings.UPSTREAM_CA_FILE, 'utf8')
  const { UPSTREAM: url, ASSERTION_AUDIENCE: audience } = settings
  const places = { ...(url && { '/': { url, audience } }), ...config.upstreams }
  const upstreams = Object.entries(places)
    .map(([prefix, place]) => openUpstream(prefix, place, settings, ca))
    .sort((one, other) => other.prefix.length - one.prefix.length)
  return {
    for(path) {
      const readable = readablePath(path)
      return upstreams.find(({ prefix }) => isWithin(prefix, readable))
    },
    authorities: new Set(upstreams.map(({ connection }) => authorityOf(new URL(connection.origin)))),
    close: async () => {
      await Promise.all(upstreams.map(({ pool }) => pool.close()))
    },
  }
}

function openUpstream(
  prefix: string,
  place: string | UpstreamConfig,
  settings: Settings,
  ca: string | undefined,
): Upstream {
  const { url, audience = url } = typeof place === 'string' ? { url: place } : place
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined
  const origin = socketPath ? 'http://localhost' : url
  const { host, hostname } = new URL(origin)
  const servername = hostname.replace(/^\[|\]$/g, '')
  const connect = buildConnector({
    timeout: settings.UPSTREAM_CONNECT_TIMEOUT_MS,
    allowH2: false,
    ...(socketPath && { socketPath }),
    ...(ca && { ca }),
  })
  const pool = new Pool(origin, {
    connections: settings.UPSTREAM_CONNECTIONS,
    headersTimeout: settings.UPSTREAM_HEADERS_TIMEOUT_MS,
    bodyTimeout: settings.UPSTREAM_IDLE_TIMEOUT_MS,
    // TLS wants a name to be no address; without one the address itself is checked.
    connect: (options, callback) => connect(isIP(servername) ? { ...options, servername: '' } : options, callback),
  })
  const connection = { origin, ...(socketPath && { socketPath }), ...(ca && { ca }) }
  return { prefix, pool, host, audience, servername, connection }
}
