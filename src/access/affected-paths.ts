// The paths that a request acts on. Most requests act only on the path that they name. Methods of WebDAV (RFC 4918, 3253, 5323, 5842)
// also act on what is below it, and COPY and MOVE on a second path. The rules have to admit the caller to all of them:
//
//   DELETE /files                        /files, and every rule below /files
//   PROPFIND /files, Depth: 0            /files
//   MOVE /files/a, Destination: /other   /files/a and /other, and every rule below each

import type { IncomingHttpHeaders } from 'node:http'
import { isLoopback } from '../config/deployment.ts'
import type { Rule } from '../config/file.ts'
import { connectionHeaders } from '../util/header-list.ts'
import { plainName } from '../util/header-names.ts'
import { isTooLong, type PathProblem, pathProblem } from './request-path.ts'
import type { Subject } from './roles.ts'
import type { Decision, Rules } from './rules.ts'

/** The parts of a request that rules judge. */
export interface RuleRequest {
  readonly method: string
  /** As received. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

/** Why a Destination is refused, whatever the rules say. */
export type DestinationProblem =
  | PathProblem
  | 'too_long'
  | 'not_an_address'
  | 'other_host'
  | 'other_upstream'
  | 'new_uri'

export interface RequestDecision extends Decision {
  /** The second path, if it decided, as in the request. */
  readonly destination?: string
  /** The rules admit the caller to the path, but the Destination cannot be judged. */
  readonly problem?: DestinationProblem
}

/** Whether a request of the method acts on the tree below its path, given its `Depth`. */
const TREE_METHODS: ReadonlyMap<string, (depth: string | undefined) => boolean> = new Map([
  ...['DELETE', 'MOVE', 'SEARCH'].map(method => [method, () => true] as const),
  // Their bodies name something inside the folder that the path names.
  ...['BIND', 'REBIND', 'UNBIND'].map(method => [method, () => true] as const),
  ...['COPY', 'LOCK', 'PROPFIND'].map(method => [method, (depth?: string) => depth !== '0'] as const),
  // Without Depth these act only on the path itself.
  ...['REPORT', 'LABEL', 'UPDATE'].map(method => [method, (depth = '0') => depth !== '0'] as const),
])

/** Whether the request acts on everything below its path as well. */
function actsOnTree({ method, headers }: RuleRequest): boolean {
  return TREE_METHODS.get(method)?.(sentHeader(headers, 'depth')) === true
}

/** Whether the method has a second path. */
export function needsDestination(method: string): boolean {
  return method === 'COPY' || method === 'MOVE'
}

/** A COPY of a folder without its content still replaces the whole destination (RFC 4918, 9.8.4), unless it must not exist. */
function replacesTree({ method, headers }: RuleRequest): boolean {
  return method === 'MOVE' || sentHeader(headers, 'depth') !== '0' || sentHeader(headers, 'overwrite') !== 'F'
}

/** The decision about all paths of a request. `baseUrl` is the address to which it was sent. */
export function decideRequest(
  rules: Rules,
  request: RuleRequest,
  subject: Subject | undefined,
  baseUrl: string,
): RequestDecision {
  const { method, path } = request
  // Nearly all requests.
  if (method === 'GET' || method === 'POST') return rules.decide(method, path, subject)
  const decision = rules.decide(method, path, subject, actsOnTree(request))
  if (!needsDestination(method) || !decision.isAdmitted) return decision
  const destination = readDestination(rules, request, baseUrl)
  if (destination === undefined) return decision
  if ('problem' in destination) return { ...decision, ...destination }
  const second = rules.decide(method, destination.path, subject, replacesTree(request))
  if (!second.isAdmitted) return { ...second, destination: destination.path }
  const conditions = new Set([...(decision.conditions ?? []), ...(second.conditions ?? [])])
  return conditions.size === 0 ? decision : { ...decision, conditions: [...conditions] }
}

/** The decision of a shadow rule, if one decides about any of the paths. */
export function shadowDecision(
  rules: Rules,
  request: RuleRequest,
  subject: Subject | undefined,
  baseUrl: string,
): Decision | undefined {
  const { method, path } = request
  const decision = rules.shadowDecision(method, path, subject, actsOnTree(request))
  if (!needsDestination(method) || (decision && !decision.isAdmitted)) return decision
  const destination = readDestination(rules, request, baseUrl)
  const second =
    destination && 'path' in destination
      ? rules.shadowDecision(method, destination.path, subject, replacesTree(request))
      : undefined
  return second ?? decision
}

/** The rules that decide about any path of a request, the rule of its literal path first. */
export function rulesForRequest(rules: Rules, request: RuleRequest, baseUrl: string): readonly Rule[] {
  const { method, path } = request
  const own = rules.rulesFor(method, path)
  if (!TREE_METHODS.has(method)) return own
  const all = new Set([...own, ...(actsOnTree(request) ? rules.rulesBelow(method, path) : [])])
  const destination = needsDestination(method) ? readDestination(rules, request, baseUrl) : undefined
  if (destination && 'path' in destination) {
    for (const rule of rules.rulesFor(method, destination.path)) all.add(rule)
    if (replacesTree(request)) for (const rule of rules.rulesBelow(method, destination.path)) all.add(rule)
  }
  return [...all]
}

// The second path of COPY and MOVE.

/** An older name, which mod_dav accepts. */
const OLD_NAME = 'new-uri'
/** Without a query, which some servers would treat as part of the path. */
const ADDRESS = /^(?:https?:\/\/([^/?#@\\\s]+))?(\/[^?]*)?$/i

/** `undefined` if there is none: the application refuses such a request. */
function readDestination(
  rules: Rules,
  { path, headers }: RuleRequest,
  baseUrl: string,
): { readonly path: string } | { readonly problem: DestinationProblem } | undefined {
  for (const name in headers) if (plainName(name) === OLD_NAME) return { problem: 'new_uri' }
  const { destination: value } = headers
  if (value === undefined) return undefined
  // Several headers become one text with spaces in between, which no address contains.
  const [match, host, target = '/'] = ADDRESS.exec(value.toString()) ?? []
  if (!match) return { problem: 'not_an_address' }
  if (host !== undefined && !isOwnHost(match, baseUrl)) return { problem: 'other_host' }
  const problem = isTooLong(target) ? 'too_long' : pathProblem(target)
  if (problem) return { problem }
  // The application would take it for one of its own paths.
  return rules.areOfOneUpstream(path, target) ? { path: target } : { problem: 'other_upstream' }
}

/** Compares host and port. Proxies end TLS, so the scheme is not reliable; this machine has several names. */
function isOwnHost(destination: string, baseUrl: string): boolean {
  if (!URL.canParse(destination)) return false
  const [given, own] = [new URL(destination), new URL(baseUrl)]
  return given.host === own.host || (given.port === own.port && isLoopback(destination) && isLoopback(baseUrl))
}

/** A header that `Connection` names does not reach the application. */
function sentHeader(headers: IncomingHttpHeaders, name: 'depth' | 'overwrite'): string | undefined {
  return connectionHeaders(headers.connection)?.has(name) ? undefined : headers[name]?.toString()
}
