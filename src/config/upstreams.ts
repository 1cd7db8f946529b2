// The configuration of an upstream application: its schema, and the templates of its headers.

import { z } from 'zod'
import { type Phrase, phrase, quoted } from '../text/text.ts'
import { ALWAYS_REMOVED, plainName } from '../util/header-names.ts'
import { issueText } from './issue-text.ts'
import { audience, type Kind, upstream } from './kinds.ts'
import { type PortalKeys, portalShape } from './portal.ts'
import { type SecretReference, secretReference } from './secret-references.ts'
import { closestName } from './suggestions.ts'

export interface UpstreamConfig extends PortalKeys {
  /** The address of the application without a path: http, https, h2c, or `unix:/path/of/socket`. */
  readonly url: string
  /** The audience of the signed assertion; by default the address. */
  readonly audience?: string | undefined
  /** The Host that it receives: the browser's, its own, or a name. By default UPSTREAM_HOST_HEADER. */
  readonly host?: string | undefined
  /** Removes the prefix: `/grafana/x` becomes `/x`. Rules judge the path with the prefix. */
  readonly stripPrefix?: boolean | undefined
  /** Adds the script that notices the end of the session to its HTML documents. */
  readonly sessionScript?: boolean | undefined
  /** Headers that it receives. `{username}` is a field of the user; the value of a secret can be in a variable or a file. */
  readonly headers?: Readonly<Record<string, string | SecretReference>> | undefined
  /** Headers to set in its answers; `null` removes one. */
  readonly responseHeaders?: Readonly<Record<string, string | null>> | undefined
  /**
   * Whether it receives the user's access token, or which token it receives instead, by token exchange. By default
   * FORWARD_ACCESS_TOKEN.
   */
  readonly accessToken?: boolean | TokenExchangeConfig | undefined
  /** The certificate authority of its certificate. By default UPSTREAM_CA_FILE. */
  readonly caFile?: string | undefined
  /** Our client certificate for it; the key is in `keyFile`. */
  readonly certFile?: string | undefined
  /** The key of the client certificate in `certFile`. */
  readonly keyFile?: string | undefined
  /** How long its answer may take to begin. By default UPSTREAM_HEADERS_TIMEOUT_MS. */
  readonly timeoutSeconds?: number | undefined
}

/** A token that the provider gives in exchange for the user's access token (RFC 8693). One of the first three is needed. */
export interface TokenExchangeConfig {
  /** The name by which the provider knows the application. */
  readonly audience?: string | undefined
  /** The address of the application. */
  readonly resource?: string | undefined
  /** The scopes of the token, separated by spaces. */
  readonly scope?: string | undefined
  /** `entra` uses the on-behalf-of flow of Microsoft Entra, which supports only a scope. */
  readonly exchange?: 'entra' | undefined
}

// All applications of a configuration.

export interface UpstreamsConfig {
  readonly upstreams?: Readonly<Record<string, string | UpstreamConfig>> | undefined
  readonly hosts?:
    | Readonly<
        Record<
          string,
          PortalKeys & {
            readonly upstream?: string | UpstreamConfig | undefined
            readonly upstreams?: Readonly<Record<string, string | UpstreamConfig>> | undefined
          }
        >
      >
    | undefined
}

interface LocatedUpstream {
  /** Where it is in the configuration. */
  readonly path: readonly string[]
  readonly prefix: string
  readonly option: string | UpstreamConfig
}

/** The upstreams of BASE_URL and of every host. */
export function listUpstreams({ upstreams = {}, hosts = {} }: UpstreamsConfig): LocatedUpstream[] {
  const placed = (given: NonNullable<UpstreamsConfig['upstreams']>, below: readonly string[]) =>
    Object.entries(given).map(([prefix, option]) => ({ path: [...below, 'upstreams', prefix], prefix, option }))
  const ofHosts = Object.entries(hosts).flatMap(([name, { upstream: root, upstreams = {} }]) => [
    ...(root === undefined ? [] : [{ path: ['hosts', name, 'upstream'], prefix: '/', option: root }]),
    ...placed(upstreams, ['hosts', name]),
  ])
  return [...placed(upstreams, []), ...ofHosts]
}

// Names and values of headers.

const NAME = /^[\w!#$%&'*+.^`|~-]{1,100}$/
/** Text that a header can carry unchanged. Spaces at the ends would be lost. */
export const HEADER_TEXT = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
const TEXT_EXPECTED = issueText(phrase('config.header_text'))
/** Longer headers break many applications. */
export const MAX_HEADER_VALUE_LENGTH = 8192
/** The rest of MAX_HEADER_VALUE_LENGTH is for the fields. */
const MAX_TEMPLATE_LENGTH = 1024

/** Header names in their plain form. Menshen sets them, or they frame the message. */
const FORBIDDEN_REQUEST_HEADERS: ReadonlySet<string> = new Set([
  ...ALWAYS_REMOVED,
  ...['cookie', 'content-length', 'http2-settings', 'traceparent', 'tracestate'],
])

/** Header names in their plain form. They frame the message, encode it, or belong to the session. */
const FORBIDDEN_RESPONSE_HEADERS: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'content-length', 'content-encoding', 'content-range', 'set-cookie'],
  ...['clear-site-data', 'x-request-id'],
])

function nameProblem(name: string, refused: ReadonlySet<string>): Phrase | undefined {
  if (!NAME.test(name)) return phrase('config.header_name')
  const plain = plainName(name)
  if (!refused.has(plain) && !plain.startsWith('sec-websocket-')) return undefined
  return phrase('config.header_taken')
}

/** Finds one problem per name that cannot be used; several spellings of one name are one header. */
function refuseNames(names: readonly string[], refused: ReadonlySet<string>, context: z.RefinementCtx): void {
  for (const [i, name] of names.entries()) {
    const twin = names.slice(0, i).find(other => plainName(other) === plainName(name))
    const problem =
      twin === undefined ? nameProblem(name, refused) : phrase('config.header_twice', { twin: JSON.stringify(twin) })
    if (problem !== undefined) context.addIssue({ code: 'custom', path: [name], message: issueText(problem) })
  }
}

const headerText = z
  .string()
  .superRefine((text, context) => {
    if (!HEADER_TEXT.test(text)) context.addIssue(TEXT_EXPECTED)
    else if (text.length > MAX_HEADER_VALUE_LENGTH)
      context.addIssue(issueText(phrase('config.expected_at_most', { limit: MAX_HEADER_VALUE_LENGTH })))
  })
  .meta({ pattern: HEADER_TEXT.source, maxLength: MAX_HEADER_VALUE_LENGTH })

// Templates: text with fields of the user.

/** Texts and field names, alternating; a template begins and ends with text, which may be empty. */
export interface Template {
  readonly texts: readonly string[]
  readonly fields: readonly string[]
}

const FIELD = /\{([a-z]\w*)\}/gi

/** Reads a text that the schema has accepted. */
export function parseTemplate(text: string): Template {
  const parts = text.split(FIELD)
  return { texts: parts.filter((_, i) => i % 2 === 0), fields: parts.filter((_, i) => i % 2 === 1) }
}

const template = headerText
  .superRefine((text, context) => {
    const { texts, fields } = parseTemplate(text)
    if (/[$%]\{/.test(text)) context.addIssue(issueText(phrase('config.field_sign', { username: '{username}' })))
    else if (texts.some(part => /[{}]/.test(part)))
      context.addIssue(issueText(phrase('config.field_braces', { username: '{username}' })))
    else if (fields.length > 0 && text.length > MAX_TEMPLATE_LENGTH)
      context.addIssue(issueText(phrase('config.template_length', { limit: MAX_TEMPLATE_LENGTH })))
  })
  .meta({ pattern: HEADER_TEXT.source, maxLength: MAX_HEADER_VALUE_LENGTH })

/** Fields of every user. A provider can map others. */
export const TEMPLATE_FIELDS: readonly string[] = [
  ...['sub', 'username', 'nickname', 'email', 'phone_number', 'ou_id', 'ou_name', 'role', 'groups'],
]

type Refuse = (path: PropertyKey[], given: Phrase) => void

/** The parts of a configuration that are needed here. */
interface WithUpstreams extends UpstreamsConfig {
  readonly provider?: string | { readonly fields?: object | undefined } | undefined
  readonly providers?: Readonly<Record<string, { readonly fields?: object | undefined }>> | undefined
}

/** A misspelt field would be a header that is never sent. */
export function refuseUnknownFields(config: WithUpstreams, refuse: Refuse): void {
  const { provider, providers = {} } = config
  const mapped = [provider, ...Object.values(providers)].flatMap(one =>
    typeof one === 'object' ? Object.keys(one.fields ?? {}) : [],
  )
  const known = [...new Set([...TEMPLATE_FIELDS, ...mapped])]
  for (const { path, option } of listUpstreams(config))
    for (const [name, value] of Object.entries(typeof option === 'string' ? {} : (option.headers ?? {}))) {
      const given = typeof value === 'string' ? value : ''
      const at = [...path, 'headers', name]
      for (const field of parseTemplate(given).fields)
        if (!known.includes(field)) refuse(at, unknownField(field, known))
      // Other products write fields like this; here it would be sent literally.
      const [, likely = ''] = /^\$(\w+)$/.exec(given) ?? []
      if (known.includes(likely)) refuse(at, phrase('config.field_likely', { likely: `{${likely}}` }))
    }
}

function unknownField(name: string, known: readonly string[]): Phrase {
  const likely = closestName(name, known)
  const field = `{${name}}`
  return likely === undefined
    ? phrase('config.no_such_field', { field, known })
    : phrase('config.no_such_field_likely', { field, likely: `{${likely}}` })
}

// The schema.

function expectedKind({
  expected,
  expectedZh,
  example,
}: Pick<Kind<unknown>, 'expected' | 'expectedZh' | 'example'>): string {
  return issueText(
    phrase('config.expected_kind', { expected: quoted(expected, expectedZh), example: JSON.stringify(example) }),
  )
}

/** zod would report what is wrong with one kind of address instead of what is expected. */
const upstreamUrl = z
  .string()
  .transform((given, context) => {
    const { success, data } = upstream.check.safeParse(given)
    if (success) return data
    context.addIssue(expectedKind(upstream))
    return z.NEVER
  })
  .meta({ pattern: '^\\s*[A-Za-z][A-Za-z\\d]*:' })

const sentHost = z
  .string()
  .refine(isSentHost, issueText(phrase('config.sent_host')))
  .meta({ pattern: '^\\S+$' })

/** `Browser` is a mistake, not the name of a host. */
function isSentHost(text: string): boolean {
  if (/^(?:browser|upstream)$/i.test(text)) return text === text.toLowerCase()
  const [, name] = /^([a-z\d](?:[a-z\d.-]*[a-z\d])?)(?::\d+)?$/i.exec(text) ?? []
  return name !== undefined && URL.parse(`http://${text}`)?.hostname === name.toLowerCase()
}

const AUDIENCE = /^[\x21-\x7e](?:[\x20-\x7e]{0,998}[\x21-\x7e])?$/
/** RFC 6749, 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

export const tokenExchange = z
  .strictObject({
    audience: z
      .string()
      .regex(AUDIENCE, issueText(phrase('config.ascii_text')))
      .optional(),
    resource: z
      .string()
      .refine(isResource, issueText(phrase('config.resource')))
      .meta({ pattern: '^[A-Za-z][A-Za-z\\d+.-]*:[^#\\s]*$' })
      .optional(),
    scope: z
      .string()
      .max(1000)
      .regex(SCOPE, issueText(phrase('config.scopes_text')))
      .optional(),
    exchange: z.literal('entra', { error: issueText(phrase('config.exchange_value')) }).optional(),
  })
  .refine(({ audience, resource, scope }) => audience !== undefined || resource !== undefined || scope !== undefined, {
    message: issueText(phrase('config.exchange_target')),
    when: ({ issues }) => issues.length === 0,
  })
  .meta({ anyOf: [{ required: ['audience'] }, { required: ['resource'] }, { required: ['scope'] }] })

/** RFC 8707, 2. */
function isResource(text: string): boolean {
  return AUDIENCE.test(text) && URL.canParse(text) && !/[#\s]/.test(text)
}

const path = z.string().min(1)
const [MIN_SECONDS, MAX_SECONDS] = [0.1, 86_400]

export const upstreamOrObject = z.union([
  upstreamUrl,
  z
    .strictObject({
      url: upstreamUrl,
      audience: z
        .string()
        .refine(text => audience.check.safeParse(text).success, expectedKind(audience))
        .meta({ minLength: 1, maxLength: 200 })
        .optional(),
      host: sentHost.optional(),
      stripPrefix: z.boolean().optional(),
      sessionScript: z.boolean().optional(),
      headers: z
        .record(z.string(), z.union([template, secretReference]))
        .superRefine((headers, context) => refuseNames(Object.keys(headers), FORBIDDEN_REQUEST_HEADERS, context))
        .optional(),
      responseHeaders: z
        .record(z.string(), headerText.nullable())
        .superRefine((headers, context) => refuseNames(Object.keys(headers), FORBIDDEN_RESPONSE_HEADERS, context))
        .optional(),
      accessToken: z.union([z.boolean(), tokenExchange]).optional(),
      caFile: path.optional(),
      certFile: path.optional(),
      keyFile: path.optional(),
      timeoutSeconds: z.number().min(MIN_SECONDS).max(MAX_SECONDS).optional(),
      ...portalShape,
    })
    .superRefine(({ url, certFile, keyFile, caFile }, context) => {
      const refuse: Refuse = (path, given) => context.addIssue({ code: 'custom', path, message: issueText(given) })
      if (certFile !== undefined && keyFile === undefined) refuse(['certFile'], phrase('config.certificate_needs_key'))
      if (keyFile !== undefined && certFile === undefined) refuse(['keyFile'], phrase('config.key_needs_certificate'))
      if (url.startsWith('https:')) return
      for (const [name, file] of Object.entries({ caFile, certFile, keyFile }))
        if (file !== undefined) refuse([name], phrase('config.only_for_tls'))
    }),
])
