// The headers that tell an application who the caller is: plain ones, and a signed assertion that proves that they are ours.

import { ASSERTION_HEADER, type Settings } from '../config/settings.ts'

import type { Report } from '../events.ts'
import type { Caller, IdentitySource } from '../http/caller.ts'
import { runInRequest } from '../observe/observed-request.ts'
import type { CachedHeaders, IdentityHeaders } from '../session/cache.ts'
import { identityFields } from '../session/fields.ts'
import type { SigningKeys } from '../session/signing-keys.ts'
import { type EncodedValue, encodeBounded, encodeHeaderValue, encodeNames } from '../util/header-values.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import { createAssertions, createPublishedKeys, type PublishedKeySet, type SignedAssertion } from './assertions.ts'

/** `headersFor` returns every header, so that a forged one cannot survive; all are empty for a visitor. */
export interface IdentityIssuer extends IdentitySource {
  publicKeys(): Promise<PublishedKeySet>
}

interface IdentityParts {
  readonly settings: Settings
  readonly keys: SigningKeys
  readonly now: () => number
  readonly report: Report
}

/** An assertion is valid for five minutes. It is used for four, so that the last request still has time to be verified. */
const REUSED_MS = 240_000
/** With hundreds of applications, the headers of one session must not use more memory than all sessions may. */
const MAX_CACHED_APPLICATIONS = 4
const UNSIGNED: SignedAssertion = { token: '', omitted: [] }

export function createIdentityIssuer({ settings, keys, now, report }: IdentityParts): IdentityIssuer {
  const { IDENTITY_USER, IDENTITY_EMAIL, IDENTITY_NAME, IDENTITY_ROLE, IDENTITY_GROUPS, IDENTITY_ASSERTION } = settings
  const isSigned = IDENTITY_ASSERTION !== 'none'
  const assertionName = isSigned ? IDENTITY_ASSERTION : ASSERTION_HEADER
  const plainNames = [IDENTITY_USER, IDENTITY_EMAIL, IDENTITY_NAME, IDENTITY_ROLE, IDENTITY_GROUPS]
  const names = new Set([...plainNames, assertionName])
  // If nothing is signed, another header may have this name.
  const hasAssertion = !plainNames.includes(assertionName)
  const visitorHeaders: IdentityHeaders = { pairs: [...names].flatMap(name => [name, '']), sent: [] }
  const assertions = createAssertions(settings.BASE_URL, keys, now)

  function make(caller: Caller, audience: string): MaybePromise<IdentityHeaders> {
    return andThen(isSigned ? assertions.sign(caller, audience) : UNSIGNED, ({ token, omitted }) => {
      for (const claim of omitted) report('identity_cut', { ...identityFields(caller), header: assertionName, claim })
      const others = caller.identityHeaders?.filter(cached => cached.audience !== audience)
      const pairs = pairsOf(caller, token)
      const sent = pairs.at(-1) === '' ? pairs.slice(0, -2) : pairs
      const latest = { audience, names, pairs, sent, lines: undefined, until: now() + REUSED_MS }
      caller.identityHeaders = others ? [latest, ...others.slice(0, MAX_CACHED_APPLICATIONS - 1)] : [latest]
      return latest
    })
  }

  /** The groups are last. */
  function pairsOf(caller: Caller, token: string): string[] {
    const { userInfo } = caller.user
    const { username, role, groups } = caller.who
    const checked = (header: string, { value, isCut }: EncodedValue) => {
      if (isCut) report('identity_cut', { ...identityFields(caller), header })
      return value
    }
    const pairs = hasAssertion ? [assertionName, token] : []
    pairs.push(IDENTITY_USER, checked(IDENTITY_USER, encodeBounded(username, encodeHeaderValue)))
    pairs.push(IDENTITY_EMAIL, checked(IDENTITY_EMAIL, encodeBounded(userInfo.email, encodeHeaderValue)))
    pairs.push(IDENTITY_NAME, checked(IDENTITY_NAME, encodeBounded(userInfo.nickname, encodeURIComponent)))
    pairs.push(IDENTITY_ROLE, checked(IDENTITY_ROLE, encodeNames([role])))
    pairs.push(IDENTITY_GROUPS, checked(IDENTITY_GROUPS, encodeNames(groups)))
    return pairs
  }

  return {
    names,
    headersFor(caller, audience, observed) {
      if (!caller) return visitorHeaders
      const cached = cachedFor(caller, audience, names)
      return cached && now() < cached.until ? cached : runInRequest(observed, () => make(caller, audience))
    },
    publicKeys: createPublishedKeys(keys, now),
  }
}

/** A request that began with another configuration may have cached some under other names. */
function cachedFor(
  { identityHeaders = [] }: Caller,
  audience: string,
  names: ReadonlySet<string>,
): CachedHeaders | undefined {
  return identityHeaders.find(cached => cached.audience === audience && cached.names === names)
}

/** With forward-auth there is one application, and the proxy in front serves it. */
export function forwardAuthAudience({ ASSERTION_AUDIENCE }: Settings, { clientId }: { clientId: string }): string {
  return ASSERTION_AUDIENCE ?? clientId
}
