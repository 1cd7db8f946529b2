// The configuration as data: YAML and JSON are read strictly, checked as code is, and every broken file is answered with one
// sentence that has the file, the line and the column, and none of its content.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { inspect } from 'node:util'
import { parseJson } from '../../../src/config/data/json.ts'
import { toValue } from '../../../src/config/data/node.ts'
import { type ConfigurationSources, loadConfiguration, tryConfiguration } from '../../../src/config/load.ts'
import { revealReference } from '../../../src/config/secret-references.ts'
import { MenshenError } from '../../../src/errors.ts'
import { createMenshen } from '../../../src/index.ts'
import { phraseIn, phrasesOf } from '../../../src/text/text.ts'
import { createCommandRunner } from '../../kit/command-runner.ts'
import { openScriptedProvider } from '../../kit/scripted-provider.ts'
import { CLIENT_SECRET } from '../../kit/strict-provider.ts'
import { tempFolder } from '../../kit/temp.ts'

const commands = createCommandRunner()
const RULES = { rules: [{ path: '/internal', roles: ['developer'] }] }
const YAML = 'rules:\n  - path: /internal\n    roles: [developer]\n'
const JSON_TEXT = JSON.stringify(RULES)
const CANARY = 'kept-for-ourselves'
const PROVIDER = {
  AUTH_URL: 'http://127.0.0.1:9',
  CLIENT_ID: 'menshen-test',
  CLIENT_SECRET: 'secret',
  STORE: 'memory:',
}

function folderWith(t: TestContext, files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = tempFolder(t)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

async function load(
  t: TestContext,
  name: string,
  content: string | Uint8Array,
  sources: Partial<ConfigurationSources> = {},
) {
  const folder = folderWith(t, { [name]: content })
  return (await loadConfiguration({ environment: {}, folder, ...sources })).config
}

/** The sentences, without the folder. */
async function refusal(
  t: TestContext,
  name: string,
  content: string | Uint8Array,
  sources: Partial<ConfigurationSources> = {},
): Promise<string> {
  const folder = folderWith(t, { [name]: content })
  const { config, errors } = await tryConfiguration({ environment: {}, folder, ...sources })
  assert.equal(config, undefined, `${name} is accepted`)
  return (errors.config ?? assert.fail()).message.replaceAll(`${folder}/`, '')
}

test('a configuration in YAML or JSON is the same as one in code, and CONFIG can name it', async t => {
  for (const [name, content] of [
    ['menshen.config.yaml', YAML],
    ['menshen.config.yml', YAML],
    ['menshen.config.json', JSON_TEXT],
  ] as const) {
    assert.deepEqual(await load(t, name, content), RULES)
    const other = `other${name.slice('menshen.config'.length)}`
    assert.deepEqual(await load(t, other, content, { config: other }), RULES)
    const ask = ['rules', 'check', '/internal', '--role', 'common']
    const cwd = folderWith(t, { [`elsewhere-${name}`]: content })
    const { output } = await commands.run({ CONFIG: `elsewhere-${name}` }, { cwd, args: ask })
    assert.match(output, /^GET \/internal as common: refused, by the rule/)
  }
})

test('two configurations in one folder stop the start with one sentence that names both, unless CONFIG names one', async t => {
  const cwd = folderWith(t, { 'menshen.config.ts': 'export default {}\n', 'menshen.config.yaml': YAML })
  const { code, output } = await commands.run(PROVIDER, { cwd })
  assert.equal(code, 1)
  assert.match(
    output,
    /^.* has several configuration files: menshen\.config\.ts, menshen\.config\.yaml; keep one, or set CONFIG .*\.$/,
  )
  assert.doesNotMatch(output, /\n/)
  const { config } = await loadConfiguration({ environment: { CONFIG: 'menshen.config.yaml' }, folder: cwd })
  assert.deepEqual(config, RULES)
  const three = folderWith(t, { 'menshen.config.json': '', 'menshen.config.yml': '', 'menshen.config.yaml': YAML })
  await assert.rejects(
    loadConfiguration({ environment: {}, folder: three }),
    / files: menshen\.config\.yaml, menshen\.config\.yml, menshen\.config\.json; keep one/,
  )
})

test('a configuration or a .env that is a link to a missing file stops the start instead of being ignored', async t => {
  for (const [name, sentence] of [
    ['menshen.config.yaml', /menshen\.config\.yaml cannot be read \(ENOENT\); expected a text file of at most 512 KB/],
    ['menshen.config.ts', /menshen\.config\.ts cannot be read \(ENOENT\); expected a file that this user can read\.$/],
    ['menshen.config.cjs', /menshen\.config\.cjs is not read/],
    ['.env', /^\.env cannot be read \(ENOENT\); make it readable, or remove it\.$/],
  ] as const) {
    const cwd = tempFolder(t)
    symlinkSync('not-mounted-yet', join(cwd, name))
    const { code, output } = await commands.run(PROVIDER, { cwd, args: ['check'] })
    assert.equal(code, 1, name)
    assert.match(output, sentence)
    assert.equal(output.split('\n').length, 1, output)
  }
})

test('the error for a broken configuration file is available in Chinese', async t => {
  const folder = folderWith(t, { 'menshen.config.yaml': 'rules:\n\t- path: /x\n' })
  const { errors } = await tryConfiguration({ environment: {}, folder })
  const [problem] = phrasesOf(errors.config ?? assert.fail())
  const chinese = phraseIn('zh-CN', problem ?? assert.fail())
  assert.equal(chinese, `${folder}/menshen.config.yaml:2:1：缩进请使用空格，不能使用制表符。`)
})

test('an empty file is an empty configuration', async t => {
  for (const content of ['', '\n', '# nothing yet\n', '---\n', '{}', '\ufeff'])
    assert.deepEqual(await load(t, 'menshen.config.yaml', content), {}, JSON.stringify(content))
  for (const content of ['', ' \r\n', '{}', '\ufeff{}'])
    assert.deepEqual(await load(t, 'menshen.config.json', content), {})
})

test('a byte order mark, Windows line breaks, anchors, $schema and !!str are accepted', async t => {
  assert.deepEqual(await load(t, 'menshen.config.yaml', `\ufeff${YAML.replaceAll('\n', '\r\n')}`), RULES)
  const shared = 'roles:\n  - { role: a, groups: &all [x, y] }\n  - { role: b, groups: *all }\n'
  const { roles } = await load(t, 'menshen.config.yaml', shared)
  assert.deepEqual(
    roles?.map(({ groups }) => groups),
    [
      ['x', 'y'],
      ['x', 'y'],
    ],
  )
  assert.deepEqual(await load(t, 'menshen.config.yaml', `$schema: ./menshen.schema.json\n${YAML}`), RULES)
  assert.deepEqual(await load(t, 'menshen.config.json', JSON.stringify({ $schema: 'x', ...RULES })), RULES)
  assert.deepEqual(
    await load(t, 'menshen.config.ts', `export default ${JSON.stringify({ $schema: 'x', ...RULES })}`),
    RULES,
  )
  const tagged = await load(
    t,
    'menshen.config.yaml',
    'roles:\n  - { role: a, username: [!!str 123, no, 2027-01-01, 08:00] }\n',
  )
  assert.deepEqual(tagged.roles?.[0]?.username, ['123', 'no', '2027-01-01', '08:00'])
})

const QUOTE = 'Put it in quotes if it is text.'
/** 9 levels of 9 aliases each are 81 aliases, and would be 400 million values. */
const BOMB = `words:\n  a0: &a0 x\n${Array.from({ length: 9 }, (_, n) => `  a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]\n`).join('')}`
const MANY = `roles:\n  - { role: a, groups: [&g x] }\n  - { role: b, groups: [${Array(101).fill('*g').join(', ')}] }\n`

/** What is broken, where it is, and what the sentence says. */
const BAD_YAML: readonly (readonly [content: string | Uint8Array, position: string, sentence: string])[] = [
  // Names.
  ['rulez: []\n', ':1:1', 'the configuration: there is no "rulez"; did you mean rules?'],
  [
    'rules:\n  - { path: /x, public: true }\n  - path: /y\n    public: true\n    exakt: true\n',
    ':5:5',
    'rules.1: there is no "exakt"; did you mean exact?',
  ],
  [
    'hosts:\n  wiki.example.com:\n    upstreem: http://127.0.0.1:9\n',
    ':3:5',
    'hosts.wiki.example.com: there is no "upstreem"; did you mean upstream?',
  ],
  [
    'onSignIn: x\n',
    ':1:1',
    'the configuration: onSignIn is a hook, which can only be set in code; pass it to createMenshen.',
  ],
  // Values.
  [
    'rules:\n  - path: reports\n    public: true\n',
    ':2:11',
    'rules.0.path: expected a plain path that starts with /; did you mean "/reports"?',
  ],
  [
    'rules:\n  - { path: /x, roles: [nobody] }\n',
    ':2:25',
    'rules.0.roles.0: no row in roles grants this role; expected',
  ],
  ['rules:\n', ':1:7', "rules: expected a list, not null; for example [{ path: '/admin', roles: ['developer'] }]."],
  ['rules:\n  - roles: [developer]\n', ':2:5', 'rules.0.path: expected a plain path'],
  ['- a\n- b\n', ':1:1', 'the configuration: expected an object, not a list.'],
  ['only some text\n', ':1:1', 'the configuration: expected an object, not text.'],
  // Text that YAML reads as something else.
  ['roles:\n  - { role: a, username: [0123] }\n', ':2:27', `roles.0.username.0: expected text, not a number. ${QUOTE}`],
  ['roles:\n  - { role: a, username: [1e3] }\n', ':2:27', `roles.0.username.0: expected text, not a number. ${QUOTE}`],
  [
    'roles:\n  - { role: a, username: [true] }\n',
    ':2:27',
    `roles.0.username.0: expected text, not true or false. ${QUOTE}`,
  ],
  ['roles:\n  - { role: a, username: [null] }\n', ':2:27', `roles.0.username.0: expected text, not null. ${QUOTE}`],
  ['roles:\n  - { role: a, username: [~] }\n', ':2:27', `roles.0.username.0: expected text, not null. ${QUOTE}`],
  ['provider: { clientSecret: 0123 }\n', ':1:27', `provider.clientSecret: expected text or an object. ${QUOTE}`],
  [
    'upstreams:\n  /a: { url: http://127.0.0.1:9, headers: { X-Tenant: 1e3 } }\n',
    ':2:55',
    `upstreams./a.headers.X-Tenant: expected text or an object. ${QUOTE}`,
  ],
  ['words: { login.title: 123 }\n', ':1:23', 'words.login.title: expected text'],
  [
    'loginPage: { note: 42 }\n',
    ':1:20',
    `loginPage.note: expected text of at most 300 characters, or one text per language: { 'zh-CN': '…', en: '…' }. ${QUOTE}`,
  ],
  ['words: { 12: x }\n', ':1:10', 'a key must be text; put it in quotes.'],
  [
    'roles:\n  - { role: a, claim: { id: [12345678901234567890] } }\n',
    ':2:30',
    'this number is too large to be exact; put it in quotes if it is text.',
  ],
  ['upstreams:\n  /a: { url: http://127.0.0.1:9, timeoutSeconds: .inf }\n', ':2:50', 'expected a finite number.'],
  // What YAML can do, and a configuration cannot.
  ['rules: []\nroles: []\nrules: []\n', ':3:1', 'this key appears twice.'],
  ['rules: !include rules.yaml\n', ':1:8', 'tags are not supported; remove it.'],
  ['rules: !!js/function "x"\n', ':1:8', 'tags are not supported; remove it.'],
  ['words: { a: !!binary aGk= }\n', ':1:22', 'tags are not supported; remove it.'],
  ['words: !!set { a, b }\n', ':1:14', 'tags are not supported; remove it.'],
  [
    'base: &base { path: /x }\nrules:\n  - { <<: *base, public: true }\n',
    ':3:7',
    'YAML 1.2 has no merge keys (<<); write the keys out.',
  ],
  ['__proto__: { rules: [] }\n', ':1:1', '__proto__ cannot be a key; choose another name.'],
  ['rules: []\n---\nrules: []\n', ':2:1', 'there is a second document after ---; expected one.'],
  ['%YAML 1.1\n---\nrules: []\n', ':1:1', 'this is YAML 1.1; expected YAML 1.2.'],
  [
    'rules: *nowhere\n',
    ':1:8',
    'no anchor with this name comes before the alias; put text that begins with * in quotes.',
  ],
  [
    'rules: [{ path: /a, roles: [*] }]\n',
    ':1:29',
    "put text that begins with * or & in quotes, for example '*'; otherwise expected the name of an anchor.",
  ],
  ['rules: &a [*a]\n', ':1:12', 'this alias contains itself.'],
  ['? [a, b]\n: x\n', ':1:3', 'a key must be text; put it in quotes.'],
  [MANY, ':3:', 'more than 100 aliases in the file.'],
  [BOMB, ':', 'more than 100000 values, aliases included.'],
  [`rules:\n${'- '.repeat(200_000)}`, ':2:', 'more than 100000 words and signs in the file.'],
  [`rules: [${','.repeat(500_000)}`, ':1:', 'more than 100000 words and signs in the file.'],
  [']'.repeat(500_000), ':1:', 'more than 100000 words and signs in the file.'],
  [`rules: ${'['.repeat(70)}${']'.repeat(70)}\n`, ':1:', 'nested more than 64 levels deep.'],
  // What is not YAML.
  ['rules:\n\t- path: /x\n', ':2:1', 'indent with spaces, not with tabs.'],
  ['rules: [\n', ':2:1', 'the file ends too early; is a closing quote or bracket missing?'],
  ['rules: "open\n', ':2:1', 'the file ends too early; is a closing quote or bracket missing?'],
  ['rules: [ { path: /x, public: true }\nroles: []\n', ':2:', ''],
  ['rules: []\n  roles: []\n', ':2:', ''],
  ['a: b: c\n', ':1:', ''],
  ['rules: @x\n', ':1:8', 'text cannot begin with this character; put it in quotes.'],
  ['words: { a: "\\q" }\n', ':1:', 'there is no such escape in double quotes'],
  ['rules: []\n\u0007\n', ':2:1', 'a control character; expected plain text.'],
  ['\0\0\0', ':1:1', 'a control character; expected plain text.'],
]

const BAD_JSON: typeof BAD_YAML = [
  ['{ "rules": [], "rules": [] }', ':1:16', 'this key appears twice.'],
  [
    '{\n  // a comment\n  "rules": []\n}',
    ':2:3',
    'JSON has no comments; remove it, or write the configuration in YAML.',
  ],
  ['{ "rules": [] } /* end */', ':1:17', 'JSON has no comments'],
  ['{ "rules": [], }', ':1:14', 'remove the comma before }.'],
  ['{ "rules": [\n  {},\n] }', ':2:5', 'remove the comma before ].'],
  ["{ 'rules': [] }", ':1:3', 'expected a key in double quotes.'],
  ['{ "words": { "a": \'x\' } }', ':1:19', 'expected double quotes.'],
  ['{ rules: [] }', ':1:3', 'expected a key in double quotes.'],
  ['{ "rules": [] ', ':1:15', 'the file ends too early: expected a comma or }.'],
  ['{ "rules": [] } {}', ':1:17', 'expected the end of the file after the closing brace.'],
  ['{ "rules" [] }', ':1:11', 'expected a colon after the key.'],
  ['{ "a": 0123 }', ':1:8', 'expected a valid JSON number; put it in quotes if it is text.'],
  ['{ "a": .5 }', ':1:8', 'expected a value'],
  ['{ "a": NaN }', ':1:8', 'expected a value'],
  ['{ "a": undefined }', ':1:8', 'expected a value'],
  ['{ "a": "x\ny" }', ':1:10', 'a line break or a control character inside quotes.'],
  ['{ "a": "\\x" }', ':1:9', 'JSON has no such escape; write \\\\ for a backslash.'],
  ['{ "a": "x }', ':1:8', 'the text that begins here has no closing quote.'],
  ['{ "__proto__": {} }', ':1:3', '__proto__ cannot be a key; choose another name.'],
  ['[]', ':1:1', 'the configuration: expected an object, not a list.'],
  [
    '{ "rules": [{ "path": "/x", "public": true, "pubic": true }] }',
    ':1:45',
    'rules.0: there is no "pubic"; did you mean public?',
  ],
  [
    '{ "roles": [{ "role": "a", "username": [123] }] }',
    ':1:41',
    `roles.0.username.0: expected text, not a number. ${QUOTE}`,
  ],
  [`{ "a": ${'['.repeat(100_000)}`, ':1:', 'nested more than 64 levels deep.'],
]

suite('every broken file is reported with one sentence that names the line and the column', { concurrency: 2 }, () => {
  for (const [name, table] of [
    ['menshen.config.yaml', BAD_YAML],
    ['menshen.config.json', BAD_JSON],
  ] as const)
    for (const [content, position, sentence] of table)
      test(`${name}: ${JSON.stringify(String(content).slice(0, 60))}`, async t => {
        const message = await refusal(t, name, content)
        assert.ok(message.startsWith(`${name}${position}`), message)
        assert.match(message, /^[\w.]+:\d+:\d+: [^\n]+[.?]$/)
        assert.ok(message.includes(`: ${sentence}`), message)
      })
})

test('a configuration that is too large, not text or not a regular file is refused without showing its content', async t => {
  const large = `rules: []\n# ${'x'.repeat(10 * 1024 * 1024)}\n`
  const expected = 'expected a text file of at most 512 KB that this user can read.'
  for (const name of ['menshen.config.yaml', 'menshen.config.json']) {
    assert.equal(await refusal(t, name, large), `${name} cannot be read (larger than 512 KB); ${expected}`)
    const garbage = Uint8Array.from({ length: 4096 }, (_, n) => (n * 89) % 256)
    assert.equal(await refusal(t, name, garbage), `${name} cannot be read (not text in UTF-8); ${expected}`)
    const wide = Buffer.from('\ufeffrules: []\n', 'utf16le')
    assert.equal(await refusal(t, name, wide), `${name} cannot be read (not text in UTF-8); ${expected}`)
    const folder = tempFolder(t)
    const at = (name: string) => join(folder, name)
    mkdirSync(at(name))
    await assert.rejects(loadConfiguration({ environment: {}, folder }), /cannot be read \(EISDIR\)/)
    const pipes = tempFolder(t)
    execFileSync('mkfifo', [join(pipes, name)])
    await assert.rejects(loadConfiguration({ environment: {}, folder: pipes }), /cannot be read \(not a regular file\)/)
    for (const CONFIG of [at(name), join(pipes, name)])
      await assert.rejects(
        loadConfiguration({ environment: { CONFIG }, folder }),
        /^\w+: CONFIG is ".*", which is not a file; /,
      )
    if (process.getuid?.() !== 0) {
      const closed = folderWith(t, { [name]: '' })
      chmodSync(join(closed, name), 0)
      await assert.rejects(loadConfiguration({ environment: {}, folder: closed }), /cannot be read \(EACCES\)/)
    }
  }
  for (const CONFIG of ['menshen.toml', 'x.json5', 'x.jsonc'])
    await assert.rejects(
      loadConfiguration({ environment: { CONFIG }, folder: folderWith(t, { [CONFIG]: '' }) }),
      /CONFIG is ".*", which is not read; expected menshen\.config\.ts, .*\.yaml, \.yml or \.json\.$/,
    )
})

test('a file that repeats one token 2000 times is refused with one sentence', async t => {
  for (const piece of ['[', '{a: ', '- ', '? ', '&a ', '*a ', '"', '!!x ', '---\n', '}', '{"a":'])
    for (const name of ['menshen.config.yaml', 'menshen.config.json'])
      assert.match(await refusal(t, name, piece.repeat(2000)), /^[\w.]+:\d+:\d+: [^\n]{1,200}[.?]$/, piece)
})

test('no error about a YAML or JSON file quotes a value, which could be a secret', async t => {
  const broken = [
    `provider: { clientSecret: ${CANARY}: x }\n`,
    `provider: { clientSecret: "${CANARY}\n`,
    `provider:\n  clientSecret: ${CANARY}\n   clientId: x\n`,
    `provider: { clientSecret: [${CANARY}] }\n`,
    `provider: { clientSecret: !x ${CANARY} }\n`,
    `provider: { clientSecret: *${CANARY} }\n`,
    `provider: { clientSecret: { env: "${CANARY} " } }\n`,
    `upstreams: { /a: { url: http://127.0.0.1:9, headers: { X: "${CANARY} {nothing}" } } }\n`,
    `@${CANARY}\n`,
    `${CANARY}\n${CANARY}: [\n`,
  ]
  for (const content of broken) assert.ok(!(await refusal(t, 'menshen.config.yaml', content)).includes(CANARY), content)
  for (const content of [`{ "provider": { "clientSecret": ${CANARY} } }`, `{ "a": "${CANARY}`, `"${CANARY}" ${CANARY}`])
    assert.ok(!(await refusal(t, 'menshen.config.json', content)).includes(CANARY), content)
})

test('the strict JSON parser agrees with JSON.parse, except that it refuses duplicate keys and inexact numbers', () => {
  const samples = [
    '{"a":[1,-0,0.5,1e3,1E-2,true,false,null,"x"]}',
    ' [ ] ',
    '"\\u00e9\\ud83d\\ude00\\"\\\\\\/\\b\\f\\n\\r\\t"',
    '{"":{}}',
    '0',
    '-',
    '01',
    '1.',
    '+1',
    '[1,]',
    '[,1]',
    '{"a" 1}',
    '{"a":1,}',
    'tru',
    'nul',
    '"\u0007"',
    '"\u007f\u2028"',
    '"\\u12"',
    '\u00a0{}',
    '[1 2]',
    '{"a":}',
    '{1:2}',
    '""x',
    '\v1',
  ]
  const alphabet = '{}[]",:\\ue019.-+ \n\ttrfalsn'
  let seed = 7
  const next = (most: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed % most
  }
  const base = '{"rules":[{"path":"/x","n":-1.5e+3,"t":true,"z":null,"s":"a\\n\\u00e9"}]}'
  const mutated = Array.from({ length: 20_000 }, () => {
    const at = next(base.length)
    const replacement = next(3) === 0 ? '' : (alphabet[next(alphabet.length)] ?? '')
    return base.slice(0, at) + replacement + base.slice(at + next(3))
  })
  for (const text of [...samples, ...mutated]) {
    const expected = attempt(() => JSON.parse(text))
    const found = attempt(() => {
      const node = parseJson(text)
      return node && toValue(node)
    })
    // Keys that are there twice, and numbers that are not exact, are refused here alone.
    if (found === undefined && expected !== undefined && /"(\w+)":.*"\1":|\d{16}|e\+?\d\d/i.test(text)) continue
    assert.deepEqual(found, expected, text)
  }
})

function attempt(work: () => unknown): unknown {
  try {
    return work()
  } catch {
    return undefined
  }
}

test('errors that depend on other settings or files also name the line and the column', async t => {
  const own = 'rules:\n  - { path: /login, public: true }\n'
  assert.equal(
    await refusal(t, 'menshen.config.yaml', own),
    'menshen.config.yaml:2:13: rules.0.path: this path belongs to Menshen; leave it out.',
  )
  const file = 'upstreams:\n  /a:\n    url: https://127.0.0.1:9\n    caFile: /nowhere\n'
  assert.match(
    await refusal(t, 'menshen.config.yaml', file),
    /^menshen\.config\.yaml:4:13: upstreams\.\/a\.caFile: \/nowhere cannot be read \(ENOENT\);/,
  )
  const cwd = folderWith(t, { 'menshen.config.yaml': 'providers:\n  staff:\n    preset: keyclok\n' })
  const { code, err } = await commands.run({ STORE: 'memory:' }, { cwd, args: ['check'] })
  assert.equal(code, 1)
  assert.match(err, /menshen\.config\.yaml:3:13: providers\.staff\.preset /)
})

// Secrets.

const REFERENCES = `provider:
  preset: oidc
  vars: { auth_url: https://sso.example.com }
  clientId: app
  clientSecret: { env: STAFF_SECRET }
  userInfoRequest: { headers: { X-Api-Key: { file: key } } }
upstreams:
  /a: { url: http://127.0.0.1:9, headers: { X-Key: { env: UPSTREAM_KEY }, X-File: { file: key } } }
hosts:
  wiki.example.com: { upstream: { url: http://127.0.0.1:9, headers: { X-Key: { env: UPSTREAM_KEY } } } }
`

test('a secret is read from a variable or a file, and menshen check names the line of a missing or empty one', async t => {
  const cwd = folderWith(t, { 'menshen.config.yaml': REFERENCES, key: `${CANARY}\n` })
  const environment = { STORE: 'memory:', STAFF_SECRET: `${CANARY}-1`, UPSTREAM_KEY: '' }
  const run = (env: object) => commands.run({ STORE: 'memory:', ...env }, { cwd, args: ['check'] })
  const missing = await run(environment)
  assert.equal(missing.code, 1)
  assert.match(
    missing.err,
    /menshen\.config\.yaml:8:\d+: upstreams\.\/a\.headers\.X-Key: the variable UPSTREAM_KEY is missing or empty; set it/,
  )
  assert.match(
    missing.err,
    /menshen\.config\.yaml:10:\d+: hosts\.wiki\.example\.com\.upstream\.headers\.X-Key: the variable UPSTREAM_KEY/,
  )
  assert.equal(missing.err.trim().split('\n').length, 2)
  const all = await run({ ...environment, UPSTREAM_KEY: `${CANARY}-2` })
  assert.equal(all.code, 0, all.output)
  writeFileSync(join(cwd, '.env'), `STAFF_SECRET=${CANARY}\nUPSTREAM_KEY=${CANARY}\n`)
  const fromFile = await run({})
  assert.equal(fromFile.code, 0, fromFile.output)
  // Names near those of settings are not misspelt settings where the configuration names them.
  assert.doesNotMatch(fromFile.output, /STAFF_SECRET|UPSTREAM_KEY/)
  writeFileSync(join(cwd, 'key'), '\n')
  const empty = await run({})
  assert.match(
    empty.err,
    /menshen\.config\.yaml:6:\d+: provider\.userInfoRequest\.headers\.X-Api-Key: key is empty; expected the secret\./,
  )
  writeFileSync(join(cwd, 'key'), 'x'.repeat(100_000))
  assert.match((await run({})).err, /key cannot be read \(larger than 64 KB\)/)
  for (const { output } of [missing, all, fromFile, empty]) assert.ok(!output.includes(CANARY), output)
  for (const args of [['rules', 'check', '/a', '--role', 'common'], ['schema']]) {
    const bare = folderWith(t, { 'menshen.config.yaml': REFERENCES })
    const { code, output } = await commands.run({}, { cwd: bare, args })
    assert.equal(code, 0, output)
  }
})

test('a secret reference has either env or file, and only a secret can be a reference', async t => {
  const secret = (text: string) => refusal(t, 'menshen.config.yaml', `provider: { clientSecret: ${text} }\n`)
  const either = 'provider.clientSecret: expected either env, the name of a variable, or file, the path of a file.'
  assert.ok((await secret('{}')).endsWith(either))
  assert.ok((await secret('{ env: A, file: b }')).endsWith(either))
  assert.match(await secret('{ evn: A }'), /provider\.clientSecret: there is no "evn"; did you mean env\?$/)
  assert.match(
    await secret('{ env: 1 }'),
    /provider\.clientSecret\.env: expected text, not a number\. Put it in quotes/,
  )
  assert.match(await secret("{ env: 'A B' }"), /expected the name of a variable, for example CLIENT_SECRET\.$/)
  assert.match(
    await refusal(t, 'menshen.config.yaml', 'provider: { clientId: { env: A } }\n'),
    /provider\.clientId: expected text, not an object; a reference with env or file is accepted only for a secret\.$/,
  )
})

test('an error does not quote a secret in braces, which YAML reads as a key', async t => {
  const either = 'expected either env, the name of a variable, or file, the path of a file.'
  for (const text of [`{${CANARY}}`, `{ ${CANARY}: 1, evn: A }`, `\n    ${CANARY}: 1`])
    for (const content of [
      `provider:\n  clientSecret: ${text}\n`,
      `upstreams:\n  /a:\n   url: http://127.0.0.1:9\n   headers:\n    X-Key: ${text.replace('\n', '\n  ')}\n`,
    ]) {
      const message = await refusal(t, 'menshen.config.yaml', content)
      assert.ok(message.endsWith(either), message)
      assert.ok(!message.includes(CANARY), message)
    }
})

test('of thousands of mistakes in a file, the first 50 are listed and the others counted', async t => {
  const keys = Array.from({ length: 20_000 }, (_, n) => `"key-${n}":1`)
  const numbers = Array.from({ length: 20_000 }, (_, n) => n)
  // What only a choice between several shapes tells.
  const upstreams = Array.from({ length: 51 }, (_, n) => `"/${n}":{"url":"http://127.0.0.1:9","uri":1}`)
  for (const [content, more] of [
    [`{${keys}}`, '19950 more problems are not listed.'],
    [`{"roles":[{"role":"a","username":[${numbers}]}]}`, '19950 more problems are not listed.'],
    [`{"upstreams":{${upstreams}}}`, '1 more problem is not listed.'],
  ] as const) {
    const lines = (await refusal(t, 'menshen.config.json', content)).split('\n')
    assert.equal(lines.length, 51)
    for (const line of lines) assert.match(line, /^menshen\.config\.json:1:\d+: /)
    assert.equal(lines.at(-1), `menshen.config.json:1:1: the configuration: ${more}`)
  }
})

test('shell variable syntax in a secret is refused instead of being used as the secret', async t => {
  const written = `\${OIDC_SECRET}`
  for (const text of [written, `"${written}"`])
    assert.equal(
      await refusal(t, 'menshen.config.yaml', `provider:\n  clientSecret: ${text}\n`),
      `menshen.config.yaml:2:17: provider.clientSecret: \${NAME} is not replaced; write { env: NAME } in place of the text.`,
    )
})

test('a secret of several lines is refused from a file or a variable, apart from one trailing line break', async t => {
  const config = 'provider: { preset: oidc, clientSecret: { file: key } }\n'
  const read = async (key: string) => {
    const cwd = folderWith(t, { 'menshen.config.yaml': config.replace('key', join(folderWith(t, { key }), 'key')) })
    return (await tryConfiguration({ environment: {}, folder: cwd })).errors.config?.message
  }
  assert.equal(await read('secret\r\n'), undefined)
  for (const key of ['secret\n\n', 'one\ntwo\n', 'one\rtwo'])
    assert.match((await read(key)) ?? '', /key has several lines; expected only the secret, on one line\.$/)
  const folder = folderWith(t, { 'menshen.config.yaml': 'provider: { clientSecret: { env: LINES } }\n' })
  const ending = await tryConfiguration({ environment: { LINES: 'secret\n' }, folder })
  const { provider } = ending.config ?? {}
  const { clientSecret } = typeof provider === 'object' ? provider : assert.fail()
  assert.equal(typeof clientSecret === 'object' && revealReference(clientSecret), 'secret')
  const { errors } = await tryConfiguration({ environment: { LINES: `${CANARY}\n2` }, folder })
  assert.match(errors.config?.message ?? '', /LINES has several lines/)
  assert.ok(!errors.config?.message.includes(CANARY))
})

test('an error about the whole configuration is worded in the language of the operator', async t => {
  for (const [name, content, sentence] of [
    ['menshen.config.yaml', 'rulez: []\n', '：整个配置：没有 "rulez" 这一项；您是不是想写 rules？'],
    ['menshen.config.mjs', 'export default []\n', '：默认导出：应为对象，不能是列表。'],
  ] as const) {
    const { errors } = await tryConfiguration({ environment: {}, folder: folderWith(t, { [name]: content }) })
    const [said = ''] = phrasesOf(errors.config ?? assert.fail()).map(given => phraseIn('zh-CN', given))
    assert.ok(said.endsWith(sentence), said)
  }
})

test('a setting in the configuration file is refused with its name and where to set it', async t => {
  for (const [key, setting] of [
    ['store', 'STORE'],
    ['baseUrl', 'BASE_URL'],
    ['BASE_URL', 'BASE_URL'],
    ['session_max_hours', 'SESSION_MAX_HOURS'],
  ])
    assert.equal(
      await refusal(t, 'menshen.config.yaml', `rules: []\n${key}: x\n`),
      `menshen.config.yaml:2:1: the configuration: "${key}" is the setting ${setting}, which is not part of the configuration; set it in the environment or in .env.`,
    )
})

test('a secret reference works in code and in the library, and an error names a missing variable and never quotes a secret', async t => {
  const environment = { STAFF_SECRET: CANARY, UPSTREAM_KEY: CANARY }
  const folder = folderWith(t, {
    'menshen.config.ts': "export default { provider: { preset: 'oidc', clientSecret: { env: 'STAFF_SECRET' } } }\n",
  })
  const { config, variables } = await loadConfiguration({ environment, folder })
  assert.deepEqual(variables, ['STAFF_SECRET'])
  assert.ok(!JSON.stringify(config).includes(CANARY))
  const options = {
    provider: { preset: 'oauth2', clientSecret: { env: 'NO_SUCH_VARIABLE' } },
    store: 'memory:',
  } as const
  await assert.rejects(createMenshen(options), (error: unknown) => {
    assert.ok(error instanceof MenshenError)
    return /^createMenshen: provider\.clientSecret: the variable NO_SUCH_VARIABLE is missing or empty/.test(
      error.message,
    )
  })

  const idp = await openScriptedProvider(t)
  writeFileSync(join(folder, 'secret'), CLIENT_SECRET)
  const clientSecret = { file: join(folder, 'secret') }
  const { clientSecret: _, ...known } = idp.options
  const library = { ...known, provider: { clientSecret } }
  const menshen = await createMenshen(library)
  t.after(() => menshen.close())
  const callback = `http://localhost:3000/callback?code=${idp.codeFor()}&state=abc_idp`
  assert.equal((await menshen.fetch(new Request(callback)))?.headers.get('location'), '/')
  // Something else is wrong when the secret has been read.
  const headers = { 'X-Key': { env: 'NO_SUCH_VARIABLE' } }
  const upstreams = { '/a': { url: 'http://127.0.0.1:9', headers } }
  const code = `export default ${JSON.stringify({ provider: { clientSecret }, upstreams })}\n`
  const { errors } = await tryConfiguration({ environment, folder: folderWith(t, { 'menshen.config.ts': code }) })
  const startError = (more: object) => createMenshen({ ...library, ...more }).catch((error: unknown) => error)
  for (const [error, expected] of [
    [errors.config, /upstreams\.\/a\.headers\.X-Key: the variable NO_SUCH_VARIABLE/],
    [await startError({ upstreams }), /upstreams\.\/a\.headers\.X-Key: the variable NO_SUCH_VARIABLE/],
    [await startError({ store: 'sqlite:/dev/null/menshen.db' }), /\/dev\/null/],
  ] as const) {
    assert.ok(error instanceof MenshenError)
    assert.match(error.message, expected)
    assert.ok(!inspect(error, { depth: 9 }).includes(CLIENT_SECRET), error.message)
  }
})

test('a secret file that is a named pipe is refused without being read', async t => {
  const folder = folderWith(t, {})
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const content of [
    `provider: { preset: oidc, clientSecret: { file: ${pipe} } }\n`,
    `upstreams: { /a: { url: http://127.0.0.1:9, headers: { X: { file: ${pipe} } } } }\n`,
  ])
    assert.match(await refusal(t, 'menshen.config.yaml', content), /pipe cannot be read \(not a regular file\)/)
})

test('the YAML library is loaded only when a YAML file is read', () => {
  const importers = execFileSync('grep', ['-rlE', String.raw`from 'yaml'|import\('yaml'\)`, 'src'], {
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
  assert.deepEqual(importers, ['src/config/data/yaml.ts'])
  assert.match(readFileSync('src/config/data/file.ts', 'utf8'), /await import\('\.\/yaml\.ts'\)/)
  assert.doesNotMatch(readFileSync('src/config/data/file.ts', 'utf8'), /^import .*\.\/yaml\.ts/m)
})
