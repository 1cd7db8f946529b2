// The applications behind: chosen by the path alone, each with its own capacity and connections.

import { readFileSync } from 'node:fs'
import { decodedPath } from '../access/request-path.ts'
import type { Config, UpstreamConfig } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import { type Capacity, createCapacity } from './capacity.ts'
import { type Connections, createConnections, type Destination } from './connections.ts'
import { authorityOf } from './response-headers.ts'

export interface Upstream {
  readonly prefix: string
  /** Two that are made from the same are the same. */
  readonly likeness: string
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

/** Those that a configuration names. */
export interface Upstreams {
  readonly all: readonly Upstream[]
  /** `undefined` if none is configured for the path. */
  for(path: string): Upstream | undefined
  /** The hosts and ports of all of them. */
  readonly authorities: ReadonlySet<string>
}

/** One of `known` that is just like it is taken, with its connections and whoever waits for it. */
export function openUpstreams(settings: Settings, config: Config, known: readonly Upstream[] = []): Upstreams {
  const ca = settings.UPSTREAM_CA_FILE && readFileSync(settings.UPSTREAM_CA_FILE, 'utf8')
  const { UPSTREAM: url, ASSERTION_AUDIENCE: audience } = settings
  const places = { ...(url && { '/': { url, audience } }), ...config.upstreams }
  const all = Object.entries(places)
    .map(([prefix, place]) => {
      const likeness = likenessOf(prefix, place, settings, ca)
      return known.find(upstream => upstream.likeness === likeness) ?? openUpstream(prefix, place, settings, ca)
    })
    .sort((one, other) => other.prefix.length - one.prefix.length)
  const upstreamOf = createLongestPrefix(new Map(all.map(upstream => [upstream.prefix, upstream])))
  return {
    all,
    for: path => upstreamOf(decodedPath(path)),
    authorities: new Set(all.map(({ destination }) => authorityOf(new URL(destination.origin)))),
  }
}

type Place = string | UpstreamConfig

/** All that it is made from. */
function likenessOf(prefix: string, place: Place, settings: Settings, ca: string | undefined): string {
  const limits = Object.entries(settings).filter(([name]) => name.startsWith('UPSTREAM_'))
  return JSON.stringify([prefix, place, limits, ca])
}

function openUpstream(prefix: string, place: Place, settings: Settings, ca: string | undefined): Upstream {
  const likeness = likenessOf(prefix, place, settings, ca)
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
  return { prefix, likeness, capacity, connections, host, audience, servername, destination }
}

// What the longest of many prefixes says about a path. However many there are, only as many places of the path are looked
// at as the longest of them has segments.

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
