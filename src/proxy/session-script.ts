// Puts session.js into HTML documents of an application, so that a page notices the end of its session
// (`upstreams[x].sessionScript`). The script is appended to the document: browsers run a script behind `</html>` too, and
// the document streams through unread.

import type { IncomingHttpHeaders } from 'node:http'
import type { Identification, ProxyRequest } from '../http/caller.ts'
import { OWN_PATHS } from '../paths.ts'
import { isForPage } from '../util/fetch-metadata.ts'
import { splitList } from '../util/header-list.ts'

const ADDRESS = `${OWN_PATHS.assets}session.js`
/** Nothing can be appended to a part of a document, nor to a compressed one. */
const NOT_FOR_DOCUMENTS = new Set(['accept-encoding', 'range', 'if-range'])

/** The script is for a page that a signed-in user looks at. */
export function takesSessionScript(
  upstream: { readonly sessionScript: boolean },
  request: ProxyRequest,
  { loaded }: Identification,
): boolean {
  return upstream.sessionScript && loaded !== undefined && request.method === 'GET' && isForPage(request)
}

/** Names and values in turn: the application is asked for the whole document, uncompressed. */
export function headersForDocument(headers: readonly string[]): string[] {
  const kept = headers.filter((_, n) => !NOT_FOR_DOCUMENTS.has((headers[n - (n % 2)] ?? '').toLowerCase()))
  return [...kept, 'accept-encoding', 'identity']
}

/** What is appended to this answer; `undefined` if it is not a document, or if its policy would not run the script. */
export function sessionScriptFor(status: number, headers: IncomingHttpHeaders): Buffer | undefined {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers
  const isDocument = /^\s*text\/html\b/i.test(type) && !/charset\s*=\s*["']?utf-?(?:16|32)/i.test(type)
  if (status < 200 || status === 204 || status === 206 || status === 304) return undefined
  if (!isDocument || encoding.trim().toLowerCase() !== 'identity') return undefined
  const policies = [headers['content-security-policy'] ?? []].flat().flatMap(splitList).map(readPolicy)
  if (!policies.every(policy => allows(policy, 'connect-src'))) return undefined
  const nonces = policies.map(nonceOf)
  const nonce = nonces.find(one => one !== undefined)
  const hasNonce = (n: number) => nonce !== undefined && nonces[n] === nonce
  if (!policies.every((policy, n) => hasNonce(n) || allows(policy, 'script-src'))) return undefined
  return Buffer.from(`<script type="module" src="${ADDRESS}"${nonce ? ` nonce="${nonce}"` : ''}></script>\n`)
}

/** The headers of an answer that gets longer by this many bytes. */
export function headersOfLonger(headers: IncomingHttpHeaders, bytes: number): IncomingHttpHeaders {
  const { 'content-length': length, 'content-md5': _md5, digest: _digest, 'accept-ranges': _ranges, ...kept } = headers
  const { 'content-digest': _contentDigest, 'repr-digest': _reprDigest, ...others } = kept
  return length === undefined ? others : { ...others, 'content-length': String(Number(length) + bytes) }
}

type Policy = ReadonlyMap<string, readonly string[]>

/** Content Security Policy: directives with their sources; the first of a name applies. */
function readPolicy(text: string): Policy {
  const policy = new Map<string, string[]>()
  for (const directive of text.split(';')) {
    const [name = '', ...sources] = directive.trim().split(/\s+/)
    if (!policy.has(name.toLowerCase())) policy.set(name.toLowerCase(), sources)
  }
  return policy
}

function sourcesOf(policy: Policy, name: 'script-src' | 'connect-src'): readonly string[] | undefined {
  const specific = name === 'script-src' ? policy.get('script-src-elem') : undefined
  return specific ?? policy.get(name) ?? policy.get('default-src')
}

/** Whether our own origin is allowed, as far as that can be decided without knowing it. */
function allows(policy: Policy, name: 'script-src' | 'connect-src'): boolean {
  const sources = sourcesOf(policy, name)
  if (sources === undefined) return true
  if (name === 'script-src' && sources.some(source => source.toLowerCase() === "'strict-dynamic'")) return false
  return sources.some(source => source.toLowerCase() === "'self'" || source === '*')
}

function nonceOf(policy: Policy): string | undefined {
  for (const source of sourcesOf(policy, 'script-src') ?? []) {
    const [, nonce] = /^'nonce-([\w+/-]+={0,2})'$/i.exec(source) ?? []
    if (nonce) return nonce
  }
  return undefined
}
