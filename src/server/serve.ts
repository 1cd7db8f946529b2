// An http or https server that stops gracefully: it stops accepting, finishes what is in flight, and gives up on what takes too
// long. With https, a connection uses the protocol that its client has negotiated: HTTP/2, or HTTP/1.1.

import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Server as HttpServer, IncomingMessage, RequestListener } from 'node:http'
import { createServer as createSecureServer, Server as SecureServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { Networks } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import type { Report } from '../events.ts'
import { createServer } from '../util/node-http.ts'
import { watchConnections } from './closing.ts'
import { closeWithoutLoss, PreparedResponse, rememberAddress, ServerRequest, stopAccepting } from './fast-path.ts'
import { createHttp2Server, type Http2Server } from './http2.ts'

/** The handlers of the server's events. */
export interface ServedApplication {
  readonly listener: RequestListener
  /** Whether a request that asks for an upgrade gets one; otherwise `listener` answers it. */
  readonly shouldUpgrade: (request: IncomingMessage) => boolean
  readonly upgradeListener: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  readonly clientErrorListener: (error: Error, socket: Duplex) => void
  /** From now on every answer closes its connection. */
  prepareToClose(): void
  endStreams(): void
}

export interface RunningServer {
  /** Reads the certificate again, if there is one. */
  renewCertificate(): void
  close(timeoutMs: number): Promise<void>
}

interface ListenAddress {
  readonly port: number
  readonly host: string
  /** An inherited socket to listen on instead. */
  readonly fd?: number | undefined
  /** How long a connection may wait for its next request; Node's own five seconds are less than any proxy's. */
  readonly keepAliveTimeoutMs?: number
  /** The largest head of a request, in kilobytes; by default Node's own limit. */
  readonly maxHeaderKb?: number
  /** Serves https with these files, read again when they change. */
  readonly tls?: CertificateFiles
  /** With https, HTTP/2 besides HTTP/1.1. */
  readonly http2?: boolean
  /** They send the requests of many clients. */
  readonly trustedProxies?: Networks | undefined
  /** Called with the expiry of every certificate that is used, in milliseconds since the epoch. */
  readonly onCertificate?: (expiresAt: number) => void
  /** How long certificate and key may mismatch before that is reported. */
  readonly certificateGraceMs?: number
}

/**
 * Requests on open connections are answered until none has arrived for this time. Each answer closes its connection, so that a
 * proxy under load uses up the idle ones that it keeps, and sends no request on one that is just being closed.
 */
const QUIET_PERIOD_MS = 200
/** At most this many times that, while requests keep coming. */
const MAX_QUIET_PERIODS = 10
/** Long enough for a slow phone, short enough for a client that only keeps a connection busy. */
const HEADERS_TIMEOUT_MS = 20_000
const TIMEOUT_CHECK_MS = 5000
/** As many as the system allows: all clients that connect during a restart wait here. */
const INHERITED_BACKLOG = 65_535

export function listenAddress(settings: Settings, fd?: number): ListenAddress {
  const { PORT: port, HOST: host, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } = settings
  const keepAliveTimeoutMs = settings.KEEP_ALIVE_TIMEOUT_MS
  const maxHeaderKb = settings.MAX_HEADER_KB
  const tls =
    certFile && keyFile
      ? { tls: { certFile, keyFile }, http2: settings.HTTP2, trustedProxies: settings.TRUSTED_PROXIES }
      : {}
  return { port, host, fd, keepAliveTimeoutMs, maxHeaderKb, ...tls }
}

/** Rejects with the error of `listen`, for example EADDRINUSE; ENOTSUP for a socket whose clients have no addresses. */
export async function serve(
  application: ServedApplication,
  address: ListenAddress,
  report: Report,
): Promise<RunningServer> {
  const { port, host, fd, tls, http2, keepAliveTimeoutMs, maxHeaderKb } = address
  const options = {
    ...OPTIONS,
    shouldUpgradeCallback: application.shouldUpgrade,
    ...(keepAliveTimeoutMs && { keepAliveTimeout: keepAliveTimeoutMs }),
    ...(maxHeaderKb && { maxHeaderSize: maxHeaderKb * 1024 }),
  }
  const server = closeWithoutLoss(
    tls
      ? createSecureServer({
          ...options,
          handshakeTimeout: HEADERS_TIMEOUT_MS,
          ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
          ...readCertificate(tls),
        })
      : createServer(options),
  )
  const http2Server = tls && http2 ? serveHttp2(server, application, address) : undefined
  server.on('request', application.listener)
  server.on('checkContinue', application.listener)
  server.on('clientError', application.clientErrorListener)
  server.on(tls ? 'secureConnection' : 'connection', rememberAddress)
  const connections = watchConnections(server, tls !== undefined)
  const sockets = new Set<Socket>()
  let hasEndedStreams = false
  server.on('upgrade', (request, stream, head) => {
    application.upgradeListener(request, stream, head)
    const { socket } = request
    if (socket.destroyed) return
    if (hasEndedStreams) return void socket.destroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(fd === undefined ? { port, host } : { fd, backlog: INHERITED_BACKLOG })
  await once(server, 'listening')
  if (typeof server.address() === 'string' || !server.address()) {
    server.close()
    // All users would share one address, for rate limits and for trusted proxies.
    throw Object.assign(new Error('a socket without addresses'), { code: 'ENOTSUP' })
  }
  const { onCertificate, certificateGraceMs: graceMs } = address
  const certificate =
    server instanceof SecureServer && tls
      ? watchCertificate(server, { files: tls, report, onCertificate, graceMs })
      : undefined
  return {
    renewCertificate: () => certificate?.renew(),
    async close(timeoutMs) {
      const closed = once(server, 'close')
      await stopAccepting(server)
      // Not before: each answer will close its connection, and proxies would open others for which we still listen.
      application.prepareToClose()
      http2Server?.announceEnd()
      await waitForLastRequests(server, timeoutMs)
      http2Server?.endConnections()
      // A connection that was busy a moment ago may wait for a next request that must not come here any more.
      connections.endIdle()
      // A WebSocket would never end. Its client opens a new one elsewhere.
      hasEndedStreams = true
      for (const socket of sockets) socket.destroy()
      application.endStreams()
      const deadline = setTimeout(() => connections.destroyAll(), timeoutMs)
      await closed
      connections.stop()
      clearTimeout(deadline)
      certificate?.stop()
    },
  }
}

async function waitForLastRequests(server: Server | HttpServer, timeoutMs: number): Promise<void> {
  let requests = 0
  server.on('request', () => requests++)
  for (let round = 0, before = -1; requests > before && round < MAX_QUIET_PERIODS; round++) {
    before = requests
    await pause(Math.min(QUIET_PERIOD_MS, timeoutMs / MAX_QUIET_PERIODS))
  }
}

const KEEP_ALIVE_TIMEOUT_MS = 90_000
const MAX_HEADER_KB = 16

/** HTTP/1.1 stays with Node's own listener. */
function serveHttp2(server: Server | HttpServer, { listener }: ServedApplication, address: ListenAddress): Http2Server {
  const { keepAliveTimeoutMs = KEEP_ALIVE_TIMEOUT_MS, maxHeaderKb = MAX_HEADER_KB } = address
  const http2Server = createHttp2Server({
    listener,
    keepAliveTimeoutMs,
    headersTimeoutMs: HEADERS_TIMEOUT_MS,
    maxHeaderKb,
    trustedProxies: address.trustedProxies,
  })
  const [serveHttp1] = server.listeners('secureConnection')
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket: TLSSocket) => {
    rememberAddress(socket)
    if (socket.alpnProtocol === 'h2') http2Server.accept(socket)
    else serveHttp1?.call(server, socket)
  })
  return http2Server
}

const OPTIONS = {
  IncomingMessage: ServerRequest,
  ServerResponse: PreparedResponse<ServerRequest>,
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  // Most requests have no body. With this, Node does not create an empty stream for each, which costs as much as finding a
  // session.
  optimizeEmptyRequests: true,
  // A body may take as long as the application allows.
  requestTimeout: 0,
}

// The certificate of our own server: read again when its files change, and at a reload.

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

const POLL_INTERVAL_MS = 2000
/** Certificate and key are written one after the other, and do not match in between. */
const PAIR_GRACE_MS = 10_000

interface CertificateWatch {
  readonly files: CertificateFiles
  readonly report: Report
  /** Called with the expiry of every certificate that is used. */
  readonly onCertificate?: ((expiresAt: number) => void) | undefined
  readonly graceMs?: number | undefined
}

export function watchCertificate(server: Server, options: CertificateWatch) {
  const { files, report, onCertificate, graceMs = PAIR_GRACE_MS } = options
  let inUse = textOf(files)
  /** As far as they could be read. */
  let seen: string | undefined = inUse
  /** Since when the files differ from what is in use and cannot be used; absent once that is reported. */
  let failingSince: number | undefined
  onCertificate?.(expiryOf(files))

  function use(): void {
    const text = textOf(files)
    server.setSecureContext(readCertificate(files))
    if (text !== inUse) report('certificate_reloaded', { file: files.certFile })
    inUse = text
    onCertificate?.(expiryOf(files))
  }

  function renew(): void {
    try {
      use()
    } catch (error) {
      report('certificate_refused', { file: files.certFile, err: error })
    }
  }

  /** Compared with what was read at the start, because fs.watchFile misses changes before its first look. */
  function checkFiles(): void {
    const text = readableText(files)
    if (text === seen && failingSince === undefined) return
    seen = text
    try {
      use()
      failingSince = undefined
    } catch (error) {
      failingSince ??= performance.now()
      if (performance.now() - failingSince < graceMs) return
      failingSince = undefined
      report('certificate_refused', { file: files.certFile, err: error })
    }
  }

  const timer = setInterval(checkFiles, POLL_INTERVAL_MS).unref()
  return { renew, stop: () => clearInterval(timer) }
}

function expiryOf({ certFile }: CertificateFiles): number {
  return new X509Certificate(readFileSync(certFile)).validToDate.getTime()
}

export function readCertificate({ certFile, keyFile }: CertificateFiles) {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile), minVersion: 'TLSv1.2' as const }
}

function textOf({ certFile, keyFile }: CertificateFiles): string {
  return readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8')
}

function readableText(files: CertificateFiles): string | undefined {
  try {
    return textOf(files)
  } catch {
    return undefined
  }
}
