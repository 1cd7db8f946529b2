// Mistakes in a configuration: what looks like a pattern, a name with a slip in it, a list where a wildcard means nothing. Each
// is refused with a sentence of ours that says what to write.
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { checkConfig } from '../../src/config/file.ts'
import { findMisspelt } from '../../src/config/suggestions.ts'
import { createMenshen, type MenshenError, type MenshenOptions } from '../../src/index.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { tempFolder } from '../kit/temp.ts'

const commands = createCommandRunner()

/** Each with the path to write instead. */
const PATTERNS: [path: unknown, instead: string][] = [
  ['/admin/*', '/admin'],
  ['/admin*', '/admin'],
  ['/admin/:id', '/admin'],
  ['/users/:id/edit', '/users'],
  ['/api/**', '/api'],
  ['/api/**/secret', '/api'],
  ['/x/(.*)', '/x'],
  ['/x/{id}', '/x'],
  ['/x/{id:[0-9]+}', '/x'],
  ['/x/[id]', '/x'],
  ['/x/[...slug]', '/x'],
  ['/x/<int:id>', '/x'],
  ['^/admin', '/admin'],
  ['^/admin$', '/admin'],
  ['/admin$', '/admin'],
  ['/a?', '/a'],
  ['/admin/.*', '/admin'],
  ['/admin/.+', '/admin'],
  ['/a/+', '/a'],
  ['/user-:id', '/user-'],
  ['/file.:ext', '/file'],
  ['/admin/$id', '/admin'],
  ['/admin/$metadataId', '/admin'],
  ['/admin/int:id', '/admin'],
  ['/admin/id:int', '/admin'],
  ['/admin/＊', '/admin'],
  ['/admin/∗', '/admin'],
  ['/re:/admin', '/admin'],
  ['re:/admin', '/admin'],
  ['/admin(/.*)?', '/admin'],
  ['/admin|/internal', '/admin'],
  ['/x/\\d+', '/x'],
  ['/((?!public).*)', '/'],
  ['/(group)/x', '/'],
  ['~ ^/admin', '/admin'],
  ['= /admin', '/admin'],
  ['\\.php$', '/'],
  ['/*', '/'],
  ['*', '/'],
  [/^\/admin\/.*/, '/admin'],
]

test('menshen check refuses with one sentence a configuration that exports nothing or cannot be read', async t => {
  const cwd = tempFolder(t)
  const file = join(cwd, 'menshen.config.ts')
  const started = async () => await commands.run({ STORE: 'memory:' }, { cwd, args: ['check'] })
  const scripts: [text: string, problem: string][] = [
    ["const { defineConfig } = require('menshen')\ndefineConfig({ rules: [] })\n", 'exports nothing'],
    ['// export default { rules: [] }\n', 'is empty'],
    ['/*\n export default { rules: [] }\n*/\nconst rules = []\n', 'exports nothing'],
  ]
  for (const [text, problem] of scripts) {
    writeFileSync(file, text)
    assert.deepEqual(await started(), refused(`${file} ${problem}; expected an export default with the configuration.`))
  }
  writeFileSync(file, "/* rules */ module.exports = { rules: [{ path: '/a', public: true }] }\n")
  assert.match((await started()).output, /1 rule$/m)
  writeFileSync(file, "import 'no-such-package'\nexport default {}\n")
  const missing = `${file} cannot be loaded: Cannot find package 'no-such-package' imported from ${file}.`
  assert.deepEqual(await started(), refused(missing))
  writeFileSync(file, "\nthrow new Error('boom')\n")
  assert.deepEqual(await started(), refused(`${file} cannot be loaded: boom (${file}:2).`))
  rmSync(file)
  mkdirSync(file)
  assert.deepEqual(
    await started(),
    refused(`${file} cannot be read (EISDIR); expected a file that this user can read.`),
  )
})

function refused(err: string) {
  return { code: 1, output: err, out: '', err: `${err}\n` }
}

test('one mistake gives one error, and each unknown key gives a separate one', () => {
  assert.deepEqual(problems({ rules: [{ path: '/a', public: true, methods: ['get'] }] }), [
    'test: rules.0.methods.0: expected methods in capitals, for example "GET".',
  ])
  const sentences = problems({ ruls: [], upstream: {}, colour: 1 })
  assert.equal(sentences.length, 3)
  assert.deepEqual(sentences.slice(0, 2), [
    'test: config: there is no "ruls"; did you mean rules?',
    'test: config: there is no "upstream"; did you mean upstreams?',
  ])
  assert.match(sentences[2] ?? '', /^test: config: there is no "colour"; expected one of provider, .*\.$/)
})

suite('a path that looks like a pattern', () => {
  test('a path that looks like a pattern is refused in a rule and in an upstream, with the prefix to write instead', () => {
    for (const [path, instead] of PATTERNS) {
      const shown = JSON.stringify(path instanceof RegExp ? path.source.replaceAll('\\/', '/') : path)
      const covers = 'covers its path and everything below; write'
      const ofRule = `a rule ${covers} ${instead === '/' ? 'a rule for each path' : `\`${instead}\``}.`
      const ofPrefix = `a prefix ${covers} ${instead === '/' ? 'a prefix for each path' : `\`${instead}\``}.`
      assert.deepEqual(problems({ rules: [{ path, roles: ['developer'] }] }), [
        `test: rules.0.path: ${shown} looks like a pattern; ${ofRule}`,
      ])
      assert.deepEqual(problems({ rules: [{ path, roles: ['developer'], exact: true, shadow: true }] }), [
        `test: rules.0.path: ${shown} looks like a pattern; ${ofRule}`,
      ])
      if (typeof path === 'string')
        assert.deepEqual(problems({ upstreams: { [path]: 'http://127.0.0.1:1' } }), [
          `test: upstreams.${path}: ${shown} looks like a pattern; ${ofPrefix}`,
        ])
    }
  })

  test('the error for a pattern that covers several paths lists each of them', () => {
    assert.deepEqual(problems({ rules: [{ path: '/admin(x|y)/z', roles: ['developer'] }] }), [
      'test: rules.0.path: "/admin(x|y)/z" looks like a pattern; write a rule for each path: `/adminx/z`, `/adminy/z`.',
    ])
    assert.deepEqual(problems({ rules: [{ path: '/(a|b)', roles: ['developer'] }] }), [
      'test: rules.0.path: "/(a|b)" looks like a pattern; write a rule for each path: `/a`, `/b`.',
    ])
  })

  test('a path that looks like a pattern is refused by the start, menshen check, rules check and the library', async t => {
    const config = { rules: [{ path: '/admin/*', roles: ['developer' as const] }] }
    const sentence = 'a rule covers its path and everything below; write `/admin`.'
    const cwd = folderWith(t, config)
    for (const args of [[], ['check'], ['rules', 'check', '/admin/x', '--role', 'common']]) {
      const { code, output } = await commands.run({ STORE: 'memory:' }, { cwd, args })
      assert.equal(code, 1, args.join(' '))
      assert.ok(output.includes(sentence), output)
    }
    for (const options of [config, { config }])
      assert.ok((await refusalOf({ store: 'memory:', ...options })).includes(sentence))
  })

  test('special characters in the paths of real applications are not mistaken for patterns', () => {
    for (const path of [
      ...['/', '/wiki/Special:Log', '/Foo_(bar)', '/odata/$metadata', '/@me', '/~user', '/c++', '/.well-known', '/a.b'],
      ...[
        '/google+',
        '/a+',
        '/$batch',
        '/x/$count',
        '/api/v1:batch',
        '/财务',
        '/a b',
        '/-/x',
        '/a=b',
        '/v1.0',
        "/it's",
        '/a,b',
        '/a&b',
        '/a!',
      ],
    ])
      assert.deepEqual(problems({ rules: [{ path, public: true }] }), [], path)
  })
})

test('a path that no request can have is refused', () => {
  for (const path of [
    '/a/...',
    '/a/. ',
    '/ a',
    '/a ',
    '/a\n',
    '/a\u0000',
    '/a#b',
    '/a;b',
    'https://app.example.com/a',
    ['/a'],
  ])
    assert.equal(problems({ rules: [{ path, public: true }] }).length, 1, JSON.stringify(path))
  assert.deepEqual(problems({ rules: [{ path: 'admin', public: true }] }), [
    'test: rules.0.path: expected a plain path that starts with /; did you mean "/admin"?',
  ])
})

test('a wildcard is refused in lists whose names are compared exactly', () => {
  const path = '/a'
  const rows: [config: object, expected: RegExp][] = [
    [{ rules: [{ path, users: ['*'] }] }, /rules\.0\.users\.0: names are compared exactly.*roles: \['\*'\]/],
    [{ rules: [{ path, users: ['*@corp.example'] }] }, /rules\.0\.users\.0: names are compared/],
    [{ rules: [{ path, groups: ['eng-*'] }] }, /rules\.0\.groups\.0: names are compared/],
    [{ rules: [{ path, groups: ['^eng'] }] }, /rules\.0\.groups\.0: names are compared/],
    [{ rules: [{ path, roles: ['dev*'] }] }, /rules\.0\.roles\.0: no row in roles grants this role/],
    [{ roles: [{ role: 'a', username: ['*'] }] }, /roles\.0\.username\.0: names are compared/],
    [{ roles: [{ role: 'a', groups: ['*'] }] }, /roles\.0\.groups\.0: names are compared/],
    [{ roles: [{ role: '*', groups: ['x'] }] }, /roles\.0\.role: expected a role of letters/],
    [{ rules: [{ path, roles: ['*'], bearer: true, audience: '*' }] }, /rules\.0\.audience: .*without \*/],
    [{ rules: [{ path, roles: ['*'], bearer: true, audience: ['https://*.example'] }] }, /audience\.0: .*without \*/],
    [{ rules: [{ path, public: true, methods: ['*'] }] }, /rules\.0\.methods\.0: .*leave methods out/],
    [{ rules: [{ path, public: true, methods: ['ALL'] }] }, /rules\.0\.methods\.0: .*leave methods out/],
  ]
  for (const [config, expected] of rows) assert.match(problems(config).join('\n'), expected, JSON.stringify(config))
  assert.deepEqual(problems({ rules: [{ path, users: ['HOST01$', 'auth0|7', 'a.b@c'], roles: ['*'] }] }), [])
})

test('scopes must be a list of valid OAuth scopes, in a rule with bearer: true', () => {
  const sentence = (more: object) => problems({ rules: [{ path: '/mcp', roles: ['*'], ...more }] }).join('\n')
  const list = "test: rules.0.scopes: expected a list with at least one scope, for example ['mcp:read']."
  for (const scopes of ['mcp:read', 'mcp:read mcp:write', [], {}, null])
    assert.equal(sentence({ bearer: true, scopes }), list, JSON.stringify(scopes))
  for (const scope of ['', 'a b', 'a"b', 'a\\b', 'a\nb', 'a\u007f', '读', ' a'])
    assert.equal(
      sentence({ bearer: true, scopes: ['ok', scope] }),
      'test: rules.0.scopes.1: expected one scope, without spaces, for example "mcp:read".',
      JSON.stringify(scope),
    )
  for (const more of [{}, { bearer: false }])
    assert.equal(
      sentence({ ...more, scopes: ['mcp:read'] }),
      'test: rules.0: scopes apply to tokens; expected bearer: true as well.',
    )
  assert.equal(sentence({ bearer: true, scope: 'x' }), 'test: rules.0: there is no "scope"; did you mean scopes?')
  assert.equal(sentence({ bearer: true, scopes: ['mcp:read', "https://api.example/.default!~'"] }), '')
})

test('the error for a misspelt key or value suggests the correct one or names what is expected', () => {
  const path = '/a'
  const rows: [config: object, sentence: string][] = [
    [{ rules: [{ path, roles: ['*'], group: ['x'] }] }, 'rules.0: there is no "group"; did you mean groups?'],
    [{ rules: [{ path, roles: ['*'], user: 'x' }] }, 'rules.0: there is no "user"; did you mean users?'],
    [{ rules: [{ path, roles: ['*'], Methods: ['GET'] }] }, 'rules.0: there is no "Methods"; did you mean methods?'],
    [{ rulez: [] }, 'config: there is no "rulez"; did you mean rules?'],
    [
      { rules: [{ path, public: true, methods: ['PSOT'] }] },
      'rules.0.methods.0: there is no such method; did you mean POST?',
    ],
    [
      { roles: [{ role: 'auditor', groups: ['x'] }], rules: [{ path, roles: ['auditer'] }] },
      'rules.0.roles.0: no row in roles grants this role; expected one of "developer", "common", "auditor", "*"; did you mean "auditor"?',
    ],
    [{ provider: { client_id: 'x' } }, 'provider: there is no "client_id"; did you mean clientId?'],
    [
      { provider: { clientAuth: 'psot' } },
      'provider.clientAuth: expected one of post, basic, private_key_jwt, tls_client_auth, self_signed_tls_client_auth, none; did you mean post?',
    ],
    [
      { providers: { a: { tokenRequest: { az: 'form' } } } },
      'providers.a.tokenRequest: there is no "az"; did you mean as?',
    ],
    [
      { rules: { path } },
      "rules: expected a list, not an object; for example [{ path: '/admin', roles: ['developer'] }].",
    ],
    [
      { rules: [{ path, roles: ['*'], hours: '9-17' }] },
      "rules.0.hours: expected an object, not text; for example { from: '08:00', to: '20:00', zone: 'Asia/Shanghai' }.",
    ],
    [
      { devProvider: true },
      "devProvider: expected an object, not true or false; for example { users: [{ username: 'ann', groups: ['finance'] }] }.",
    ],
    [{ rules: [{ path, roles: '*' }] }, 'rules.0.roles: expected a list, not text.'],
    [{ rules: [{ path, public: 'true' }] }, 'rules.0.public: expected true.'],
    [{ provider: 5 }, 'provider: expected text or an object.'],
    [
      { rules: [{ path, roles: ['*'], colour: 'red' }] },
      'rules.0: there is no "colour"; expected one of path, exact, methods, roles,',
    ],
  ]
  for (const [config, sentence] of rows)
    assert.ok(
      problems(config).some(problem => problem.startsWith(`test: ${sentence}`)),
      `${sentence}\n${problems(config).join('\n')}`,
    )
})

test('no configuration error contains a zod message or quotes a value', () => {
  const odd: unknown[] = [
    null,
    5,
    'CANARY-text',
    true,
    [],
    {},
    ['CANARY-text'],
    { CANARY: 'CANARY-text' },
    Number.NaN,
    () => 1,
  ]
  const places = ['provider', 'providers', 'roles', 'rules', 'upstreams', 'words', 'languages', 'loginPage']
  const within: ((value: unknown) => object)[] = [
    value => ({ provider: { clientSecret: value, tokenUrl: value, fields: value, logout: value, require: value } }),
    value => ({ provider: { fields: { sub: value }, tokenAnswer: { lifetimeSeconds: value, names: value } } }),
    value => ({ provider: { userInfoRequest: { token: value }, refreshUrl: value, emailStep: value } }),
    value => ({ rules: [value], roles: [value], loginPage: { links: [value] } }),
    value => ({ rules: [{ path: '/a', roles: value, groups: value, bearer: value, audience: value, scopes: value }] }),
    value => ({ roles: [{ role: value, username: value, claim: value, provider: value }] }),
    ...places.map(place => (value: unknown) => ({ [place]: value })),
  ]
  for (const make of within)
    for (const value of odd)
      for (const problem of problems(make(value))) {
        assert.doesNotMatch(
          problem,
          /Invalid|Unrecognized|received|Too (small|big)|expected (string|array|object|boolean|record)\b/,
        )
        assert.doesNotMatch(problem, /CANARY-text|undefined|\[object/)
      }
})

test('a misspelt preset gets a suggestion, wherever it is set', async t => {
  const provider = { preset: 'keyclaok', clientId: 'x', clientSecret: 'x' }
  const rows: [env: Record<string, string>, config: object, where: string][] = [
    [{ PROVIDER: 'keyclaok' }, {}, 'PROVIDER'],
    [{}, { provider: 'keyclaok' }, 'provider'],
    [{}, { provider }, 'provider.preset'],
    [{}, { providers: { staff: provider } }, 'providers.staff.preset'],
  ]
  for (const [env, config, where] of rows) {
    const { code, output } = await commands.run(
      { STORE: 'memory:', ...env },
      { cwd: folderWith(t, config), args: ['check'] },
    )
    assert.equal(code, 1, where)
    assert.match(
      output,
      new RegExp(`${where.replaceAll('.', '\\.')} is "keyclaok"; did you mean keycloak\\? Otherwise`),
    )
  }
})

test('a setting or option with its name from another program gets the Menshen name as a suggestion', async () => {
  const rows = {
    UPSTREAM_URL: 'UPSTREAM',
    OIDC_ISSUER: 'AUTH_URL',
    OIDC_CLIENT_ID: 'CLIENT_ID',
    MENSHEN_UPSTREAM_URL: 'UPSTREAM',
  }
  for (const [name, likely] of Object.entries(rows)) assert.deepEqual(findMisspelt({ [name]: 'x' }), [{ name, likely }])
  assert.match(
    await refusalOf({ upstreamUrl: 'http://127.0.0.1:1' } as MenshenOptions),
    /"upstreamUrl" is not an option; did you mean upstream\?/,
  )
})

function problems(config: object): string[] {
  try {
    checkConfig(config, 'test', 'config')
    return []
  } catch (error) {
    return (error as MenshenError).message.split('\n')
  }
}

async function refusalOf(options: MenshenOptions): Promise<string> {
  return createMenshen(options).then(
    async menshen => {
      await menshen.close()
      assert.fail('it was taken')
    },
    (error: MenshenError) => error.message,
  )
}

function folderWith(t: TestContext, config: object): string {
  const cwd = tempFolder(t)
  writeFileSync(join(cwd, 'menshen.config.mjs'), `export default ${JSON.stringify(config)}\n`)
  return cwd
}

test('an empty condition, which would match everything, is refused wherever conditions are accepted', () => {
  const provider = (more: object) => ({ provider: { preset: 'oidc', ...more } })
  const rows: [config: object, where: string][] = [
    [{ roles: [{ role: 'developer', claim: {} }] }, 'roles.0.claim'],
    [{ roles: [{ role: 'developer', username: ['lisi'], claim: {} }] }, 'roles.0.claim'],
    [provider({ emailVerified: {} }), 'provider.emailVerified'],
    [provider({ require: {} }), 'provider.require'],
    [provider({ tokenAnswer: { success: {} } }), 'provider.tokenAnswer.success'],
    [provider({ userInfoAnswer: { success: {} } }), 'provider.userInfoAnswer.success'],
    [
      provider({ emailStep: { url: 'https://idp.example/mail', where: {}, take: 'email' } }),
      'provider.emailStep.where',
    ],
    [{ providers: { one: { preset: 'oidc', require: {} } } }, 'providers.one.require'],
  ]
  for (const [config, where] of rows)
    assert.deepEqual(problems(config), [`test: ${where}: expected at least one path with its values.`])
})

test('a row of machines needs a valid name and a unique key hash; the key itself is refused and never quoted', () => {
  const key = `mk_${'A'.repeat(43)}`
  const hash = 'ab'.repeat(32)
  const problemOf = (row: object, ...more: object[]) =>
    problems({ machines: [{ name: 'a', keySha256: hash, ...row }, ...more] })
  const rows: [row: object, sentence: RegExp][] = [
    [{ keySha256: key }, /keySha256: this is the key itself.*write its SHA-256/],
    [{ keySha256: ` ${key}\n` }, /this is the key itself/],
    [{ keySha256: hash.slice(1) }, /64 hex digits/],
    [{ keySha256: 'zz'.repeat(32) }, /64 hex digits/],
    [{ key }, /there is no "key"/],
    [{ keySha256: undefined }, /expected text/],
    [{ name: 'a b' }, /letters, digits, dots/],
    [{ name: '备份' }, /letters, digits, dots/],
    [{ name: 'machine:a' }, /letters, digits, dots/],
    [{ name: '' }, /letters, digits, dots/],
    [{ name: 'x'.repeat(61) }, /letters, digits, dots/],
    [{ expires: 'soon' }, /expected a date/],
    [{ expires: '2027-02-30' }, /expected a date/],
    [{ expires: '2027-01-01T08:00:00' }, /with an offset/],
    [{ groups: [] }, /at least one/],
    [{ groups: ['*'] }, /without \*/],
    [{ api: [] }, /api: expected any of "sessions", "keys", "audit"/],
    [{ api: ['sessions', 'all'] }, /api\.1: expected any of "sessions", "keys", "audit"/],
    [{ api: true }, /api: expected/],
    [{ api: 'sessions' }, /api: expected/],
    [{ networks: [] }, /networks: expected at least one network/],
    [{ networks: ['10.0.0.1/8'] }, /networks\.0: .*host bits/],
    [{ networks: ['localhost'] }, /networks\.0: expected an address or a network/],
  ]
  for (const [row, sentence] of rows) {
    const said = problemOf(row).join('\n')
    assert.match(said, sentence)
    assert.ok(!said.includes(key))
  }
  assert.match(
    problemOf({}, { name: 'A', keySha256: 'cd'.repeat(32) }).join(),
    /machines\.1\.name: machines\.0 has the same name/,
  )
  assert.match(
    problemOf({}, { name: 'b', keySha256: hash.toUpperCase() }).join(),
    /machines\.1\.keySha256: machines\.0 has the same key/,
  )
  assert.deepEqual(problemOf({ keySha256: hash.toUpperCase(), expires: '2020-01-01', groups: ['robots'] }), [])
  assert.deepEqual(problemOf({ api: ['sessions', 'keys', 'audit'], networks: ['10.0.0.0/8', '::1'] }), [])
  assert.match(problems({ rules: [{ path: '/', public: true, keys: true }] }).join(), /needs no key/)
  assert.match(
    problems({ rules: [{ path: '/', roles: ['*'], keys: 'mine' }] }).join(),
    /keys: expected true or "personal"/,
  )
  assert.match(problems({ providers: { machine: {} } }).join(), /this name is reserved/)
})
