// Protected resources (RFC 9728), by which MCP clients and other agents find out where to get a token: every path of a rule
// with `bearer` is one. Its metadata is public; a 401 there names the address of the metadata and the scopes of the rule.

import { decodedPath } from '../access/ambiguous-paths.ts'
import type { Rules } from '../access/rules.ts'
import type { Rule } from '../config/file.ts'
import { CommonHeaders, errorAnswer, type OwnAnswer, type Pages, safetyHeaders, textAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { RESOURCE_METADATA_PATH } from '../paths.ts'
import type { Providers } from '../provider/providers.ts'

/** What a challenge contains about the requested resource. */
export interface ResourceChallenge {
  readonly metadataUrl: string
  /** The scopes that a token needs. */
  readonly scopes: readonly string[]
}

export interface ProtectedResources {
  /** The answer to a request for metadata, whatever the path after its prefix. */
  answer(pages: Pages, request: GatewayRequest): Promise<OwnAnswer>
  /** `rules` are those that apply to a request; the first is for the path as sent. `undefined` if that rule accepts no tokens. */
  challengeOf(rules: readonly Rule[]): ResourceChallenge | undefined
}

/** `undefined` if no rule accepts tokens: then the paths of metadata belong to the application. */
export function createProtectedResources(
  baseUrl: string,
  { bearerRules }: Pick<Rules, 'bearerRules'>,
  providers: Pick<Providers, 'all' | 'main'>,
): ProtectedResources | undefined {
  const [first] = bearerRules
  if (!first) return undefined
  const metadataUrls = new Map(bearerRules.map(({ path }) => [path, metadataUrlOf(baseUrl, path)]))
  const hostPath = metadataUrls.has('/') ? '/' : first.path
  const documentsWith = (issuers: readonly string[]) => documentsOf(baseUrl, bearerRules, hostPath, issuers)
  let documents = { servers: '', byPath: documentsWith([]) }

  /** The documents change only if a provider reports another issuer than the configuration, which has to be fetched. */
  async function documentFor(path: string): Promise<string | undefined> {
    if (!documents.byPath.has(path)) return undefined
    const issuers = await authorizationServers(providers)
    const servers = issuers.join(' ')
    if (servers !== documents.servers) documents = { servers, byPath: documentsWith(issuers) }
    return documents.byPath.get(path)
  }

  return {
    async answer(pages, request) {
      const { method } = request
      if (method === 'OPTIONS') return preflightAnswer(pages, request)
      if (method !== 'GET' && method !== 'HEAD')
        return errorAnswer(pages, request, 'method_not_allowed', { headers: { ...CORS, allow: METHODS } })
      const document = await documentFor(decodedPath(request.path.slice(RESOURCE_METADATA_PATH.length)))
      // A client in a browser must be able to read this, too: it then requests the document of the whole host.
      if (document === undefined) return errorAnswer(pages, request, 'not_found', { headers: CORS })
      return textAnswer(pages, document, { headers: { ...CORS, 'content-type': 'application/json' } })
    },

    challengeOf(rules) {
      const [rule] = rules
      const metadataUrl = rule?.bearer ? metadataUrls.get(rule.path) : undefined
      return metadataUrl === undefined ? undefined : { metadataUrl, scopes: scopesOf(rules) }
    },
  }
}

const METHODS = 'GET, HEAD, OPTIONS'
const CORS = { 'access-control-allow-origin': '*' }
/** MCP clients send the version of their protocol with every request. */
const PREFLIGHT = {
  ...CORS,
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': 'MCP-Protocol-Version, Authorization, Content-Type',
  'access-control-max-age': '3600',
}

function preflightAnswer({ settings }: Pages, { observed }: GatewayRequest): OwnAnswer {
  const common = new CommonHeaders({ ...safetyHeaders(settings), ...PREFLIGHT })
  return { outcome: 'own', status: 204, common, requestId: observed.requestId, more: [] }
}

/**
 * The address of a rule's resource, as a client writes it: with everything escaped that has to be, and so without quotes.
 * For `/` it is only the address of the host.
 */
function resourceOf(baseUrl: string, path: string): string {
  return baseUrl + escapedPath(path)
}

/** The audiences of a token for it. URL parsers append a slash to the address of a host, which means the same (RFC 3986, 6.2.3). */
export function resourceNames(baseUrl: string, path: string): string[] {
  return path === '/' ? [baseUrl, `${baseUrl}/`] : [resourceOf(baseUrl, path)]
}

function metadataUrlOf(baseUrl: string, path: string): string {
  return baseUrl + RESOURCE_METADATA_PATH + escapedPath(path)
}

function escapedPath(path: string): string {
  return path === '/' ? '' : encodeURI(path.toWellFormed())
}

/** Looks up the document by the path after the prefix. Without a path it is the host's: that of a rule for `/`, otherwise of the first rule. */
function documentsOf(
  baseUrl: string,
  rules: readonly Rule[],
  hostPath: string,
  servers: readonly string[],
): ReadonlyMap<string, string> {
  const documentOf = (path: string) => {
    // Rules for one path may differ by method.
    const scopes = scopesOf(rules.filter(rule => rule.path === path))
    return JSON.stringify({
      resource: resourceOf(baseUrl, path),
      // A list without elements is left out (RFC 9728, 3.2).
      ...(servers.length > 0 && { authorization_servers: servers }),
      ...(scopes.length > 0 && { scopes_supported: scopes }),
      bearer_methods_supported: ['header'],
    })
  }
  const ofHost = documentOf(hostPath)
  return new Map([...rules.map(({ path }): [string, string] => [path, documentOf(path)]), ['', ofHost], ['/', ofHost]])
}

export function scopesOf(rules: readonly Rule[]): string[] {
  return [...new Set(rules.flatMap(({ scopes = [] }) => scopes))]
}

/** The issuers of the tokens that a rule with `bearer` accepts: opaque ones are those of the main provider. */
async function authorizationServers({ all, main }: Pick<Providers, 'all' | 'main'>): Promise<string[]> {
  const judged = all.filter(
    provider => provider.canVerify || (provider === main && provider.plan.endpoints.introspection !== undefined),
  )
  const issuers = await Promise.all(judged.map(provider => provider.authorizationServer()))
  return [...new Set(issuers.filter(issuer => issuer !== undefined))]
}

// The parameters of WWW-Authenticate. None of them comes from a request, and those from the configuration have no quotes.

/** RFC 9728, 5.1, and RFC 6750, 3. */
export function challengeParameters(resource: ResourceChallenge | undefined): string[] {
  return resource ? [metadataParameter(resource), ...scopeParameters(resource.scopes)] : []
}

export function metadataParameter({ metadataUrl }: ResourceChallenge): string {
  return `resource_metadata="${metadataUrl}"`
}

export function scopeParameters(scopes: readonly string[]): string[] {
  return scopes.length > 0 ? [`scope="${scopes.join(' ')}"`] : []
}
