// Names under which applications believe what they are told about a request, and the spellings that they take for them.

/** Who is there; from where; what was asked for, and how. One name or more of each family that is known by a prefix. */
export const CLAIMS: readonly string[] = [
  ...['X-Forwarded-User', 'X-Forwarded-Email', 'X-Forwarded-Preferred-Username', 'X-Forwarded-Groups'],
  ...['X-Menshen-Assertion', 'Remote-User', 'X-Remote-User', 'X-WEBAUTH-USER', 'X-User', 'X-User-Id', 'IV-User'],
  ...['SM-User', 'X-Auth-Request-User', 'X-Auth-Request-Email', 'X-Auth-Request-Groups', 'X-Authenticated-User'],
  ...['X-Auth-Request-Preferred-Username', 'X-Authenticated-Userid', 'X-Authenticated-Groups'],
  ...['X-Forwarded-Access-Token', 'X-Forwarded-Roles'],
  ...['Forwarded', 'X-Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'True-Client-IP', 'CF-Connecting-IP', 'X-Client-IP'],
  ...['X-Cluster-Client-IP', 'Fastly-Client-IP', 'X-Forwarded-Client-Cert'],
  ...['X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port', 'X-Forwarded-Prefix', 'X-Forwarded-Uri'],
  ...['X-Forwarded-Method', 'X-Forwarded-Server', 'X-Forwarded-Ssl', 'X-Forwarded-Scheme', 'X-Original-URL'],
  ...['X-Original-URI', 'X-Original-Method', 'X-Original-Host', 'X-Rewrite-URL', 'X-Host', 'X-Scheme', 'Proxy'],
  ...['X-HTTP-Host-Override', 'X-HTTP-Path-Override', 'X-Override-URL', 'X-Proxy-URL', 'Front-End-Https'],
  ...['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'],
]

/** Every sign that a header's name can have besides letters and digits (RFC 9110, 5.6.2). */
const SIGNS = "!#$%&'*+-.^_`|~"

export function spellingsOf(name: string): string[] {
  const signs = [...SIGNS].map(sign => name.replaceAll('-', sign))
  const last = [...SIGNS].map(sign => name.replace(/-(?=[^-]*$)/, sign))
  const first = [...SIGNS].map(sign => name.replace('-', sign))
  return [...new Set([...signs, ...last, ...first, name.toLowerCase(), name.toUpperCase()])]
}
