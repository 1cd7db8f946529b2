// The applications, which are chosen by the path. Each has its own capacity and connections.

import { readFileSync } from 'node:fs'
import { decodedOnce } from '../access/spellings.ts'
import type { Config, UpstreamConfig } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import { createLongestPrefix } from '../util/longest-prefix.ts'
import { type Capacity, createCapacity } from './capacity.ts'
import { type Connections, createConnections, type Destination } from './connections.ts'
import { authorityOf } from './response-headers.ts'

export interface Upstream {
  readonly prefix: string
  /** Two upstreams with the same fingerprint are made from the same settings. */
  readonly fingerprint: string
  readonly capacity: Capacity
  readonly connections: Connections
  /** As browsers send it, if the application does not see it; else empty. */
  readonly strippedPrefix: string
  /** Its HTML documents get session.js. */
  readonly sessionScript: boolean
  /** The host of its address. */
  readonly host: string
  /** The Host that it is sent; `undefined` for the browser's. */
  readonly hostHeader: string | undefined
  /** The origin that it is sent in place of ours; `undefined` if it sees ours. */
  readonly sentOrigin: string | undefined
  /** The hosts and ports under which it knows itself. */
  readonly authorities: readonly string[]
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
  /** The hosts and ports of all of them, with the prefix that each does not see. */
  readonly authorities: ReadonlyMap<string, string>
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
    for: path => upstreamOf(decodedOnce(path)),
    authorities: new Map(
      all.map(({ destination, strippedPrefix }) => [authorityOf(new URL(destination.origin)), strippedPrefix]),
    ),
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
  const { url, ...more }: UpstreamConfig = typeof option === 'string' ? { url: option } : option
  const { audience = url, stripPrefix, sessionScript = false, host: sentHost = settings.UPSTREAM_HOST_HEADER } = more
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined
  const origin = socketPath ? 'http://localhost' : url
  const { host, hostname } = new URL(origin)
  const servername = hostname.replace(/^\[|\]$/g, '')
  const maxHeaderSize = settings.MAX_HEADER_KB * 1024
  const destination = { origin, maxHeaderSize, ...(socketPath && { socketPath }), ...(ca && { ca }) }
  const capacity = createCapacity({
    slots: settings.UPSTREAM_CONNECTIONS,
    streams: settings.UPSTREAM_STREAMS,
    queue: settings.UPSTREAM_QUEUE,
    queueMs: settings.UPSTREAM_QUEUE_TIMEOUT_MS,
  })
  const connections = createConnections(destination, servername, settings)
  const hostHeader = sentHost === 'browser' ? undefined : sentHost === 'upstream' ? host : sentHost
  return {
    prefix,
    strippedPrefix: stripPrefix ? encodeURI(prefix) : '',
    sessionScript,
    fingerprint,
    capacity,
    connections,
    host,
    hostHeader,
    sentOrigin: sentHost === 'upstream' ? new URL(origin).origin : undefined,
    authorities: [origin, ...schemesOf(hostHeader)].map(address => authorityOf(new URL(address))),
    audience,
    servername,
    destination,
  }
}

function schemesOf(host: string | undefined): string[] {
  return host === undefined ? [] : [`http://${host}`, `https://${host}`]
}
