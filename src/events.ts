// Every event: one row each with its code, level, sentence and fields. `npm run docs` writes the table of docs/logging.md from them.

export const COMMON_FIELDS = {
  requestId: 'the request that it happened for; the same as `X-Request-Id` of its answer and 请求编号 on its page',
  user: 'the username',
  sub: "the provider's own identifier of the user",
  session: 'the first ten characters of the key of the session, which is a hash of its ticket',
  provider: 'the id of the provider in the configuration, `default` if there is only one',
  address: 'of the client, as far as `TRUSTED_PROXIES` are believed about it',
  userAgent: 'what the client calls itself, at most 256 characters',
  reason: 'why, as a code',
  worker: 'the number of the process, with `WORKERS`',
  error: 'the code of an error of ours; [troubleshooting.md](troubleshooting.md) explains them',
  detail: 'the sentence of that error',
  code: 'the code of the failure behind that error, of the system, SQLite or Redis: `ENOSPC`, `SQLITE_FULL`, `READONLY`',
  err: 'an error of somebody else: its type, message and stack',
} as const

export type CommonField = keyof typeof COMMON_FIELDS

// Events of a reload: rows of the one table below.

export const RELOAD_EVENTS = {
  config_reloaded: {
    level: 'info',
    sentence: 'settings and configuration were read again from their files and are in use',
    // `changed` names settings and parts of the configuration; of the others it is how many there are now.
    fields: ['changed', 'rules', 'upstreams'],
    audited: true,
  },
  config_refused: {
    level: 'error',
    sentence: 'settings or configuration have changed and cannot be used; everything stays as it was',
    fields: ['file'],
  },
  certificate_reloaded: { level: 'info', sentence: 'the changed certificate is in use', fields: ['file'] },
  certificate_refused: {
    level: 'error',
    sentence: 'the changed certificate cannot be used; the old one stays',
    fields: ['file'],
  },
} as const satisfies Record<string, EventRow>

// One row per event, with its level, its sentence and its fields. Programs that read the log decide by the code; the sentence
// is for people.

export interface EventRow {
  readonly level: 'info' | 'warn' | 'error'
  readonly sentence: string
  /** Its fields besides the common ones. */
  readonly fields: readonly string[]
  /** Kept in the audit trail. */
  readonly audited?: true
}

export const EVENTS = {
  started: {
    level: 'info',
    sentence: 'Menshen has started',
    fields: ['listening', 'preset', 'provider', 'store', 'workers', 'users', 'config', 'rules', 'upstreams'],
  },
  stopping: { level: 'info', sentence: 'finishing what is under way, then ending', fields: ['signal'] },
  stopped: { level: 'info', sentence: 'everything is closed', fields: [] },
  close_failed: { level: 'error', sentence: 'not everything could be closed', fields: [] },
  settings_missing: {
    level: 'error',
    sentence: 'nobody can sign in: settings of the provider are missing',
    fields: ['missing', 'remedy'],
  },
  local_base_url: {
    level: 'warn',
    sentence: 'NODE_ENV says production, and BASE_URL is an address of this machine; browsers elsewhere cannot sign in',
    fields: ['remedy'],
  },
  hook_failed: {
    level: 'error',
    sentence:
      'a function of the application that was to hear of a sign-out failed, or one of them was not done in time; who signed out is signed out, who signed in is not signed in',
    fields: ['hook'],
  },
  misspelt_setting: {
    level: 'warn',
    sentence: 'a variable looks like a setting, but there is none of this name; it has no effect',
    fields: ['setting', 'remedy'],
  },
  weak_state_check: {
    level: 'warn',
    sentence:
      'the state is checked by its suffix only: another site can sign a visitor in as somebody else (login CSRF)',
    fields: ['remedy'],
  },
  https_without_tls: {
    level: 'warn',
    sentence:
      'BASE_URL is https, but this server speaks plain http and trusts no proxy: all visitors seem to come from one address',
    fields: ['remedy'],
  },
  trusts_everybody: {
    level: 'warn',
    sentence:
      'TRUSTED_PROXIES has the addresses of strangers: anyone who reaches this server can say which address they come from, and so get around every limit, and which page they ask about',
    fields: ['remedy'],
  },
  port_of_proxy: {
    level: 'warn',
    sentence:
      'BASE_URL has the port where this server itself listens with plain http: behind a proxy, browsers are sent past it or find no https',
    fields: ['remedy'],
  },
  tls_without_https: {
    level: 'warn',
    sentence: 'this server speaks https, but BASE_URL is http: browsers are sent to an address that does not answer',
    fields: ['remedy'],
  },
  unknown_node_env: {
    level: 'warn',
    sentence: 'NODE_ENV is not a word that we know; it counts as production',
    fields: ['remedy'],
  },
  open_to_anyone: {
    level: 'warn',
    sentence:
      'every account of a public provider can sign in: the configuration has no require, no roles and no rules that restrict who gets in',
    fields: ['remedy'],
  },
  admin_is_developer: {
    level: 'warn',
    sentence:
      'the configuration has no roles: the user with the name admin at the provider is a developer, who can see the console',
    fields: ['remedy'],
  },
  revoke_without_address: {
    level: 'warn',
    sentence: 'REVOKE is "always", but the provider has no revocation address: tokens stay valid after a sign-out',
    fields: ['remedy'],
  },
  bearer_without_audience: {
    level: 'warn',
    sentence:
      'a rule accepts access tokens and names no audience: tokens for this client, or for the address of the rule, are accepted',
    fields: ['remedy'],
  },
  max_age_with_keys: {
    level: 'warn',
    sentence: 'a rule with keys also has maxAge, which needs a sign-in: it refuses every key',
    fields: ['remedy'],
  },
  console_for_nobody: {
    level: 'warn',
    sentence: 'roles give nobody the role developer: nobody can see the console',
    fields: ['remedy'],
  },
  plain_http_allowed: {
    level: 'warn',
    sentence: 'plain http is allowed in production: tokens and cookies can be read on the way',
    fields: ['remedy'],
  },
  unverified_email_allowed: {
    level: 'warn',
    sentence:
      'e-mail addresses count although the provider has not verified them: anyone who can write any address there can take the name of another',
    fields: ['remedy'],
  },
  auto_sign_in_without_effect: {
    level: 'warn',
    sentence: 'AUTO_SIGN_IN has no effect with these providers: everybody sees the login page',
    fields: ['remedy'],
  },
  machine_expired: {
    level: 'warn',
    sentence: 'a row of machines has expired: its key is refused',
    fields: ['remedy'],
  },
  internal_error: {
    level: 'error',
    sentence:
      'an error that no code handles; after an exception this process finishes its requests, and another takes its place',
    fields: [],
  },
  worker_died: { level: 'error', sentence: 'a worker died and is replaced', fields: ['exitCode', 'signal'] },
  worker_not_started: {
    level: 'error',
    sentence: 'a worker could not be started; it is tried again',
    fields: ['code'],
  },
  inherited_socket_lost: {
    level: 'error',
    sentence:
      'all workers have died, and the inherited socket is closed; ending, so that the service manager starts again',
    fields: [],
  },
  ...RELOAD_EVENTS,

  sign_in: {
    level: 'info',
    sentence: 'signed in',
    // `replaced`: the browser had a session, which this one replaces.
    fields: ['role', 'replaced'],
    audited: true,
  },
  step_up_started: {
    level: 'info',
    sentence: 'somebody who is signed in was sent to the provider to sign in again, as a rule wants it',
    fields: ['method', 'path'],
  },
  step_up: {
    level: 'info',
    sentence: 'signed in again, as a rule wants it; the new session replaces the old one',
    fields: ['role', 'acr', 'amr'],
    audited: true,
  },
  step_up_failed: {
    level: 'warn',
    // `reason` is auth_time_missing or not_met.
    sentence: 'signed in again, but the id_token does not say what a rule wants',
    fields: ['role', 'acr', 'amr'],
    audited: true,
  },
  sign_in_failed: {
    level: 'warn',
    sentence: 'a sign-in failed',
    // In the audit trail: how many more of the same network, for the same reason, there were in that minute.
    // `step` is `start` if the browser was not sent to the provider.
    fields: ['count', 'hook', 'step'],
    audited: true,
  },
  host_entered: {
    level: 'info',
    sentence: 'a signed-in user has entered a host of `hosts`',
    fields: ['host'],
    audited: true,
  },
  host_entry_failed: {
    level: 'warn',
    sentence:
      'the entry of a host of `hosts` failed: its code was unknown or spent, came from another browser or after the sign-out, or the entries of a page repeat because the browser keeps no cookie of the host',
    fields: ['host'],
  },
  unknown_host: {
    level: 'warn',
    sentence: 'a request came for a host that is neither that of BASE_URL nor one of `hosts`',
    fields: ['host'],
  },
  sign_in_restarted: {
    level: 'info',
    // `reason` is `used`, or `unknown` for an attempt that has expired or that this browser did not start.
    sentence:
      'an answer of the provider came for an attempt that is over; its code was not redeemed, and the browser was sent to the provider again',
    fields: [],
  },
  sign_out: { level: 'info', sentence: 'signed out', fields: ['ended'], audited: true },
  session_ended: {
    level: 'info',
    sentence: 'sessions ended, and not by a sign-out of their browser',
    // Whose sessions they were is `user` and `sub`; a developer who ended them is `byUser`.
    // Without `by` the reason is `idle`, `session_limit`, `refresh_failed` or `unbound`.
    // `during` is `refresh` if the answer of a token refresh ended it.
    fields: ['by', 'byUser', 'ended', 'reason', 'during'],
    audited: true,
  },
  device_bound: {
    level: 'info',
    sentence: 'a browser has registered its key: the session counts for this device alone',
    fields: [],
    audited: true,
  },
  device_refused: {
    level: 'warn',
    sentence: 'what a browser sent to prove its device does not count; the session stays as it was',
    // `step` is `register` or `refresh`.
    fields: ['step'],
    audited: true,
  },
  device_missing: {
    level: 'warn',
    sentence:
      'the ticket of a session that is bound to a device came without its second cookie, and counts for nothing: it was copied, or the browser could not prove itself; reported once a minute for each session',
    fields: [],
    audited: true,
  },
  no_session_to_end: { level: 'info', sentence: 'the provider ended no session of ours', fields: ['by', 'ended'] },
  previous_session_left: {
    level: 'warn',
    sentence: 'the session that a new sign-in replaces could not be ended; it ends with its tokens',
    fields: [],
  },
  session_refreshed: { level: 'info', sentence: 'the tokens of a session were refreshed', fields: [] },
  id_token_unverified: {
    level: 'warn',
    sentence:
      'the tokens of a session were refreshed, and the keys for the id_token are not available; it is verified later, and until then the user stays as before',
    fields: [],
  },
  session_refresh_failed: { level: 'warn', sentence: 'a refresh failed', fields: ['outcome'], audited: true },
  identity_changed: {
    level: 'info',
    sentence: 'the provider says something else about a user than before; it counts from now on',
    // The names of what changed, never the values.
    fields: ['changed'],
    audited: true,
  },
  identity_refresh_failed: {
    level: 'warn',
    sentence: 'the provider could not be asked again who a user is; the session goes on with what it said before',
    fields: [],
  },
  token_exchange_failed: {
    level: 'warn',
    // `reason` is an error code of the provider or of ours, or recently_failed; `upstream` is its prefix.
    sentence: 'the provider gave no token for an application; the request was answered with 502, and no token was sent',
    fields: ['method', 'path', 'upstream', 'audience'],
  },
  tokens_not_saved: {
    level: 'warn',
    sentence: 'refreshed tokens could not be saved yet; trying again',
    fields: [],
  },
  short_token_life: {
    level: 'warn',
    sentence: 'tokens live no longer than REFRESH_LEAD_SECONDS: every request refreshes them',
    fields: ['expiresIn', 'remedy'],
  },
  last_seen_not_saved: { level: 'warn', sentence: 'when a session was last seen could not be saved', fields: [] },
  lease_not_released: {
    level: 'warn',
    sentence: 'a lease was not given back; it runs out by itself',
    fields: [],
  },
  record_unreadable: { level: 'error', sentence: 'a record does not open with its own ticket', fields: [] },
  newer_format: {
    level: 'error',
    sentence: 'the store has a record of a newer version than this one; it counts as absent, and others like it too',
    fields: ['record'],
  },
  data_keys_closed: {
    level: 'warn',
    sentence:
      'no secret of ours opens the data keys of this store. Either SECRET, or without it CLIENT_SECRET, was replaced: put the former one behind the new one in SECRET. Or another Menshen with another secret uses the same store: give each its own folder, or its own prefix in Redis. Until then the console does not know the names of other sessions, and signing out everywhere misses them',
    fields: ['record'],
  },
  sign_out_unconfirmed: {
    level: 'info',
    sentence:
      'a browser came back from signing out at the provider without the state that it left with: it may still be signed in there',
    fields: [],
  },
  email_step_failed: {
    level: 'warn',
    sentence: 'the e-mail address of a user could not be asked for; the sign-in goes on without it',
    fields: [],
  },
  email_unverified: {
    level: 'info',
    sentence: 'the provider does not say that it has verified the e-mail address of this user, so it does not count',
    fields: [],
  },
  provider_not_told: { level: 'warn', sentence: 'the provider could not be told of a sign-out', fields: [] },
  tokens_not_revoked: {
    level: 'warn',
    sentence: 'tokens that will not be used could not be revoked; they expire',
    fields: [],
  },
  sign_in_incomplete: {
    level: 'warn',
    sentence: 'a user has signed in, and a later step failed; the session is valid',
    // `limit`: SESSIONS_PER_USER was not enforced. `key_owner`: personal keys keep the roles of before.
    fields: ['step'],
  },
  id_token_unusable: {
    level: 'warn',
    sentence: 'an ID token could not be verified: the provider can end this session only together with all of its user',
    fields: [],
  },
  metadata_unavailable: {
    level: 'warn',
    sentence: 'the metadata of the provider cannot be had; nobody can sign in through it until it can',
    fields: [],
  },
  token_refused: { level: 'warn', sentence: 'an access token that somebody brought was refused', fields: [] },
  key_created: {
    level: 'info',
    sentence: 'a user has made a personal key',
    fields: ['name', 'expires'],
    audited: true,
  },
  key_used: {
    level: 'info',
    // `key` is machine or personal; `name` is that of a personal key.
    sentence: 'a key was used, reported once per key and day (UTC)',
    fields: ['key', 'name'],
    audited: true,
  },
  key_revoked: {
    level: 'info',
    // `name` of one; `revoked` is how many ended with their user.
    sentence: 'personal keys were revoked, or ended with their user',
    fields: ['by', 'byUser', 'name', 'revoked'],
    audited: true,
  },
  key_refused: {
    level: 'warn',
    // `reason` is form, several (two that differ), unknown, expired, or not_accepted (the rule has no `keys`).
    sentence: 'a key that somebody brought was refused',
    fields: [],
  },
  key_use_not_saved: { level: 'warn', sentence: 'when a personal key was last used could not be saved', fields: [] },
  // `claim` is what of it is wrong.
  logout_token_refused: { level: 'warn', sentence: 'a logout token was refused', fields: ['claim'] },
  cookie_lost: {
    level: 'warn',
    sentence: 'a browser signed in but did not keep the cookie',
    fields: ['baseUrl', 'host'],
  },

  shadow_refused: {
    level: 'warn',
    sentence: 'a shadow rule would have refused',
    fields: ['rule', 'method', 'path', 'role'],
  },
  claims_left_out: {
    level: 'warn',
    sentence:
      'the provider says more than 16 KB of a user: not all of it is kept, and roles by what is left out are not given',
    fields: ['claims'],
  },
  identity_cut: {
    level: 'warn',
    sentence: 'something about a user is too long for applications: the header was cut, or the claim left out',
    fields: ['header', 'claim'],
  },
  rate_limited: {
    level: 'warn',
    sentence: 'an address sent more than RATE_LIMIT_PER_MINUTE allows, and is turned away for the rest of a minute',
    // `again` if it is not the first of that minute: the audit trail keeps the first.
    fields: ['kind', 'again'],
    audited: true,
  },
  refused: {
    level: 'warn',
    sentence: 'somebody who is signed in may not see what they asked for',
    fields: ['method', 'path', 'role', 'key'],
    audited: true,
  },
  visitor_refused: {
    level: 'warn',
    sentence: 'a public page has networks or hours, and a visitor came from elsewhere or at another time',
    fields: ['method', 'path'],
  },
  path_refused: {
    level: 'warn',
    sentence: 'a path that cannot be read, or could be read in more than one way, was refused',
    fields: ['method', 'path'],
  },
  foreign_origin: {
    level: 'warn',
    sentence: 'something that only our own pages may ask for came from another site, and was not done',
    fields: ['method', 'path', 'origin'],
  },
  request: {
    level: 'info',
    sentence: 'a request has ended (ACCESS_LOG)',
    fields: ['method', 'path', 'status', 'bytes', 'ms', 'upstream'],
  },
  metrics_refused: {
    level: 'warn',
    sentence: 'a request for the metrics was refused',
    // `reason` is address (not in METRICS_FROM) or proxy (from TRUSTED_PROXIES, or with headers that proxies add).
    fields: ['remedy'],
  },
  check_refused: { level: 'warn', sentence: 'a question of forward-auth could not be answered', fields: [] },
  request_failed: { level: 'error', sentence: 'a request failed', fields: ['method', 'path'] },
  upgrade_failed: { level: 'error', sentence: 'an upgrade failed', fields: ['path'] },
  upstream_failed: {
    level: 'error',
    sentence: 'the application behind did not answer, or its answer broke off',
    fields: ['method', 'path', 'upstream'],
  },
  upstream_head_too_large: {
    level: 'error',
    sentence: "the headers of the application's answer are larger than MAX_HEADER_KB",
    fields: ['method', 'path', 'upstream'],
  },
  head_too_large: {
    level: 'warn',
    sentence: 'the headers of a request are larger than MAX_HEADER_KB, or more than 200',
    fields: ['method', 'path'],
  },
  upstream_busy: {
    level: 'warn',
    sentence: 'a request was turned away: too many others were with the application, or waited for it',
    fields: ['method', 'path', 'upstream'],
  },
  address_unknown: {
    level: 'warn',
    sentence: 'nobody is limited: requests come without an address',
    fields: ['remedy'],
  },
  form_already_read: { level: 'warn', sentence: 'somebody read a form of ours first', fields: ['path', 'remedy'] },
  client_cut_off: {
    level: 'info',
    sentence:
      'a client was cut off: for CLIENT_TIMEOUT_MS it took nothing of its answer or sent nothing of its body, it needed longer for a form, or it left too many answers unread',
    fields: [],
  },
  streams_unchecked: {
    level: 'warn',
    sentence: 'open streams could not be checked against their sessions; they stay',
    fields: [],
  },

  store_unreachable: { level: 'warn', sentence: 'the store cannot be reached; trying again', fields: ['store'] },
  store_not_writable: {
    level: 'error',
    sentence:
      'a write to the store failed: users cannot sign in, and `ready` answers 503 until a write succeeds; one is tried every five seconds',
    fields: [],
  },
  store_writable: { level: 'info', sentence: 'the store can be written again', fields: [] },
  store_reachable: { level: 'info', sentence: 'the store can be reached again', fields: ['store'] },
  audit_not_written: {
    level: 'error',
    sentence: 'audit events could not be written yet; they wait in memory as far as there is room',
    // `to` is store or file, `count` how many wait, `dropped` how many there was no room for.
    fields: ['to', 'count', 'dropped'],
  },
  audit_written_again: {
    level: 'info',
    sentence: 'the audit events that waited are written',
    fields: ['to', 'dropped'],
  },
  process_warning: {
    level: 'warn',
    sentence: 'Node or a library has printed a warning',
    fields: ['name', 'text'],
  },
  console_output: {
    level: 'info',
    sentence: 'a library or the configuration has printed to the console, where the log is JSON',
    fields: ['text'],
  },
  not_ready: { level: 'error', sentence: 'not ready to serve', fields: [] },
  console_without_store: {
    level: 'warn',
    sentence:
      'a developer has opened the overview or the health page while the store cannot be asked about their session; it was confirmed at most ten minutes before',
    fields: ['path'],
  },
  login_without_store: { level: 'error', sentence: 'the login page could not ask the store', fields: [] },
} as const satisfies Record<string, EventRow>

export type EventCode = keyof typeof EVENTS

type FieldsOf<Code extends EventCode> = Partial<Record<CommonField | (typeof EVENTS)[Code]['fields'][number], unknown>>

/** Reports an event. */
export type Report = <Code extends EventCode>(code: Code, fields?: FieldsOf<Code>) => void
