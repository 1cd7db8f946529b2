// The applications, which are chosen by the path. Each has its own capacity and connections.

import { readFileSync } from 'node:fs'
import { decodedPath } from '../access/request-path.ts'
import type { Config, UpstreamConfig } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import { type Capacity, createCapacity } from './capacity.ts'
import { type Connections, createConnections, type Destination } from './connections.ts'
import { authorityOf } from './response-headers.ts'

export interface Upstream {
  readonly prefix: string
  /** Two upstreams with the same fingerprint are made from the same settings. */
  readonly fingerprint: string
  readonly capacity: Capacity
  readonly connections: Connections
  /** What the application calls itself. */
  readonly host: string
  /** The audience of its assertions. */
  readonly audience: string
  /** The name that its certificate has to show, whatever Host it is sent. */
  readonly servername: string
  readonly destination: Destination
}

/** The applications of a configuration. */
export interface Upstreams {
  readonly all: readonly Upstream[]
  /** `undefined` if none is configured for the path. */
  for(path: string): Upstream | undefined
  /** The hosts and ports of all of them. */
  readonly authorities: ReadonlySet<string>
}

/** Reuses one of `known` with the same fingerprint, with its connections and its queue. */
export function openUpstreams(settings: Settings, config: Config, known: readonly Upstream[] = []): Upstreams {
  const ca = settings.UPSTREAM_CA_FILE && readFileSync(settings.UPSTREAM_CA_FILE, 'utf8')
  const { UPSTREAM: url, ASSERTION_AUDIENCE: audience } = settings
  const options = { ...(url && { '/': { url, audience } }), ...config.upstreams }
  const all = Object.entries(options)
    .map(([prefix, option]) => {
      const fingerprint = fingerprintOf(prefix, option, settings, ca)
      return known.find(upstream => upstream.fingerprint === fingerprint) ?? openUpstream(prefix, option, settings, ca)
    })
    .sort((one, other) => other.prefix.length - one.prefix.length)
  const upstreamOf = createLongestPrefix(new Map(all.map(upstream => [upstream.prefix, upstream])))
  return {
    all,
    for: path => upstreamOf(decodedPath(path)),
    authorities: new Set(all.map(({ destination }) => authorityOf(new URL(destination.origin)))),
  }
}

type UpstreamOption = string | UpstreamConfig

/** Everything that an upstream is made from. */
function fingerprintOf(prefix: string, option: UpstreamOption, settings: Settings, ca: string | undefined): string {
  const limits = Object.entries(settings).filter(([name]) => name.startsWith('UPSTREAM_'))
  return JSON.stringify([prefix, option, limits, ca])
}

function openUpstream(prefix: string, option: UpstreamOption, settings: Settings, ca: string | undefined): Upstream {
  const fingerprint = fingerprintOf(prefix, option, settings, ca)
  const { url, audience = url } = typeof option === 'string' ? { url: option } : option
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
  return { prefix, fingerprint, capacity, connections, host, audience, servername, destination }
}

// Finds the longest of many prefixes of a path, with at most as many lookups as the longest prefix has segments.

/** A prefix ends where a segment does; `/` covers everything. */
export function createLongestPrefix<Value>(byPrefix: ReadonlyMap<string, Value>): (path: string) => Value | undefined {
  const longest = Math.max(0, ...Array.from(byPrefix.keys(), prefix => prefix.length))
  return path => {
    let end = path.length <= longest ? path.length : path.lastIndexOf('/', longest)
    for (; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const value = byPrefix.get(path.slice(0, end))
      if (value !== undefined) return value
    }
    return byPrefix.get('/')
  }
}
