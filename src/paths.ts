// Every path that is Menshen's own. All others belong to the application.

export const OWN_PATHS = {
  account: '/_menshen/account',
  accountEnd: '/_menshen/account/end',
  accountKeys: '/_menshen/account/keys',
  accountKeysRevoke: '/_menshen/account/keys/revoke',
  api: '/_menshen/api/',
  applications: '/_menshen/applications',
  assets: '/_menshen/assets/',
  authz: '/_menshen/authz/',
  backchannelLogout: '/_menshen/backchannel-logout',
  check: '/_menshen/check',
  console: '/_menshen/console',
  consoleAudit: '/_menshen/console/audit',
  consoleAuditCsv: '/_menshen/console/audit.csv',
  consoleAuditLive: '/_menshen/console/audit/live',
  consoleAuditJson: '/_menshen/console/audit.jsonl',
  consoleConfirmEnd: '/_menshen/console/sessions/end',
  consoleHealth: '/_menshen/console/health',
  consoleRules: '/_menshen/console/rules',
  consoleLive: '/_menshen/console/live',
  consoleSession: '/_menshen/console/session',
  consoleSessions: '/_menshen/console/sessions',
  consoleSettings: '/_menshen/console/settings',
  deviceRefresh: '/_menshen/dbsc/refresh',
  deviceRegister: '/_menshen/dbsc/register',
  doctor: '/_menshen/doctor',
  doctorSignIn: '/_menshen/doctor/sign-in',
  endSession: '/_menshen/console/end',
  handoff: '/_menshen/enter',
  handoffDone: '/_menshen/entered',
  forward: '/_menshen/forward',
  health: '/_menshen/health',
  jwks: '/_menshen/jwks.json',
  language: '/_menshen/language',
  me: '/_menshen/me',
  metrics: '/_menshen/metrics',
  portal: '/_menshen/portal',
  ready: '/_menshen/ready',
  stay: '/_menshen/stay',
  stepUp: '/_menshen/step-up',
  signOutEverywhere: '/_menshen/sign-out-everywhere',
} as const

/** Everything below it is ours, whether or not there is such a page. */
export const OWN_PREFIX = '/_menshen'
const BELOW_PREFIX = `${OWN_PREFIX}/`

/** Whether a path is that of the API, or below. */
export function isApiPath(path: string): boolean {
  return path.startsWith(OWN_PATHS.api) || `${path}/` === OWN_PATHS.api
}

/** Where the metadata of protected resources is (RFC 9728). Ours only where a rule has `bearer`. */
export const RESOURCE_METADATA_PATH = '/.well-known/oauth-protected-resource'

export function isResourceMetadataPath(path: string): boolean {
  const { length } = RESOURCE_METADATA_PATH
  return path.startsWith(RESOURCE_METADATA_PATH) && (path.length === length || path[length] === '/')
}

/** Where a sign-in passes through. The settings can move these paths. */
export interface SignInPaths {
  readonly login: string
  readonly callback: string
  readonly logout: string
}

export const DEFAULT_SIGN_IN_PATHS: SignInPaths = { login: '/login', callback: '/callback', logout: '/logout' }

export interface SignInPathSettings {
  readonly LOGIN_PATH?: string
  readonly CALLBACK_PATH?: string
  readonly LOGOUT_PATH?: string
}

export function signInPathsOf({ LOGIN_PATH, CALLBACK_PATH, LOGOUT_PATH }: SignInPathSettings): SignInPaths {
  const { login, callback, logout } = DEFAULT_SIGN_IN_PATHS
  return { login: LOGIN_PATH || login, callback: CALLBACK_PATH || callback, logout: LOGOUT_PATH || logout }
}

/** The paths of one configuration. */
export interface OwnPaths extends SignInPaths {
  /** The paths to which the providers send browsers back. */
  readonly callbacks: ReadonlySet<string>
  /** All paths of the sign-in, none of which can be a return path. */
  readonly signIn: ReadonlySet<string>
}

/** `ids` are the names of the configuration's `providers`. */
export function ownPathsOf(settings: SignInPathSettings, ids: readonly string[] = []): OwnPaths {
  const paths = signInPathsOf(settings)
  const { login, callback, logout } = paths
  const callbacks = new Set(ids.length > 0 ? ids.map(id => callbackPathOf(callback, id)) : [callback])
  return { ...paths, callbacks, signIn: new Set([login, callback, logout, ...callbacks]) }
}

/**
 * Each of `providers` sends the browser back to its own path, so that an answer of one is never taken for an answer of
 * another (RFC 9700, 4.4.2.2). An id has no character that would have to be encoded.
 */
export function callbackPathOf(callback: string, id: string): string {
  return `${callback}/${id}`
}

const DEFAULT_SIGN_IN: ReadonlySet<string> = new Set(Object.values(DEFAULT_SIGN_IN_PATHS))

/** Whether Menshen answers a path itself. `signInPaths` are those of the instance; without them the defaults apply. */
export function isOwnPath(
  path: string,
  signInPaths: ReadonlySet<string> | readonly string[] = DEFAULT_SIGN_IN,
): boolean {
  if (path.startsWith(BELOW_PREFIX)) return true
  return 'has' in signInPaths ? signInPaths.has(path) : signInPaths.includes(path)
}

const FIXED_ROUTES = [...Object.values(OWN_PATHS), RESOURCE_METADATA_PATH].map(own => own.replace(/\/$/, ''))

/** Whether a path is taken by one of our routes that cannot be moved, or is below or above one. */
export function isFixedRoute(path: string): boolean {
  if (path === OWN_PREFIX) return true
  return FIXED_ROUTES.some(own => areNested(path, own))
}

/** Whether two paths are the same, or one is below the other. */
export function areNested(one: string, other: string): boolean {
  const [a, b] = [`${one}/`.toLowerCase(), `${other}/`.toLowerCase()]
  return a.startsWith(b) || b.startsWith(a)
}
