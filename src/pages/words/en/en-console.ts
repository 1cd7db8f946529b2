// What developers read in the console, in English.
import type { Sentences } from '../sentences.ts'
import type { zhConsole } from '../zh-CN/zh-CN-console.ts'

export const enConsole: Sentences<typeof zhConsole> = {
  'console.title': 'Console',
  'console.overview': 'Overview',
  'console.health': 'Health',
  'console.sessions': 'Sessions',
  'console.skip': 'Skip to content',
  'console.language': 'Language',
  'console.signed_in_as': 'My account: {name}',
  'time.now': 'just now',

  'health.title': 'Health',
  'health.results': 'Results',
  'health.check': 'Check',
  'health.result': 'Status',
  'health.seen': 'Finding',
  'health.remedy': 'Remedy',
  'health.good': 'Good',
  'health.warning': 'Warning',
  'health.failure': 'Failure',
  'health.all_good': 'All is well.',
  'health.warnings': 'No failures. Warnings: {warnings}.',
  'health.failures': 'Failures: {failures}. Warnings: {warnings}.',
  'health.times': 'Times of the last hour',
  'health.waited_for': 'Of',
  'health.median': 'Median (p50)',
  'health.slowest': '99th percentile (p99)',
  'health.instances': 'Processes alive',
  'health.runs_on': 'This process runs on Node {node} with the store {store}. All that share the store are listed.',
  'health.instances_unknown': 'When the store is back, the running processes are listed here.',
  'health.machine': 'Machine',
  'health.process': 'Process',
  'health.worker': '{pid} (worker {worker})',
  'health.version': 'Version of Menshen',
  'health.started': 'Started',
  'health.this_one': 'this one',
  'health.hint': 'In a terminal, {doctor} shows the same, and {sign_in} tries a sign-in.',

  'advice.weak_state_check':
    'Only the suffix of the state is checked (STATE_CHECK=suffix): another website can sign a visitor in as somebody else without their knowing. STATE_CHECK=bound prevents it.',
  'advice.https_without_tls':
    'BASE_URL is https, but this service speaks only http and trusts no proxy: all visitors seem to come from one address. Name the proxy in front in TRUSTED_PROXIES, or set TLS_CERT_FILE and TLS_KEY_FILE.',
  'advice.trusts_everybody':
    'TRUSTED_PROXIES has the addresses of strangers: anybody who reaches this service can claim any address and get around the rate limits. Name the proxies alone.',
  'advice.port_of_proxy':
    'There seems to be a proxy in front, but the port of BASE_URL is the one that this service listens on: browsers go past the proxy, or cannot open the page. Set BASE_URL to the proxy’s address and PORT to another port (for example 3000).',
  'advice.tls_without_https':
    'TLS_CERT_FILE and TLS_KEY_FILE are set, but BASE_URL is http: after the sign-in browsers come back to an address that does not open, and cookies are not Secure. Change BASE_URL to https.',
  'advice.unknown_node_env':
    'NODE_ENV is not a known value and counts as production. Set NODE_ENV=production or NODE_ENV=development.',
  'advice.console_for_nobody':
    'The roles of the configuration give nobody the role developer: nobody can see the console.',
  'advice.plain_http_allowed':
    'Production may use http (ALLOW_PLAIN_HTTP=true): tokens and cookies can be read on the way. Change to https.',
  'advice.unverified_email_allowed':
    'E-mail addresses count although the provider has not verified them (ALLOW_UNVERIFIED_EMAIL=true): whoever can write any address there can take the name of another. Turn it off, or say with emailVerified what the provider vouches for.',
}
