// What the proxy knows about a request and its caller. The gateway's own types extend these.

import type { IncomingHttpHeaders } from 'node:http'
import type { Authentication, ConditionContext } from '../access/conditions.ts'
import { network } from '../config/networks.ts'
import type { ObservedRequest } from '../observe/observed-request.ts'
import type { IdentityHeaders, LoadedSession } from '../session/cache.ts'
import { userKey } from '../session/fields.ts'
import { authenticationOf } from '../session/record.ts'
import { isCrossSiteWrite } from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'

export interface ProxyRequest {
  readonly method: string
  /** As received: it is forwarded byte for byte. */
  readonly path: string
  /** With its `?`, or empty. */
  readonly search: string
  readonly headers: IncomingHttpHeaders
  /** The address of the other end of the connection. The client's own address is `observed.address`. */
  readonly address: string
  readonly observed: ObservedRequest
}

/** A user with a session, or a program with a token or a key. */
export interface Caller
  extends Pick<LoadedSession, 'user' | 'who' | 'identityHeaders' | 'upstreamHeaders'>,
    Partial<Pick<LoadedSession, 'key'>> {
  /** How the user or machine of a token signed in, as far as the token shows. For a user with a session, it is in the session. */
  readonly authentication?: Authentication
}

/** The caller of a request; a visitor has neither a session nor a credential. */
export interface Identification {
  readonly loaded?: LoadedSession
  /** The ticket that opened `loaded`. */
  readonly ticket?: string
  /** A program with a token or a key, in place of a session. */
  readonly program?: Caller
  /** Identifies the owner of the token or key again, by the current configuration; `undefined` if it is no longer valid. */
  readonly reidentify?: () => Promise<Caller | undefined>
  /** Cookies for the answer. */
  readonly cookies: readonly string[]
}

/** The headers that tell an application who the caller is. */
export interface IdentitySource {
  /** Their names: a client's own header of such a name is removed. */
  readonly names: ReadonlySet<string>
  headersFor(caller: Caller | undefined, audience: string, observed: ObservedRequest): MaybePromise<IdentityHeaders>
}

/** `undefined` for a visitor. */
export function callerOf({ loaded, program }: Identification): Caller | undefined {
  return loaded ?? program
}

/** What the conditions of rules check. Each value is computed only if a condition needs it. */
export class RequestConditionContext implements ConditionContext {
  readonly at: number
  readonly #request: Pick<ProxyRequest, 'method' | 'headers' | 'observed'>
  readonly #identification: Identification
  readonly #ownOrigin: string

  constructor(
    request: Pick<ProxyRequest, 'method' | 'headers' | 'observed'>,
    identification: Identification,
    ownOrigin: string,
    at: number,
  ) {
    this.#request = request
    this.#identification = identification
    this.#ownOrigin = ownOrigin
    this.at = at
  }

  get address(): string {
    return this.#request.observed.address
  }

  /** Another site cannot make a program with a token or a key send a request. */
  get isOwnOrigin(): boolean {
    return this.#identification.program !== undefined || !isCrossSiteWrite(this.#request, this.#ownOrigin)
  }

  get authentication(): Authentication | undefined {
    const { loaded, program } = this.#identification
    return loaded ? authenticationOf(loaded) : program?.authentication
  }
}

/** Whose share of an application a request uses: a user's, a machine's, or that of a visitor's network. */
export function ownerOf(request: ProxyRequest, identification: Identification): string {
  const caller = callerOf(identification)
  if (!caller) return `address ${network(request.observed.address)}`
  return `user ${userKey(caller.user)}`
}

/** Why an application gave no answer. `no_token`: it was not asked, because the provider issued no token for it. */
export type UpstreamFailure = 'busy' | 'timeout' | 'unreachable' | 'no_token'
