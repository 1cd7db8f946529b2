// The parts that depend on the configuration. A reload builds all of them again, on top of the process parts.

import type { RequestListener } from 'node:http'
import { createReadTarget } from '../access/request-path.ts'
import { createRules, type Rules } from '../access/rules.ts'
import { createHome } from '../account/home.ts'
import { LANGUAGE_ROUTES } from '../account/language.ts'
import { ACCOUNT_ROUTES } from '../account/routes.ts'
import { createCursors } from '../api/cursors.ts'
import { API_ROUTES } from '../api/routes.ts'
import { upstreamsOfHost } from '../config/file.ts'
import type { Settings } from '../config/settings.ts'
import { createConsole } from '../console/console.ts'
import { createDevices } from '../devices/devices.ts'
import { DEVICE_ROUTES } from '../devices/routes.ts'
import { createExamination, createKnownFindings, reloadFindings } from '../doctor/doctor.ts'
import { type ClientErrorListener, createClientErrorListener } from '../gateway/bad-requests.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { Embedded } from '../gateway/embedded.ts'
import { limitHeads } from '../gateway/head-limit.ts'
import { createFailureAnswer, createNotFound } from '../gateway/listener.ts'
import type { OwnRoutes } from '../gateway/routes.ts'
import { createSiteHandlers } from '../gateway/site.ts'
import { STATUS_ROUTES } from '../gateway/status.ts'
import { refuseFailure, type UpgradeListener } from '../gateway/upgrade.ts'
import { chooseBetween } from '../hosts/choose.ts'
import { beginAtHost, createKnownHosts } from '../hosts/context.ts'
import { HOSTS_LOGIN } from '../hosts/handoff.ts'
import { CLOSED_HANDOFF_ROUTES, HANDOFF_ROUTES, hostRoutes } from '../hosts/routes.ts'
import { createHostSite } from '../hosts/site.ts'
import { type Pages, transportSecurityOf } from '../http/answers.ts'
import { cookieNames, ourCookies } from '../http/cookies.ts'
import { createBeginRequest } from '../http/request.ts'
import { createBearerCallers } from '../identify/bearer.ts'
import { createProtectedResources } from '../identify/protected-resources.ts'
import { createKeyCallers, type KeyCallers } from '../keys/callers.ts'
import { createIdentifyByKey } from '../keys/identify.ts'
import { createKeyListing } from '../keys/personal.ts'
import { ownPathsOf } from '../paths.ts'
import { createApplications } from '../portal/applications.ts'
import { createPortalHome, portalRoutes } from '../portal/routes.ts'
import { createIdentityIssuer } from '../proxy/identity-headers.ts'
import { createProxy } from '../proxy/proxy.ts'
import type { Upstreams } from '../proxy/upstreams.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'
import type { ClosedSession } from '../session/sessions.ts'
import { createAuthSite } from '../sign-in/auth-host.ts'
import { createHookCalls } from '../sign-in/hooks.ts'
import { signInRoutes, signOutRoutes } from '../sign-in/routes.ts'
import { createExchangedTokenFor, createExchangeToken } from '../token-exchange/upstream-token.ts'
import type { AccessPolicy, Configuration } from './configuration.ts'
import type { Policy, ProcessParts } from './process-parts.ts'

export interface ConfiguredParts {
  readonly configuration: Configuration
  readonly accessPolicy: AccessPolicy
  /** The upstreams of BASE_URL and of all hosts. */
  readonly upstreams: Pick<Upstreams, 'all'>
  readonly policy: Policy
  readonly keys: DerivedKeys
  readonly ownRoutes: OwnRoutes
  readonly listener: RequestListener
  readonly upgradeListener: UpgradeListener
  readonly clientErrorListener: ClientErrorListener
  readonly embedded: Embedded
}

/** Does not change the process parts. */
export function buildConfigured(
  parts: ProcessParts,
  configuration: Configuration,
  accessPolicy: AccessPolicy = parts.accessPolicy,
  keys: DerivedKeys = parts.keys,
): ConfiguredParts {
  const { settings, config } = configuration
  const { rules, hostRules } = accessPolicy
  const { contextOf, cookies, paths, bearers, keyCallers } = createContexts(parts, configuration, accessPolicy, keys)
  const pending = parts.pendingAnswers
  const everywhere = { ...STATUS_ROUTES, ...LANGUAGE_ROUTES, ...signOutRoutes(paths) }

  const hosts = config.hosts && createKnownHosts(settings, hostRules, parts.hostTickets)
  const upstreams = parts.upstreamPool.choose(settings, config)
  const site = createAuthSite(cookies, parts.now, hosts && HOSTS_LOGIN)
  const applications = createApplications(settings, config, keys)
  const api = createApi(parts, keyCallers)
  const authContext = { ...contextOf({ settings, site, rules, upstreams }), hostRules, hosts, applications, api }
  const authRoutes = {
    ...everywhere,
    ...CLOSED_HANDOFF_ROUTES,
    ...signInRoutes(paths),
    ...ACCOUNT_ROUTES,
    ...DEVICE_ROUTES,
    ...API_ROUTES,
    ...portalRoutes(applications),
    ...createConsole(authContext, parts.liveStreams),
  }
  const home = createPortalHome(authContext, createHome(authContext))
  const authSite = hosts
    ? createSiteHandlers({ ...authContext, hosts }, { routes: { ...authRoutes, ...HANDOFF_ROUTES }, home, pending })
    : createSiteHandlers(authContext, { routes: authRoutes, home, pending })

  const applicationHosts = Object.entries(config.hosts ?? {}).map(([name, hostConfig]) => {
    const ofHost = settingsOfHost(settings, name)
    const host = { name, authUrl: settings.BASE_URL, ...parts.hostTickets }
    const siteContext = contextOf({
      settings: ofHost,
      site: createHostSite(host, { settings, cookies, now: parts.now }),
      rules: hostRules.get(name) ?? NO_RULES,
      upstreams: parts.upstreamPool.choose(ofHost, { upstreams: upstreamsOfHost(hostConfig) }),
      currentRules: () => parts.currentHostRules(name),
    })
    const beginRequest = beginAtHost(siteContext.observe.beginRequest, name)
    const context = { ...siteContext, observe: { ...siteContext.observe, beginRequest }, host }
    const routes = { ...everywhere, ...hostRoutes(paths) }
    const site = createSiteHandlers(context, { routes, home: createNotFound(context), pending })
    return { name, site, upstreams: context.proxy.upstreams.all }
  })
  const hostSites = new Map(applicationHosts.map(({ name, site }) => [name, site]))
  const served = limitHeads(authContext, hosts ? chooseBetween(authContext, authSite, hostSites) : authSite)
  return {
    configuration,
    accessPolicy,
    upstreams: { all: [...upstreams.all, ...applicationHosts.flatMap(({ upstreams }) => upstreams)] },
    policy: { settings, rules, bearers, keyCallers },
    keys,
    ownRoutes: authSite.ownRoutes,
    listener: served.listener,
    upgradeListener: served.upgradeListener,
    clientErrorListener: createClientErrorListener(authContext),
    embedded: served.embedded,
  }
}

/** The parts in which the sites differ: BASE_URL, and the hosts of `hosts`. */
interface SiteParts extends Pick<GatewayContext, 'settings' | 'site'> {
  readonly rules: Rules
  /** For a host: its rules in the current configuration; `undefined` if the host is gone. */
  readonly currentRules?: () => Rules | undefined
  readonly upstreams: Upstreams
}

/** The parts that all sites share, and a function that adds those of one site. */
function createContexts(
  parts: ProcessParts,
  { settings, config, plans, languages, branding }: Configuration,
  { providers, roles, scopedName }: AccessPolicy,
  keys: DerivedKeys,
) {
  const { store, now, observe, sessions, rateLimit, personalKeys, exchangedTokens } = parts
  const { report } = observe
  const paths = ownPathsOf(settings, Object.keys(config.providers ?? {}))
  const cookies = cookieNames(settings)
  const identityIssuer = createIdentityIssuer({ settings, keys: parts.signingKeys, now, report })
  const bearers = createBearerCallers({ providers, roles, scopedName, now })
  const [mainProvider] = Object.keys(config.providers ?? {})
  const keyCallers = createKeyCallers({ machines: config.machines, personalKeys, roles, mainProvider, now })
  const probe = createExamination({ settings, config, plans, store, now })
  const examine = async () => [...(await probe()), ...reloadFindings(parts.reloads)]
  const shared = {
    paths,
    now,
    readTarget: createReadTarget(),
    store,
    lifecycle: parts.lifecycle,
    identityIssuer,
    exchangeToken: createExchangeToken(exchangedTokens, report),
    endSignals: parts.endSignals,
    observe: { ...observe, beginRequest: createBeginRequest(settings.TRUSTED_PROXIES) },
    doctor: { examine, findings: createKnownFindings(examine, now), testSignIns: parts.testSignIns },
  }
  const auth = {
    providers,
    sessions,
    attempts: parts.attempts,
    replacedSessions: parts.replacedSessions,
    bearers,
    personalKeys,
    roles,
    keys,
    cookies,
    lostCookies: parts.lostCookies,
    rateLimit,
    hooks: createHookCalls({ hooks: parts.hooks, providers, settings, report }),
    async onSignOut(ticket: string, closed: ClosedSession) {
      // Tickets of hosts are useless without the session, and expire with it at the latest.
      if (config.hosts) await parts.hostTickets.tickets.removeAllOf(closed.key).catch(() => {})
      await exchangedTokens.endAllOf(ticket, closed).catch(() => {})
    },
  }
  const exchangedToken = createExchangedTokenFor(exchangedTokens, report)
  const ownCookies = ourCookies(cookies)

  function contextOf({ settings, site, rules, upstreams, currentRules }: SiteParts) {
    const { isAuthHost } = site
    const pages: Pages = { settings, languages, branding, cookies, paths }
    /** Uses the current configuration, for requests that began under an earlier one. */
    const currentPolicy = () => {
      const policy = parts.currentPolicy()
      if (isAuthHost) return policy
      const { BASE_URL } = settings
      return { ...policy, settings: { ...policy.settings, BASE_URL }, rules: currentRules?.() ?? NO_RULES }
    }
    const currentKeys = () => {
      const { rules, keyCallers: callers } = currentPolicy()
      return { rules, callers }
    }
    return {
      ...shared,
      settings,
      site,
      pages,
      auth: {
        ...auth,
        rules,
        currentPolicy,
        devices: createDevices({ settings, isAuthHost, cookies, sessions, now, report }),
        identifyByKey: createIdentifyByKey({
          rules,
          callers: keyCallers,
          use: parts.keyUse,
          current: currentKeys,
          rateLimit,
          report,
        }),
      },
      resources: createProtectedResources(settings.BASE_URL, rules, providers),
      proxy: createProxy({
        settings,
        upstreams,
        identitySource: identityIssuer,
        exchangedToken,
        ownCookies,
        transportSecurity: transportSecurityOf(settings),
        rules,
        currentRules,
        streams: parts.streams,
        slowClients: parts.slowClients,
        lifecycle: parts.lifecycle,
        report,
        answered: observe.answered,
        answerFailure: createFailureAnswer(pages),
        refuseFailure,
      }),
    }
  }

  return { contextOf, cookies, paths, bearers, keyCallers }
}

function createApi({ store, keyring, keyUse }: ProcessParts, machines: KeyCallers) {
  const keys = createKeyListing({ store, allKeys: async () => [await keyring.current()] })
  return { machines, use: keyUse, keys, cursors: createCursors(keyring) }
}

const NO_RULES = createRules([])

/** The host's own address, which is also the audience of forward-auth assertions, and nothing of the application of BASE_URL. */
function settingsOfHost(settings: Settings, name: string): Settings {
  const address = `${new URL(settings.BASE_URL).protocol}//${name}`
  return { ...settings, BASE_URL: address, UPSTREAM: undefined, ASSERTION_AUDIENCE: address }
}
