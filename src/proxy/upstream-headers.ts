// The headers that the configuration adds to the requests to one application, and its changes to the headers of the answers.

import type { IncomingHttpHeaders } from 'node:http'
import { parseTemplate, type Template, type UpstreamConfig } from '../config/upstreams.ts'
import type { Report } from '../events.ts'
import type { Caller } from '../http/caller.ts'
import { identityFields } from '../session/fields.ts'
import { plainName } from '../util/header-names.ts'
import {
  type EncodedValue,
  encodeBounded,
  encodeHeaderValue,
  encodeNames,
  MAX_ENCODED_LENGTH,
} from '../util/header-values.ts'

/** Names and values in turn. */
type Pairs = readonly string[]

export interface UpstreamHeaders {
  /** In their plain form; headers with these names that a client sends are removed. */
  readonly names: ReadonlySet<string>
  /** Headers without a value are left out. */
  headersFor(caller: Caller | undefined, report: Report): Pairs
}

/** With many applications, the headers of one session must not use more memory than all sessions may. */
const MAX_CACHED_APPLICATIONS = 4

/** `files` are the values that were read from files, by the name of the header. `undefined` without any header. */
export function createUpstreamHeaders(
  { headers = {} }: Pick<UpstreamConfig, 'headers'>,
  files: Readonly<Record<string, string>>,
): UpstreamHeaders | undefined {
  if (Object.keys(headers).length === 0) return undefined
  const constants: string[] = []
  const templates: [name: string, template: Template][] = []
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'object') constants.push(name, files[name] ?? '')
    else {
      const template = parseTemplate(value)
      if (template.fields.length === 0) constants.push(name, value)
      else templates.push([name, template])
    }
  }

  function make(caller: Caller, report: Report): Pairs {
    const pairs = [...constants]
    for (const [name, template] of templates) {
      const { value, isCut } = fill(template, caller)
      if (isCut) report('identity_cut', { ...identityFields(caller), header: name })
      if (value !== '') pairs.push(name, value)
    }
    return pairs
  }

  const upstreamHeaders: UpstreamHeaders = {
    names: new Set(Object.keys(headers).map(plainName)),
    headersFor(caller, report) {
      if (!caller || templates.length === 0) return constants
      const { upstreamHeaders: cached = [] } = caller
      const known = cached.find(({ of }) => of === upstreamHeaders)
      if (known) return known.pairs
      const pairs = make(caller, report)
      caller.upstreamHeaders = [{ of: upstreamHeaders, pairs }, ...cached.slice(0, MAX_CACHED_APPLICATIONS - 1)]
      return pairs
    },
  }
  return upstreamHeaders
}

/** Empty if one of the fields is empty: a part of a value could be another value. */
function fill({ texts, fields }: Template, caller: Caller): EncodedValue {
  let left = MAX_ENCODED_LENGTH - texts.join('').length
  let value = texts[0] ?? ''
  let isCut = false
  for (const [i, field] of fields.entries()) {
    const encoded = encodeField(field, caller, left)
    isCut ||= encoded.isCut
    if (encoded.value === '') return { value: '', isCut }
    left -= encoded.value.length
    value += encoded.value + (texts[i + 1] ?? '')
  }
  return { value, isCut }
}

/** Encoded as in the identity headers: with the provider's id if there are several. */
function encodeField(field: string, { who, user }: Caller, maxLength: number): EncodedValue {
  if (field === 'groups') return encodeNames(who.groups, maxLength)
  if (field === 'nickname') return encodeBounded(user.userInfo.nickname, encodeURIComponent, maxLength)
  const { role, username, sub } = who
  const text = { ...user.userInfo, role, username, sub }[field]
  return encodeBounded(text ?? '', encodeHeaderValue, maxLength)
}

// Changes to the headers of its answers.

/** Keyed by name in lower case; `null` removes the header. */
export type ResponseChanges = Readonly<Record<string, string | null>>

/** `undefined` without any. */
export function responseChangesOf({
  responseHeaders = {},
}: Pick<UpstreamConfig, 'responseHeaders'>): ResponseChanges | undefined {
  const changes = Object.entries(responseHeaders).map(([name, value]) => [name.toLowerCase(), value] as const)
  return changes.length > 0 ? Object.fromEntries(changes) : undefined
}

/** As if the application had sent them: our own rules for answers apply to them as well. */
export function withChanges(changes: ResponseChanges | undefined, headers: IncomingHttpHeaders): IncomingHttpHeaders {
  if (!changes) return headers
  const changed: IncomingHttpHeaders = { ...headers }
  for (const name in changes) changed[name] = changes[name] ?? undefined
  return changed
}
