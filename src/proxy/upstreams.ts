// The applications, which are chosen by the path. Each has its own capacity and connections.

import { readFileSync } from 'node:fs'
import { decodedOnce } from '../access/ambiguous-paths.ts'
import type { Config } from '../config/file.ts'
import { fingerprintOf } from '../config/fingerprint.ts'
import { withoutPortalKeys } from '../config/portal.ts'
import type { Settings } from '../config/settings.ts'
import { readUpstreamFiles, type UpstreamFiles } from '../config/upstream-files.ts'
import type { TokenExchangeConfig, UpstreamConfig } from '../config/upstreams.ts'
import type { Identification, ProxyRequest } from '../http/caller.ts'
import { createLongestPrefix } from '../util/longest-prefix.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import { type Capacity, createCapacity } from './capacity.ts'
import { type Connections, createConnections, type Destination } from './connections.ts'
import { authorityOf } from './response-headers.ts'
import {
  createUpstreamHeaders,
  type ResponseChanges,
  responseChangesOf,
  type UpstreamHeaders,
} from './upstream-headers.ts'

/** The token that an application is sent in place of the user's access token: see token-exchange/. */
export type ExchangedTokenFor = (
  upstream: { readonly prefix: string },
  config: TokenExchangeConfig,
  request: ProxyRequest,
  identification: Identification,
) => MaybePromise<{ readonly token: string | undefined } | 'failed'>

export interface Upstream {
  readonly prefix: string
  /** Two upstreams with the same fingerprint are made from the same settings. */
  readonly fingerprint: string
  readonly capacity: Capacity
  readonly connections: Connections
  /** The prefix as browsers send it, if the application does not see it; otherwise empty. */
  readonly strippedPrefix: string
  /** Its HTML documents get session.js. */
  readonly sessionScript: boolean
  /** Headers that the configuration adds to its requests; `undefined` if none. */
  readonly headers: UpstreamHeaders | undefined
  /** What the configuration changes in the headers of its answers; `undefined` if nothing. */
  readonly responseChanges: ResponseChanges | undefined
  /** It is sent the access token of the user. */
  readonly accessToken: boolean
  /** The token that it is sent instead of that one; `undefined` if none. */
  readonly tokenExchange: TokenExchangeConfig | undefined
  /** How long it may take until its answer begins. */
  readonly headersTimeoutMs: number
  /** The host of its address. */
  readonly host: string
  /** The Host that it is sent; `undefined` if it is the browser's. */
  readonly hostHeader: string | undefined
  /** The origin that is sent to it in place of ours; `undefined` if it sees ours. */
  readonly sentOrigin: string | undefined
  /** The hosts and ports by which it refers to itself. */
  readonly authorities: readonly string[]
  /** The audience of its assertions. */
  readonly audience: string
  /** The name that its certificate must have, whatever Host it is sent. */
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
export function openUpstreams(
  settings: Settings,
  config: Pick<Config, 'upstreams'>,
  known: readonly Upstream[] = [],
): Upstreams {
  const sharedCa = settings.UPSTREAM_CA_FILE && readFileSync(settings.UPSTREAM_CA_FILE, 'utf8')
  const { UPSTREAM: url, ASSERTION_AUDIENCE: audience } = settings
  const options = { ...(url && { '/': { url, audience } }), ...config.upstreams }
  const all = Object.entries(options)
    .map(([prefix, given]) => {
      const option: UpstreamConfig = typeof given === 'string' ? { url: given } : given
      const files = { ...(sharedCa && { ca: sharedCa }), ...readUpstreamFiles(prefix, option) }
      const fingerprint = fingerprintFor(prefix, option, settings, files)
      return (
        known.find(upstream => upstream.fingerprint === fingerprint) ??
        openUpstream(prefix, option, settings, files, fingerprint)
      )
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

/** A fingerprint of everything that an upstream is made from, secrets too. */
function fingerprintFor(prefix: string, option: UpstreamConfig, settings: Settings, files: UpstreamFiles): string {
  const limits = Object.entries(settings).filter(([name]) => name.startsWith('UPSTREAM_'))
  const { FORWARD_ACCESS_TOKEN, MAX_HEADER_KB, BASE_URL } = settings
  // Applications of two hosts each have their own queue, even at the same address.
  return fingerprintOf([
    prefix,
    withoutPortalKeys(option),
    limits,
    FORWARD_ACCESS_TOKEN,
    MAX_HEADER_KB,
    files,
    BASE_URL,
  ])
}

function openUpstream(
  prefix: string,
  option: UpstreamConfig,
  settings: Settings,
  { headers: headerValues, ...tls }: UpstreamFiles,
  fingerprint: string,
): Upstream {
  const { url, audience = url, stripPrefix, sessionScript = false, timeoutSeconds } = option
  const { host: sentHost = settings.UPSTREAM_HOST_HEADER, accessToken = settings.FORWARD_ACCESS_TOKEN } = option
  const headersTimeoutMs =
    timeoutSeconds === undefined ? settings.UPSTREAM_HEADERS_TIMEOUT_MS : Math.ceil(timeoutSeconds * 1000)
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : undefined
  const isH2c = url.startsWith('h2c:')
  const origin = socketPath ? 'http://localhost' : url.replace(/^h2c:/, 'http:')
  const { host, hostname } = new URL(origin)
  const servername = hostname.replace(/^\[|\]$/g, '')
  const maxHeaderSize = settings.MAX_HEADER_KB * 1024
  const destination = { origin, maxHeaderSize, ...(socketPath && { socketPath }), ...(isH2c && { isH2c }), ...tls }
  const capacity = createCapacity({
    slots: settings.UPSTREAM_CONNECTIONS,
    streams: settings.UPSTREAM_STREAMS,
    queue: settings.UPSTREAM_QUEUE,
    queueMs: settings.UPSTREAM_QUEUE_TIMEOUT_MS,
  })
  const connections = createConnections(destination, servername, settings, headersTimeoutMs)
  const hostHeader = sentHost === 'browser' ? undefined : sentHost === 'upstream' ? host : sentHost
  return {
    prefix,
    strippedPrefix: stripPrefix ? encodeURI(prefix) : '',
    sessionScript,
    headers: createUpstreamHeaders(option, headerValues),
    responseChanges: responseChangesOf(option),
    accessToken: accessToken === true,
    tokenExchange: typeof accessToken === 'object' ? accessToken : undefined,
    headersTimeoutMs,
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
