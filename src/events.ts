// Every event: one row each with its code, level, sentence and fields. `npm run docs` writes the table of docs/logging.md from them.

export const COMMON_FIELDS = {
  requestId:
    'the request ID; the same as in the response header `X-Request-Id` and under Reference (请求编号) on an error page',
  user: 'the username',
  sub: "the provider's identifier of the user",
  session: 'the first ten characters of the session key, which is a hash of the ticket',
  provider: 'the id of the provider in the configuration, `default` if there is only one',
  address: 'the client address, taken from headers only if they come from `TRUSTED_PROXIES`',
  userAgent: 'the User-Agent of the client, at most 256 characters',
  host: 'the name in `hosts` that the request is for; absent at `BASE_URL`',
  reason: 'the reason, as a code',
  worker: 'the number of the worker process, with `WORKERS`',
  error: 'the code of a Menshen error; [troubleshooting.md](troubleshooting.md) explains them',
  detail: 'the message of that error',
  code: 'the code of the underlying failure, from the system, SQLite or Redis: `ENOSPC`, `SQLITE_FULL`, `READONLY`',
  err: 'any other error: its type, message and stack',
} as const

export type CommonField = keyof typeof COMMON_FIELDS

// One row per event, with its level, its sentence and its fields. Programs that read the log decide by the code; the sentence
// is for people.

export interface EventRow {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  /** Its fields besides the common ones. */
  readonly fields: readonly string[]
  /** Kept in the audit trail. */
  readonly audited?: true
}

export const EVENTS = {
  started: {
    level: 'info',
    message: 'Menshen started',
    fields: ['listening', 'preset', 'provider', 'store', 'workers', 'users', 'config', 'rules', 'upstreams'],
  },
  stopping: { level: 'info', message: 'shutting down: finishing requests in flight', fields: ['signal'] },
  stopped: { level: 'info', message: 'stopped', fields: [] },
  close_failed: { level: 'error', message: 'shutdown incomplete: not everything could be closed', fields: [] },
  settings_missing: {
    level: 'error',
    message: 'users cannot sign in: provider settings are missing',
    fields: ['missing', 'remedy'],
  },
  local_base_url: {
    level: 'warn',
    message: 'NODE_ENV is production, but BASE_URL is an address of this machine: browsers elsewhere cannot sign in',
    fields: ['remedy'],
  },
  hook_failed: {
    level: 'error',
    message: 'the onSignOut hook failed, or a hook timed out. A sign-out still takes effect; a sign-in does not',
    fields: ['hook'],
  },
  misspelt_setting: {
    level: 'warn',
    message: 'unknown setting ignored: the variable looks like a Menshen setting',
    fields: ['setting', 'remedy'],
  },
  weak_state_check: {
    level: 'warn',
    message:
      'the state is checked by its suffix only: another site can sign a visitor in to an account of its choice (login CSRF)',
    fields: ['remedy'],
  },
  https_without_tls: {
    level: 'warn',
    message:
      'BASE_URL is https, but this server serves plain http and trusts no proxy: all visitors appear to have one address',
    fields: ['remedy'],
  },
  trusts_everybody: {
    level: 'warn',
    message:
      'TRUSTED_PROXIES is too broad: anyone who can reach this service can spoof their address and bypass rate limits. List only your proxies.',
    fields: ['remedy'],
  },
  port_of_proxy: {
    level: 'warn',
    message:
      'BASE_URL has the port on which this server serves plain http: behind a proxy, browsers bypass the proxy or find no https',
    fields: ['remedy'],
  },
  tls_without_https: {
    level: 'warn',
    message: 'this server serves https, but BASE_URL is http: browsers are sent to an address that does not respond',
    fields: ['remedy'],
  },
  unknown_node_env: {
    level: 'warn',
    message: 'unknown NODE_ENV value; treated as production',
    fields: ['remedy'],
  },
  open_to_anyone: {
    level: 'warn',
    message:
      'every account of a public provider can sign in: the configuration has no require, roles or rules that restrict access',
    fields: ['remedy'],
  },
  admin_is_developer: {
    level: 'warn',
    message:
      'the configuration has no roles: the user named admin at the provider is a developer and can open the console',
    fields: ['remedy'],
  },
  revoke_without_address: {
    level: 'warn',
    message: 'REVOKE is "always", but the provider has no revocation endpoint: tokens stay valid after sign-out',
    fields: ['remedy'],
  },
  bearer_without_audience: {
    level: 'warn',
    message:
      'a rule accepts access tokens without naming an audience: tokens for this client, or for the address of the rule, are accepted',
    fields: ['remedy'],
  },
  max_age_with_keys: {
    level: 'warn',
    message: 'a rule has both keys and maxAge: it rejects every key, because maxAge needs a sign-in',
    fields: ['remedy'],
  },
  secret_with_line_break: {
    level: 'warn',
    message: 'CLIENT_SECRET ends with a line break, which is sent to the provider as a part of it',
    fields: ['remedy'],
  },
  console_for_nobody: {
    level: 'warn',
    message: 'No one has the developer role, so no one can open the console. Grant it in `roles`.',
    fields: ['remedy'],
  },
  plain_http_allowed: {
    level: 'warn',
    message: 'plain http is allowed in production: tokens and cookies can be intercepted',
    fields: ['remedy'],
  },
  unverified_email_allowed: {
    level: 'warn',
    message:
      'Unverified e-mail addresses are accepted (ALLOW_UNVERIFIED_EMAIL=true): a user who can edit their address at the provider can impersonate someone else.',
    fields: ['remedy'],
  },
  auto_sign_in_without_effect: {
    level: 'warn',
    message: 'AUTO_SIGN_IN has no effect with these providers: all visitors see the login page',
    fields: ['remedy'],
  },
  machine_expired: {
    level: 'warn',
    message: 'a row of machines has expired: its key is rejected',
    fields: ['remedy'],
  },
  internal_error: {
    level: 'error',
    message: 'unhandled error; after an exception this process finishes its requests and is replaced',
    fields: [],
  },
  worker_died: { level: 'error', message: 'worker died; starting another', fields: ['exitCode', 'signal'] },
  worker_not_started: {
    level: 'error',
    message: 'worker could not be started; retrying',
    fields: ['code'],
  },
  inherited_socket_lost: {
    level: 'error',
    message:
      'all workers died and the inherited socket is closed; exiting so that the service manager restarts Menshen',
    fields: [],
  },
  config_reloaded: {
    level: 'info',
    message: 'settings and configuration reloaded',
    // `changed` names settings and parts of the configuration; the other fields are how many there are now.
    fields: ['changed', 'rules', 'upstreams'],
    audited: true,
  },
  config_refused: {
    level: 'error',
    message: 'changed settings or configuration rejected; the previous ones stay in use',
    fields: ['file'],
  },
  certificate_reloaded: { level: 'info', message: 'certificate reloaded', fields: ['file'] },
  certificate_refused: {
    level: 'error',
    message: 'changed certificate rejected; the previous one stays in use',
    fields: ['file'],
  },

  sign_in: {
    level: 'info',
    message: 'signed in',
    // `replaced`: the browser had a session, which this one replaces.
    fields: ['role', 'replaced'],
    audited: true,
  },
  step_up_started: {
    level: 'info',
    message: 'user sent to the provider to sign in again, as a rule requires',
    fields: ['method', 'path'],
  },
  step_up: {
    level: 'info',
    message: 'signed in again, as a rule requires; the new session replaces the old one',
    fields: ['role', 'acr', 'amr'],
    audited: true,
  },
  step_up_failed: {
    level: 'warn',
    // `reason` is auth_time_missing or not_met.
    message: 'signed in again, but the id_token does not meet the rule',
    fields: ['role', 'acr', 'amr'],
    audited: true,
  },
  sign_in_failed: {
    level: 'warn',
    message: 'sign-in failed',
    // In the audit trail, `count` is how many more of the same network, for the same reason, there were in that minute.
    // `step` is `start` if the browser was not sent to the provider.
    fields: ['count', 'hook', 'step'],
    audited: true,
  },
  host_entered: {
    level: 'info',
    message: 'user entered a host in `hosts`',
    fields: ['host'],
    audited: true,
  },
  host_entry_failed: {
    level: 'warn',
    message:
      "user could not enter a host in `hosts`: the code was unknown, already used, from another browser or issued before the sign-out, or the browser did not save the host's cookie",
    fields: ['host'],
  },
  unknown_host: {
    level: 'warn',
    message: 'request for a host that is neither that of BASE_URL nor one of `hosts`',
    fields: ['host'],
  },
  unknown_provider: {
    level: 'warn',
    message:
      'session not accepted and left as it is: this instance has never had its provider in the configuration; reported once per provider',
    fields: ['remedy'],
  },
  sign_in_restarted: {
    level: 'info',
    // `reason` is `used`, or `unknown` for an attempt that has expired or that this browser did not start.
    message:
      'the provider responded to a sign-in attempt that is no longer valid; the code was not redeemed, and the browser was sent to the provider again',
    fields: [],
  },
  sign_out: { level: 'info', message: 'signed out', fields: ['ended'], audited: true },
  session_ended: {
    level: 'info',
    message: 'session ended for a reason other than its own sign-out',
    // `user` and `sub` are the owner of the sessions; `byUser` is the developer or machine that ended them.
    // Without `by` the reason is `idle`, `session_limit`, `refresh_failed` or `unbound`.
    // `during` is `refresh` if the answer of a token refresh ended it.
    fields: ['by', 'byUser', 'ended', 'reason', 'during'],
    audited: true,
  },
  session_end_unconfirmed: {
    level: 'warn',
    message: 'the store failed while a session was being ended: the session may have ended, without another event',
    fields: [],
    audited: true,
  },
  device_bound: {
    level: 'info',
    message: 'session bound to its device: the browser registered a key',
    fields: [],
    audited: true,
  },
  device_refused: {
    level: 'warn',
    message: 'a device proof was rejected; the session is unchanged',
    // `step` is `register` or `refresh`.
    fields: ['step'],
    audited: true,
  },
  device_missing: {
    level: 'warn',
    message:
      'the ticket of a device-bound session came without its second cookie and was rejected: it was copied, or the browser could not prove its device; reported once a minute per session',
    fields: [],
    audited: true,
  },
  no_session_to_end: {
    level: 'info',
    message: 'the provider signed out a user who has no session here',
    fields: ['by', 'ended'],
  },
  previous_session_left: {
    level: 'warn',
    message: 'the session that a new sign-in replaces could not be ended; it expires with its tokens',
    fields: [],
  },
  session_refreshed: { level: 'info', message: 'session tokens refreshed', fields: [] },
  id_token_unverified: {
    level: 'warn',
    message:
      'session tokens refreshed, but the id_token cannot be verified yet: its keys are unavailable, or the clocks differ; the user data stays unchanged until then',
    fields: [],
  },
  session_refresh_failed: { level: 'warn', message: 'token refresh failed', fields: ['outcome'], audited: true },
  identity_changed: {
    level: 'info',
    message: 'the provider returned changed user data; it applies from now on',
    // The names of what changed, never the values.
    fields: ['changed'],
    audited: true,
  },
  identity_refresh_failed: {
    level: 'warn',
    message: 'user data could not be refreshed from the provider; the session continues with the previous data',
    fields: [],
  },
  token_exchange_failed: {
    level: 'warn',
    // `reason` is an error code of the provider or of Menshen, or recently_failed; `upstream` is its prefix.
    message: 'the provider issued no token for an application; the request got 502, and no token was sent',
    fields: ['method', 'path', 'upstream', 'audience'],
  },
  tokens_not_saved: {
    level: 'warn',
    message: 'refreshed tokens could not be saved yet; retrying',
    fields: [],
  },
  short_token_life: {
    level: 'warn',
    message: 'tokens expire within REFRESH_LEAD_SECONDS: every request refreshes them',
    fields: ['expiresIn', 'remedy'],
  },
  last_seen_not_saved: { level: 'warn', message: "a session's last activity could not be saved", fields: [] },
  lease_not_released: {
    level: 'warn',
    message: 'a lease could not be released; it will expire',
    fields: [],
  },
  record_unreadable: { level: 'error', message: 'a session record cannot be decrypted with its ticket', fields: [] },
  newer_format: {
    level: 'error',
    message: 'a record in the store was written by a newer version; it and others like it are treated as absent',
    fields: ['record'],
  },
  data_keys_closed: {
    level: 'warn',
    message:
      'no configured secret can decrypt the data keys of this store: the console does not show the names of other sessions, and signing out everywhere misses them',
    fields: ['record', 'remedy'],
  },
  sign_out_unconfirmed: {
    level: 'info',
    message: 'a browser returned from signing out at the provider without its state: it may still be signed in there',
    fields: [],
  },
  email_step_failed: {
    level: 'warn',
    message: "the user's e-mail address could not be fetched; the sign-in continues without it",
    fields: [],
  },
  email_unverified: {
    level: 'info',
    message: "the user's e-mail address is ignored: the provider does not report it as verified",
    fields: [],
  },
  provider_not_told: { level: 'warn', message: 'the provider could not be notified of a sign-out', fields: [] },
  tokens_not_revoked: {
    level: 'warn',
    message: 'unused tokens could not be revoked; they will expire',
    fields: [],
  },
  sign_in_incomplete: {
    level: 'warn',
    message: 'user signed in, but a later step failed; the session is valid',
    // `limit`: SESSIONS_PER_USER was not enforced. `key_owner`: personal keys keep their former roles.
    fields: ['step'],
  },
  id_token_unusable: {
    level: 'warn',
    message:
      "ID token could not be verified: the provider can end this session only together with all of the user's sessions",
    fields: [],
  },
  metadata_unavailable: {
    level: 'warn',
    message: 'provider metadata is unavailable; users cannot sign in with this provider until it is back',
    fields: [],
  },
  token_refused: { level: 'warn', message: 'an access token was rejected', fields: [] },
  key_created: {
    level: 'info',
    message: 'personal key created',
    fields: ['name', 'expires'],
    audited: true,
  },
  key_used: {
    level: 'info',
    // `key` is machine or personal; `name` is that of a personal key.
    message: 'key used (reported once per key and day, UTC)',
    fields: ['key', 'name'],
    audited: true,
  },
  key_revoked: {
    level: 'info',
    // `name` is that of a single key; `revoked` is how many were revoked with all sessions of their user.
    message: 'personal keys revoked, alone or together with all sessions of their user',
    fields: ['by', 'byUser', 'name', 'revoked'],
    audited: true,
  },
  key_refused: {
    level: 'warn',
    // `reason` is malformed, several (two that differ), unknown, expired, outside_network (not in the machine's `networks`), or
    // not_accepted (the rule has no `keys`, or the machine no `api`).
    message: 'a key was rejected',
    fields: ['method', 'path'],
  },
  key_use_not_saved: { level: 'warn', message: "a personal key's last use could not be saved", fields: [] },
  // `claim` is the part of it that is wrong.
  logout_token_refused: { level: 'warn', message: 'logout token rejected', fields: ['claim'] },
  cookie_lost: {
    level: 'warn',
    message: 'a browser signed in but did not save the session cookie',
    fields: ['baseUrl', 'host'],
  },

  shadow_refused: {
    level: 'warn',
    message: 'a shadow rule would have denied access',
    fields: ['rule', 'method', 'path', 'role'],
  },
  claims_left_out: {
    level: 'warn',
    message: "the user's claims exceed 16 KB: some are dropped, and roles that depend on them are not granted",
    fields: ['claims'],
  },
  identity_cut: {
    level: 'warn',
    message: 'user data too long for applications: the header was truncated, or the claim left out',
    fields: ['header', 'claim'],
  },
  rate_limited: {
    level: 'warn',
    message: 'rate limited: an address exceeded RATE_LIMIT_PER_MINUTE and is rejected for the rest of a minute',
    // `again` if it is not the first of that minute: the audit trail keeps the first.
    fields: ['kind', 'again'],
    audited: true,
  },
  refused: {
    level: 'warn',
    message: 'access denied to a signed-in user',
    // `scope`: the scopes that the path needs, if the token lacks one of them.
    fields: ['method', 'path', 'role', 'key', 'scope'],
    audited: true,
  },
  visitor_refused: {
    level: 'warn',
    message: "access denied to a visitor: outside a public page's networks or hours",
    fields: ['method', 'path'],
  },
  path_refused: {
    level: 'warn',
    message: 'ambiguous or malformed path rejected',
    fields: ['method', 'path'],
  },
  foreign_origin: {
    level: 'warn',
    message: 'cross-site request rejected',
    fields: ['method', 'path', 'origin'],
  },
  request: {
    level: 'info',
    message: 'request completed (ACCESS_LOG)',
    fields: ['method', 'path', 'status', 'bytes', 'ms', 'upstream'],
  },
  metrics_refused: {
    level: 'warn',
    message: 'metrics request rejected',
    // `reason` is address (not in METRICS_FROM) or proxy (from TRUSTED_PROXIES, or with headers that proxies add).
    fields: ['remedy'],
  },
  check_refused: { level: 'warn', message: 'forward-auth request could not be answered', fields: [] },
  request_failed: { level: 'error', message: 'request failed', fields: ['method', 'path'] },
  upgrade_failed: { level: 'error', message: 'upgrade failed', fields: ['path'] },
  upstream_failed: {
    level: 'error',
    message: 'the upstream application did not respond, or its response broke off',
    fields: ['method', 'path', 'upstream'],
  },
  upstream_head_too_large: {
    level: 'error',
    message: "the upstream application's response headers exceed MAX_HEADER_KB",
    fields: ['method', 'path', 'upstream'],
  },
  head_too_large: {
    level: 'warn',
    message: 'request headers exceed MAX_HEADER_KB or 200 fields',
    fields: ['method', 'path'],
  },
  upstream_busy: {
    level: 'warn',
    message: 'request rejected: the upstream application has too many requests in progress or waiting',
    fields: ['method', 'path', 'upstream'],
  },
  address_unknown: {
    level: 'warn',
    message: 'rate limits are off: requests have no client address',
    fields: ['remedy'],
  },
  form_already_read: {
    level: 'warn',
    message: 'a form could not be read: other code had already read the request body',
    fields: ['path', 'remedy'],
  },
  client_cut_off: {
    level: 'info',
    message:
      'client disconnected by CLIENT_TIMEOUT_MS: it read nothing of the response or sent nothing of the body, took too long to send a form, or left too many responses unread',
    fields: [],
  },
  streams_unchecked: {
    level: 'warn',
    message: 'open streams could not be checked against their sessions; they stay open',
    fields: [],
  },

  store_unreachable: { level: 'warn', message: 'store unreachable; retrying', fields: ['store'] },
  store_not_writable: {
    level: 'error',
    message:
      'write to the store failed: users cannot sign in, and `ready` returns 503 until a write succeeds; retried every five seconds',
    fields: [],
  },
  store_writable: { level: 'info', message: 'store writable again', fields: [] },
  store_reachable: { level: 'info', message: 'store reachable again', fields: ['store'] },
  store_evicts: {
    level: 'warn',
    message:
      'Redis drops records when its memory is full: users are signed out, and those who stay signed in may not be found by name, so that ending a user misses their sessions and keys',
    fields: ['store', 'policy', 'remedy'],
  },
  audit_not_written: {
    level: 'error',
    message: 'audit events could not be written yet; they are kept in memory while there is room',
    // `to` is store or file, `count` how many wait, `dropped` how many there was no room for.
    fields: ['to', 'count', 'dropped'],
  },
  audit_written_again: {
    level: 'info',
    message: 'queued audit events written',
    fields: ['to', 'dropped'],
  },
  process_warning: {
    level: 'warn',
    message: 'warning from Node or a library',
    fields: ['name', 'text'],
  },
  console_output: {
    level: 'info',
    message: 'console output from a library or the configuration, where the log is JSON',
    fields: ['text'],
  },
  not_ready: { level: 'error', message: 'not ready to serve', fields: [] },
  console_without_store: {
    level: 'warn',
    message:
      'a developer opened the overview or the health page while the store was unavailable; their session was confirmed at most ten minutes before',
    fields: ['path'],
  },
  login_without_store: { level: 'error', message: 'store unavailable while showing the login page', fields: [] },
} as const satisfies Record<string, EventRow>

export type EventCode = keyof typeof EVENTS

/** The events of the audit trail. */
export type AuditedCode = {
  [Code in EventCode]: (typeof EVENTS)[Code] extends { audited: true } ? Code : never
}[EventCode]

type FieldsOf<Code extends EventCode> = Partial<Record<CommonField | (typeof EVENTS)[Code]['fields'][number], unknown>>

/** Reports an event. */
export type Report = <Code extends EventCode>(code: Code, fields?: FieldsOf<Code>) => void
