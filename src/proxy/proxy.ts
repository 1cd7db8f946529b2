// The proxy to the applications: chooses one by the path, forwards requests and joins sockets.

import type { Rules } from '../access/rules.ts'
import type { Settings } from '../config/settings.ts'
import type { Identification, IdentitySource, ProxyRequest } from '../http/caller.ts'
import type { SlowClients } from '../server/slow-clients.ts'
import { createOwnCookieTest, type OwnCookies } from '../util/own-cookies.ts'
import { createForward, type Forward, type ForwardOptions } from './forward.ts'
import { type OpenStreams, watchCaller } from './open-streams.ts'
import { createRequestHeaders, createRequestTrailers } from './request-headers.ts'
import { createResponseHeaders } from './response-headers.ts'
import { createTunnels, type OpenTunnel, type TunnelOptions } from './tunnel.ts'
import type { ExchangedTokenFor, Upstreams } from './upstreams.ts'

export interface ReverseProxy {
  readonly upstreams: Upstreams
  readonly slowClients: SlowClients
  readonly forward: Forward
  readonly openTunnel: OpenTunnel
  /**
   * Until the returned function is called, watches an open stream: calls `close` when the session or token that opened it has
   * ended, or the rules no longer admit its caller.
   */
  watch(request: ProxyRequest, identification: Identification, close: () => void): () => void
}

export interface ProxyOptions
  extends Pick<ForwardOptions, 'lifecycle' | 'report' | 'answered' | 'answerFailure'>,
    Pick<TunnelOptions, 'refuseFailure'> {
  readonly settings: Settings
  readonly upstreams: Upstreams
  readonly identitySource: IdentitySource
  readonly exchangedToken: ExchangedTokenFor
  /** Names of our cookies, in lower case: applications neither get nor set them. */
  readonly ownCookies: OwnCookies
  /** `Strict-Transport-Security` for answers that have none; absent without https. */
  readonly transportSecurity: string | undefined
  readonly rules: Rules
  /** At a host of `hosts`: its rules in the configuration in use at that time; `undefined` if the host was removed. */
  readonly currentRules?: (() => Rules | undefined) | undefined
  readonly streams: OpenStreams
  readonly slowClients: SlowClients
}

export function createProxy(options: ProxyOptions): ReverseProxy {
  const { settings, upstreams, identitySource, ownCookies, transportSecurity, rules, currentRules } = options
  const { streams, slowClients, lifecycle, report, answered, answerFailure, refuseFailure } = options
  const isOwnCookie = createOwnCookieTest(ownCookies)
  const shared = {
    requestHeaders: createRequestHeaders({ settings, identitySource, ownCookies, report }),
    requestTrailers: createRequestTrailers({ settings, identitySource }),
    exchangedToken: options.exchangedToken,
    responseHeaders: createResponseHeaders({
      baseUrl: settings.BASE_URL,
      authorities: upstreams.authorities,
      isOwnCookie,
      transportSecurity,
    }),
    watch: (request: ProxyRequest, identification: Identification, close: () => void) =>
      watchCaller(streams, { request, rules, currentRules }, identification, close),
    slowClients,
    lifecycle,
    report,
    answered,
  }
  return {
    upstreams,
    slowClients,
    watch: shared.watch,
    forward: createForward({ ...shared, answerFailure }),
    openTunnel: createTunnels({ ...shared, refuseFailure, isOwnCookie }),
  }
}
