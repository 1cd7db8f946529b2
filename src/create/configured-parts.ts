// What follows from the configuration: who may see what, where it leads, and how it looks. Made anew as a whole, on top of
// what lasts.
import { createBearerCallers } from '../gateway/admission/bearer-callers.ts'
import type { GatewayContext } from '../gateway/context.ts'
import { createEmbedded } from '../gateway/embedded/embedded.ts'
import { createRequestHeaders } from '../gateway/forward/request-headers.ts'
import { createResponseHeaders } from '../gateway/forward/response-headers.ts'
import { createUpgradeListener } from '../gateway/forward/upgrade.ts'
import { cookieNames } from '../gateway/http/cookies.ts'
import { createIdentities } from '../gateway/identity/identity-headers.ts'
import { createListener } from '../gateway/listener.ts'
import { createOwnRoutes } from '../gateway/own-routes.ts'
import { createExamination } from '../observe/doctor/doctor.ts'
import { createKnownFindings } from '../observe/doctor/known-findings.ts'
import { reloadFindings } from '../observe/doctor/reload-finding.ts'
import type { DerivedKeys } from '../session/keys/derived-keys.ts'
import type { Configuration } from './configuration.ts'
import type { Directory } from './directory.ts'
import type { LastingParts } from './lasting-parts.ts'

export type ConfiguredParts = ReturnType<typeof configure>

/** Changes nothing of what lasts. */
export function configure(
  lasting: LastingParts,
  configuration: Configuration,
  directory: Directory = lasting.directory,
  keys: DerivedKeys = lasting.keys,
) {
  const { settings, config, plans, languages, look } = configuration
  const { store, signingKeys, now, report } = lasting
  const { providers, roles, rules, scopedName } = directory
  const cookies = cookieNames(settings)
  const identities = createIdentities({ settings, keys: signingKeys, now, report })
  const probe = createExamination({ settings, config, plans, store, now })
  const examine = async () => [...(await probe()), ...reloadFindings(lasting.reloads)]
  const upstreams = lasting.upstreamPool.choose(settings, config)
  const context: GatewayContext = {
    ...lasting,
    keys,
    settings,
    languages,
    look,
    providers,
    roles,
    upstreams,
    examine,
    findings: createKnownFindings(examine, now),
    rules,
    bearers: createBearerCallers({ providers, roles, scopedName, now }),
    cookies,
    identities,
    requestHeaders: createRequestHeaders({ settings, identities, cookies }),
    responseHeaders: createResponseHeaders({ settings, cookies, upstreams }),
  }
  const ownRoutes = createOwnRoutes(context, lasting.underway)
  const listener = createListener(context, ownRoutes)
  return {
    configuration,
    directory,
    upstreams,
    inUse: context,
    keys,
    ownRoutes,
    listener,
    upgradeListener: createUpgradeListener(context, listener),
    embedded: createEmbedded(context, ownRoutes),
  }
}
