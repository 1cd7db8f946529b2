// Every address that is Menshen's own. All others belong to the application behind.

export const OWN_PATHS = {
  login: '/login',
  callback: '/callback',
  logout: '/logout',
  account: '/_menshen/account',
  accountEnd: '/_menshen/account/end',
  assets: '/_menshen/assets/',
  backchannelLogout: '/_menshen/backchannel-logout',
  check: '/_menshen/check',
  console: '/_menshen/console',
  consoleAudit: '/_menshen/console/audit',
  consoleAuditCsv: '/_menshen/console/audit.csv',
  consoleAuditLive: '/_menshen/console/audit/live',
  consoleAuditJson: '/_menshen/console/audit.jsonl',
  consoleEndQuestion: '/_menshen/console/sessions/end',
  consoleHealth: '/_menshen/console/health',
  consoleRules: '/_menshen/console/rules',
  consoleLive: '/_menshen/console/live',
  consoleSession: '/_menshen/console/session',
  consoleSessions: '/_menshen/console/sessions',
  consoleSettings: '/_menshen/console/settings',
  doctor: '/_menshen/doctor',
  doctorSignIn: '/_menshen/doctor/sign-in',
  endSession: '/_menshen/console/end',
  forward: '/_menshen/forward',
  health: '/_menshen/health',
  jwks: '/_menshen/jwks.json',
  language: '/_menshen/language',
  me: '/_menshen/me',
  metrics: '/_menshen/metrics',
  ready: '/_menshen/ready',
  signOutEverywhere: '/_menshen/sign-out-everywhere',
} as const

/** Everything below it is ours, whether or not there is such a page. */
export const OWN_PREFIX = '/_menshen'
const BELOW_PREFIX = `${OWN_PREFIX}/`

/** Where a sign-in passes through: never a place to return to. */
export const SIGN_IN_PATHS: readonly string[] = [OWN_PATHS.login, OWN_PATHS.callback, OWN_PATHS.logout]

/**
 * Each of `providers` sends the browser back to its own address, so that an answer of one is never taken for an answer of
 * another (RFC 9700, 4.4.2.2). An id has no character that would have to be encoded.
 */
export function callbackPathOf(id: string): string {
  return BELOW_CALLBACK + id
}

const BELOW_CALLBACK = `${OWN_PATHS.callback}/`
const NO_PATHS: ReadonlySet<string> = new Set()

/** Those of the configuration's `providers`. Every other path below /callback is the application's. */
export function callbackPathsOf(providers: Readonly<Record<string, unknown>> | undefined): ReadonlySet<string> {
  return providers ? new Set(Object.keys(providers).map(callbackPathOf)) : NO_PATHS
}

/**
 * Whether a path is Menshen's own, so that no route of an application can stand there. With `providers` each has an address of its
 * own, and `callbackPaths` of the instance has them.
 */
export function isOwnPath(path: string, callbackPaths: ReadonlySet<string> | readonly string[] = NO_PATHS): boolean {
  if (path.startsWith(BELOW_PREFIX) || SIGN_IN_PATHS.includes(path)) return true
  if (!path.startsWith(BELOW_CALLBACK)) return false
  return 'has' in callbackPaths ? callbackPaths.has(path) : callbackPaths.includes(path)
}
