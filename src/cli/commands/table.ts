// Every command, one row each: what it does, its options, examples and exit codes. Arguments are parsed by these rows, and
// `--help` and docs/commands.md are generated from them.

export interface OptionRow {
  readonly type: 'string' | 'boolean'
  /** The name of its value; a boolean has none. */
  readonly value?: string
  readonly description: string
  readonly default?: string | boolean | string[]
  /** May be given more than once. */
  readonly multiple?: boolean
}

export interface CommandRow {
  readonly description: string
  /** Each way to call it. */
  readonly usage: readonly [string, ...string[]]
  /** The words that may or must follow its name. */
  readonly verbs?: readonly string[]
  readonly details?: string
  readonly options: Readonly<Record<string, OptionRow>>
  readonly examples: readonly (readonly [line: string, meaning: string])[]
  /** When it exits with 1; absent if it never does. */
  readonly fails?: string
}

const LANGUAGE_ROW = {
  type: 'string',
  value: 'LANGUAGE',
  description: 'the output language, zh-CN or en; default: that of LC_ALL, LC_MESSAGES or LANG',
} as const

const USER_ROW = { type: 'string', value: 'NAME', description: 'only the user with this name' } as const

const TIMES = '2026-03-01T08:00:00Z, 2026-03-01, 30m, 2h, 7d'

export const COMMANDS = {
  check: {
    description: 'checks the settings and the configuration',
    usage: ['menshen check [--language LANGUAGE]'],
    details:
      'Reads the environment, .env, the configuration and the files that they name, and nothing else: it opens no store, no port and no connection, and writes nothing. The same errors prevent startup, except for a missing provider setting: Menshen starts without it, and its login page says what is missing.',
    options: { language: LANGUAGE_ROW },
    examples: [
      ['menshen check', 'before a restart, or in CI'],
      ['CONFIG=new.config.ts menshen check', 'a configuration that is not in place yet'],
    ],
    fails: 'something is invalid or missing: one message each on stderr. With only warnings, the exit code is 0',
  },
  doctor: {
    description: 'checks everything that a sign-in needs, and says what to do',
    usage: ['menshen doctor [--json] [--sign-in [--show]] [--language LANGUAGE]'],
    options: {
      json: { type: 'boolean', default: false, description: 'one JSON document on stdout' },
      'sign-in': {
        type: 'boolean',
        default: false,
        description: 'test the field mapping of a provider with a real sign-in',
      },
      show: {
        type: 'boolean',
        default: false,
        description: 'with --sign-in: show the values too, tokens included',
      },
      language: LANGUAGE_ROW,
    },
    examples: [
      ['menshen doctor', 'one line per check: the result → what to do'],
      ['menshen doctor --sign-in', 'which fields the provider sends, and how they are mapped'],
    ],
    fails: 'a check or the sign-in failed. With only warnings, the exit code is 0',
  },
  rules: {
    description: 'shows what the rules of the configuration decide',
    usage: [
      'menshen rules check PATH [--role ROLE] [--group GROUP] [--user NAME] [--method METHOD] [--destination PATH] [--depth DEPTH] [--from ADDRESS] [--at TIME] [--auth-age SECONDS] [--acr VALUE] [--amr VALUE] [--host HOST]',
      'menshen rules test FILE',
    ],
    verbs: ['check', 'test'],
    details:
      'FILE is a JSON array of { "path", "role"?, "groups"?, "user"?, "method"?, "destination"?, "depth"?, "from"?, "at"?, "authAge"?, "acr"?, "amr"?, "host"?, "expect" }, where "expect" is "admitted", "refused" (403), "login" (the visitor has to sign in), "step_up" (the user has to sign in again), "bad_request" (a path with a dot segment, a control character or a broken encoding), "uri_too_long" (a path of more than 4096 bytes or 100 segments) or "own" (Menshen handles it itself). Without a role, NAME and GROUP get the one that `roles` assigns; rows with a claim are ignored. Without an address, a time or an age, networks, hours and maxAge are assumed to be met, and the output says so; without acr and amr the user has none. A time without an offset is in the time zone of the rule. Only the configuration is read, no other setting.',
    options: {
      role: {
        type: 'string',
        value: 'ROLE',
        description:
          'the role: one from the configuration, or visitor for a user who is not signed in; default: the role that `roles` assigns to NAME and GROUP',
      },
      group: {
        type: 'string',
        value: 'GROUP',
        multiple: true,
        default: [] as string[],
        description: 'a group of the user; can be repeated',
      },
      user: { type: 'string', value: 'NAME', default: '', description: 'the username' },
      method: { type: 'string', value: 'METHOD', default: 'GET', description: 'the request method; default: GET' },
      destination: { type: 'string', value: 'PATH', description: 'the `Destination` of COPY and MOVE' },
      depth: {
        type: 'string',
        value: 'DEPTH',
        description: 'the `Depth` of PROPFIND, LOCK, COPY and REPORT: 0, 1 or infinity',
      },
      from: { type: 'string', value: 'ADDRESS', description: 'the client address, for `networks`' },
      at: {
        type: 'string',
        value: 'TIME',
        description: 'the time, for `hours`: 2026-11-16T09:00 in the time zone of the rule, or with an offset',
      },
      'auth-age': { type: 'string', value: 'SECONDS', description: 'seconds since sign-in, for `maxAge`' },
      acr: {
        type: 'string',
        value: 'VALUE',
        multiple: true,
        default: [] as string[],
        description: 'the acr of the id_token; can be repeated for alternatives',
      },
      amr: {
        type: 'string',
        value: 'VALUE',
        multiple: true,
        default: [] as string[],
        description: 'a value in the amr of the id_token; can be repeated',
      },
      host: { type: 'string', value: 'HOST', description: 'a host of `hosts`; default: that of BASE_URL' },
      language: LANGUAGE_ROW,
    },
    examples: [
      ['menshen rules check /reports --role common', 'the decision, and the rule behind it'],
      ['menshen rules check /pay --role common --auth-age 900', 'whether the user has to sign in again'],
      ['menshen rules test rules.test.json', 'a table of expectations, in CI'],
    ],
    fails:
      'an expectation is not met, or the configuration or FILE is invalid. A refusal is a valid result: the exit code is 0',
  },
  schema: {
    description: 'prints the JSON Schema of the configuration',
    usage: ['menshen schema'],
    details:
      'For editors, and for CI without Menshen. The package has the same file as menshen.schema.json. No setting, secret or file is read.',
    options: {},
    examples: [['menshen schema > menshen.schema.json', 'a file for `$schema` in the configuration']],
  },
  keys: {
    description: 'creates a key for a machine, and lists or revokes personal keys',
    usage: [
      'menshen keys new NAME',
      'menshen keys list [--user NAME] [--json]',
      'menshen keys revoke ID',
      'menshen keys revoke --user NAME',
      'menshen keys revoke --before TIME',
    ],
    verbs: ['new', 'list', 'revoke'],
    details:
      '"new" prints a key once, with its row for `machines`: the configuration has the hash of the key, never the key. Nothing is read or stored. The key is valid where a rule has `keys`, for the username machine:NAME, and for the API if its row has `api`. Users create personal keys on the account page. "list" and "revoke" can be used while Menshen runs with the same settings, but not with STORE=memory:.',
    options: {
      user: USER_ROW,
      before: {
        type: 'string',
        value: 'TIME',
        description: `with revoke: all personal keys created before this time: ${TIMES}`,
      },
      json: { type: 'boolean', default: false, description: 'with list: one object per line' },
      language: LANGUAGE_ROW,
    },
    examples: [
      ['menshen keys new backup', 'a key for the machine backup'],
      ['menshen keys list --user zhangsan', 'the personal keys of zhangsan with their ids, newest first'],
      ['menshen keys revoke --user zhangsan', 'revokes them; zhangsan stays signed in'],
      [
        'menshen keys revoke --before 2026-03-01',
        'revokes all older ones, for example after an old backup is restored',
      ],
    ],
    fails: 'the key does not exist, the settings or the store cannot be used, or the audit trail could not be written',
  },
  sessions: {
    description: 'lists who is signed in, or signs users out',
    usage: [
      'menshen sessions [--user NAME] [--json]',
      'menshen sessions end --session ID',
      'menshen sessions end --user NAME',
    ],
    verbs: ['end'],
    details:
      'Can be used while Menshen runs with the same settings, but not with STORE=memory:. The log shows the first ten characters of an id. For a user without sessions, end --user ends 0 and exits with 0.',
    options: {
      user: USER_ROW,
      session: { type: 'string', value: 'ID', description: 'with end: the session with this id, as the list shows it' },
      json: { type: 'boolean', default: false, description: 'one object per line' },
      language: LANGUAGE_ROW,
    },
    examples: [
      ['menshen sessions', 'all users, newest session first'],
      ['menshen sessions end --user zhangsan', 'signs zhangsan out on all devices and revokes their personal keys'],
      [
        'menshen sessions end --session jPR2DtYnJVqPtnGFfXZ9kQ2wG0fZb3rQmC1eXy7uH4A',
        'ends one session; personal keys stay valid',
      ],
    ],
    fails:
      'the session does not exist, the settings or the store cannot be used, or the audit trail could not be written',
  },
  audit: {
    description: 'prints the audit trail, oldest first',
    usage: ['menshen audit [--user NAME] [--event CODE] [--request ID] [--since TIME] [--json]'],
    details: 'Can be used while Menshen runs with the same settings, but not with STORE=memory:.',
    options: {
      user: USER_ROW,
      since: {
        type: 'string',
        value: 'TIME',
        description: `only events since then: ${TIMES}`,
      },
      event: { type: 'string', value: 'CODE', description: 'only events with this code, such as sign_in_failed' },
      request: { type: 'string', value: 'ID', description: 'only the request with this id, as shown on error pages' },
      json: { type: 'boolean', default: false, description: 'one object per line' },
      language: LANGUAGE_ROW,
    },
    examples: [
      ['menshen audit --since 2h --user zhangsan', 'what zhangsan did in the last two hours'],
      ['menshen audit --event sign_in_failed --since 1d', 'every sign-in that failed since yesterday'],
    ],
    fails: 'the settings or the store cannot be used',
  },
  backup: {
    description: 'copies the embedded store to a new file, even while Menshen runs',
    usage: ['menshen backup FILE'],
    details:
      'The copy is a complete store: STORE=sqlite:FILE opens it. It can only be decrypted with the secret of the Menshen that wrote it (SECRET, or without it CLIENT_SECRET), which is not in the copy. Only for STORE=sqlite:; back Redis up with redis-cli --rdb FILE.',
    options: { language: LANGUAGE_ROW },
    examples: [['menshen backup /var/backups/menshen-2026-03-01.db', 'a consistent snapshot']],
    fails: 'the store or the file cannot be used',
  },
  help: {
    description: 'explains a command, as menshen COMMAND --help does',
    usage: ['menshen help [COMMAND]'],
    options: {},
    examples: [['menshen help rules', 'its options and examples']],
  },
} as const satisfies Readonly<Record<string, CommandRow>>

export type CommandName = keyof typeof COMMANDS
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[]

/** `menshen` without a command. */
export const START = {
  description: 'starts Menshen, with settings from the environment, .env and the configuration file',
  fails: 'a setting is invalid, a port is in use, the store or a file cannot be opened, or the shutdown was incomplete',
}

/** Options without a command. `--help` can also follow one. */
export const GLOBAL_OPTIONS = [
  { names: ['-h', '--help'], description: 'this help; after a command, its help' },
  { names: ['-v', '--version'], description: 'prints the version' },
] as const

export const EXIT_CODES = {
  0: 'success; also after a requested shutdown',
  1: 'failure: invalid settings, a failed check, or something unavailable (a port, a store, a file)',
  2: 'usage error: unknown command or option, or a missing or invalid value',
} as const
