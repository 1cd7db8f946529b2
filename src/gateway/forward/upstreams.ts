// The applications behind: chosen by the path alone, each with its own capacity and connections.
import { readFileSync } from 'node:fs'
import { readablePath } from '../../access/canonical-path.ts'
import { isWithin } from '../../access/rules.ts'
import type { Config, UpstreamConfig } from '../../settings/config/config-file.ts'
import type { Settings } from '../../settings/read.ts'
import { type Capacity, createCapacity } from './capacity/capacity.ts'
import { type Connections, createConnections, type Destination } from './connections.ts'
import { authorityOf } from './own-location.ts'

export interface Upstream {
  readonly prefix: string
  readonly capacity: Capacity
  readonly connections: Connections
  /** What the application calls itself. */
  readonly host: string
  /** Whom its assertions are for. */
  readonly audience: string
  /** The name that its certificate has to show, whatever Host it is sent. */
  readonly servername: string
  readonly destination: Destination
}

export interface Upstreams {
  /** `undefined` if none is configured for the path. */
  for(path: string): Upstream | undefined
  /** The hosts and ports of all of them. */
  readonly authorities: ReadonlySet<string>
  /** How many requests wait for one of them. */
  readonly waiting: number
  /** How many sockets and event streams are open. */
  readonly streams: number
  /** Whether requests to one of them find it busy for too long. */
  readonly isTurningAway: boolean
  /** Sockets and event streams: they would never end by themselves, and open anew elsewhere. */
  endStreams(): void
  /** Everything else has this long to end by itself. */
  close(patienceMs: number): Promise<void>
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
    authorities: new Set(upstreams.map(({ destination }) => authorityOf(new URL(destination.origin)))),
    get waiting() {
      return upstreams.reduce((sum, { capacity }) => sum + capacity.waiting, 0)
    },
    get streams() {
      return upstreams.reduce((sum, { capacity }) => sum + capacity.streams, 0)
    },
    get isTurningAway() {
      return upstreams.some(({ capacity }) => capacity.isTurningAway)
    },
    endStreams() {
      for (const { capacity } of upstreams) capacity.endStreams()
    },
    async close(patienceMs) {
      await Promise.all(
        upstreams.map(async ({ capacity, connections }) => {
          await capacity.close(patienceMs)
          await connections.close()
        }),
      )
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
  const destination = { origin, ...(socketPath && { socketPath }), ...(ca && { ca }) }
  const capacity = createCapacity({
    slots: settings.UPSTREAM_CONNECTIONS,
    streams: settings.UPSTREAM_STREAMS,
    queue: settings.UPSTREAM_QUEUE,
    queueMs: settings.UPSTREAM_QUEUE_TIMEOUT_MS,
  })
  const connections = createConnections(destination, servername, settings)
  return { prefix, capacity, connections, host, audience, servername, destination }
}
