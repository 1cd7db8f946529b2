// Every command, one row each: what it does, its options, examples and exit codes. Arguments are read by these rows, and
// `--help` and docs/commands.md are made from them.

export interface OptionRow {
  readonly type: 'string' | 'boolean'
  /** What its value is called; a boolean has none. */
  readonly value?: string
  readonly sentence: string
  readonly default?: string | boolean | string[]
  /** May be given more than once. */
  readonly multiple?: boolean
}

export interface CommandRow {
  readonly sentence: string
  /** Each way to call it. */
  readonly usage: readonly [string, ...string[]]
  /** The words that may follow its name, where one of them has to or can. */
  readonly verbs?: readonly string[]
  readonly details?: string
  readonly options: Readonly<Record<string, OptionRow>>
  readonly examples: readonly (readonly [line: string, meaning: string])[]
  /** When it ends with 1; without one it never does. */
  readonly fails?: string
}

const LANGUAGE_ROW = {
  type: 'string',
  value: 'LANGUAGE',
  sentence: 'the language of the answer: zh-CN or en; else that of LC_ALL, LC_MESSAGES or LANG',
} as const

const USER_ROW = { type: 'string', value: 'NAME', sentence: 'only of the user with this name' } as const

const TIMES = '2026-03-01T08:00:00Z, 2026-03-01, 30m, 2h, 7d'

export const COMMANDS = {
  check: {
    sentence: 'says whether the settings and the configuration can be used',
    usage: ['menshen check [--language LANGUAGE]'],
    details:
      'Reads the environment, .env, the configuration and the files that they name, and nothing else: it opens no store, no port and no connection, and writes nothing. The same sentences would stop a start, except that of a missing setting of the provider: Menshen starts without it, and its login page says what is missing.',
    options: { language: LANGUAGE_ROW },
    examples: [
      ['menshen check', 'before a restart, or in CI'],
      ['CONFIG=new.config.ts menshen check', 'a configuration that is not in place yet'],
    ],
    fails: 'something is wrong or missing: one sentence each on stderr. Warnings alone are 0',
  },
  doctor: {
    sentence: 'looks at everything that a sign-in needs, and says what to do',
    usage: ['menshen doctor [--json] [--sign-in [--show]] [--language LANGUAGE]'],
    options: {
      json: { type: 'boolean', default: false, sentence: 'one document on stdout' },
      'sign-in': { type: 'boolean', default: false, sentence: 'try the mapping of a provider with a real sign-in' },
      show: {
        type: 'boolean',
        default: false,
        sentence: 'with --sign-in: show the values too, tokens included',
      },
      language: LANGUAGE_ROW,
    },
    examples: [
      ['menshen doctor', 'one line a probe: what was seen → what to do'],
      ['menshen doctor --sign-in', 'which fields the provider sends, and what becomes of them'],
    ],
    fails: 'a probe fails, or the sign-in did not work. Warnings alone are 0',
  },
  rules: {
    sentence: 'says what the rules of the configuration do',
    usage: [
      'menshen rules check PATH [--role ROLE] [--group GROUP] [--user NAME] [--method METHOD] [--destination PATH] [--depth DEPTH] [--from ADDRESS] [--at TIME] [--auth-age SECONDS] [--acr VALUE] [--amr VALUE] [--host HOST]',
      'menshen rules test FILE',
    ],
    verbs: ['check', 'test'],
    details:
      'FILE is a JSON array of { "path", "role"?, "groups"?, "user"?, "method"?, "destination"?, "depth"?, "from"?, "at"?, "authAge"?, "acr"?, "amr"?, "host"?, "expect" }, where "expect" is "admitted", "refused" (403), "login" (nobody is signed in, and somebody has to be), "step_up" (the user has to sign in again), "bad_request" (a path with a dot segment, a control character or a broken encoding), "uri_too_long" (a path of more than 4096 bytes or 100 segments) or "own" (Menshen answers it itself). Without a role, NAME and GROUP have the one that `roles` give them; rows by a claim are not looked at. Without an address, a time or an age, networks, hours and maxAge count as met, and the answer says so; without acr and amr the user has none. A time without an offset is in the zone of the rule. Only the configuration is read, and no other setting.',
    options: {
      role: {
        type: 'string',
        value: 'ROLE',
        sentence:
          'who asks: a role of the configuration, or visitor for nobody; else the role that `roles` give to NAME and GROUP',
      },
      group: {
        type: 'string',
        value: 'GROUP',
        multiple: true,
        default: [] as string[],
        sentence: 'a group of theirs; may be given more than once',
      },
      user: { type: 'string', value: 'NAME', default: '', sentence: 'their name' },
      method: { type: 'string', value: 'METHOD', default: 'GET', sentence: 'the method of the request, else GET' },
      destination: { type: 'string', value: 'PATH', sentence: 'the `Destination` of COPY and MOVE' },
      depth: {
        type: 'string',
        value: 'DEPTH',
        sentence: 'the `Depth` of PROPFIND, LOCK, COPY and REPORT: 0, 1 or infinity',
      },
      from: { type: 'string', value: 'ADDRESS', sentence: 'the address of the client, for `networks`' },
      at: {
        type: 'string',
        value: 'TIME',
        sentence: 'when, for `hours`: 2026-11-16T09:00 in the zone of the rule, or with an offset',
      },
      'auth-age': { type: 'string', value: 'SECONDS', sentence: 'how long ago they signed in, for `maxAge`' },
      acr: {
        type: 'string',
        value: 'VALUE',
        multiple: true,
        default: [] as string[],
        sentence: 'the acr of their id_token; of several, any may be the one',
      },
      amr: {
        type: 'string',
        value: 'VALUE',
        multiple: true,
        default: [] as string[],
        sentence: 'a value in the amr of their id_token; may be given more than once',
      },
      host: { type: 'string', value: 'HOST', sentence: 'a host of `hosts`, else that of BASE_URL' },
    },
    examples: [
      ['menshen rules check /reports --role common', 'what would happen, and by which rule'],
      ['menshen rules check /pay --role common --auth-age 900', 'whether they have to sign in again'],
      ['menshen rules test rules.test.json', 'a table of expectations, in CI'],
    ],
    fails: 'an expectation is not met, or the configuration or FILE cannot be used. A refusal is an answer: 0',
  },
  keys: {
    sentence: 'makes a key for a machine, and lists or revokes the personal keys of users',
    usage: [
      'menshen keys new NAME',
      'menshen keys list [--user NAME] [--json]',
      'menshen keys revoke ID',
      'menshen keys revoke --user NAME',
      'menshen keys revoke --before TIME',
    ],
    verbs: ['new', 'list', 'revoke'],
    details:
      '"new" prints a key once, with its row for `machines`: the configuration has the hash of the key, never the key. Nothing is read or stored. The key is valid where a rule says `keys`, for the username machine:NAME. Users create personal keys on the account page. "list" and "revoke" work beside a Menshen that runs, with the same settings; not with STORE=memory:.',
    options: {
      user: USER_ROW,
      before: {
        type: 'string',
        value: 'TIME',
        sentence: `with revoke: all personal keys that were created before then: ${TIMES}`,
      },
      json: { type: 'boolean', default: false, sentence: 'with list: one object per line' },
    },
    examples: [
      ['menshen keys new backup', 'a key for the machine backup'],
      ['menshen keys list --user zhangsan', 'the personal keys of zhangsan, the newest first, with their ids'],
      ['menshen keys revoke --user zhangsan', 'revokes them; zhangsan stays signed in'],
      [
        'menshen keys revoke --before 2026-03-01',
        'revokes all older ones, for example after an old backup is restored',
      ],
    ],
    fails:
      'there is no such key, the settings or the store cannot be used, or what was done could not be written to the audit trail',
  },
  sessions: {
    sentence: 'lists who is signed in, or signs users out',
    usage: [
      'menshen sessions [--user NAME] [--json]',
      'menshen sessions end --session ID',
      'menshen sessions end --user NAME',
    ],
    verbs: ['end'],
    details:
      'Works beside a Menshen that runs, with the same settings; not with STORE=memory:. The log shows the first ten characters of an id.',
    options: {
      user: USER_ROW,
      session: { type: 'string', value: 'ID', sentence: 'with end: the session with this id, as the list shows it' },
      json: { type: 'boolean', default: false, sentence: 'one object per line' },
    },
    examples: [
      ['menshen sessions', 'all users, the newest session first'],
      ['menshen sessions end --user zhangsan', 'signs zhangsan out on all devices, and revokes their personal keys'],
      [
        'menshen sessions end --session jPR2DtYnJVqPtnGFfXZ9kQ2wG0fZb3rQmC1eXy7uH4A',
        'ends one session; personal keys stay',
      ],
    ],
    fails:
      'there is no such session, the settings or the store cannot be used, or what was done could not be written to the audit trail',
  },
  audit: {
    sentence: 'prints the audit trail, the oldest first',
    usage: ['menshen audit [--user NAME] [--event CODE] [--request ID] [--since TIME] [--json]'],
    details: 'Works beside a Menshen that runs, with the same settings; not with STORE=memory:.',
    options: {
      user: USER_ROW,
      since: {
        type: 'string',
        value: 'TIME',
        sentence: `only from then on: ${TIMES}`,
      },
      event: { type: 'string', value: 'CODE', sentence: 'only events with this code, such as sign_in_failed' },
      request: { type: 'string', value: 'ID', sentence: 'only of the request with this id, as error pages show it' },
      json: { type: 'boolean', default: false, sentence: 'one object a line' },
    },
    examples: [
      ['menshen audit --since 2h --user zhangsan', 'what zhangsan did in the last two hours'],
      ['menshen audit --event sign_in_failed --since 1d', 'every sign-in that failed since yesterday'],
    ],
    fails: 'the settings or the store cannot be used',
  },
  backup: {
    sentence: 'copies the embedded store into a new file, also while Menshen runs',
    usage: ['menshen backup FILE'],
    details:
      'The copy is a store itself: STORE=sqlite:FILE opens it. It is only of use with the secret of the Menshen that wrote it (SECRET, or without it CLIENT_SECRET), which is not in it. For STORE=sqlite: alone; a Redis is copied by its own means.',
    options: {},
    examples: [['menshen backup /var/backups/menshen-2026-03-01.db', 'a consistent copy of this moment']],
    fails: 'the store or the file cannot be used',
  },
  help: {
    sentence: 'explains a command, as menshen COMMAND --help does',
    usage: ['menshen help [COMMAND]'],
    options: {},
    examples: [['menshen help rules', 'its options and examples']],
  },
} as const satisfies Readonly<Record<string, CommandRow>>

export type CommandName = keyof typeof COMMANDS
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[]

/** `menshen` without a command. */
export const START = {
  sentence: 'starts Menshen, with settings from the environment, .env and menshen.config.ts',
  fails:
    'a setting is wrong, a port is taken, the store or a file cannot be opened, or not everything could be closed at the end',
}

/** Those without a command. `--help` may also follow one. */
export const GLOBAL_OPTIONS = [
  { names: ['-h', '--help'], sentence: 'this help; behind a command, the help of it' },
  { names: ['-v', '--version'], sentence: 'the version, alone on its line' },
] as const

export const EXIT_CODES = {
  0: 'all is well; a start ends with it when it was asked to end',
  1: 'something is wrong with the settings, with what was asked about, or with what it needs (a port, a store, a file)',
  2: 'the command was typed wrong: an unknown command or option, a missing or odd value',
} as const
