// `menshen check`: everything that is wrong with settings, configuration and the files that they name, at once; and
// nothing is opened or written.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { runCheckCommand } from '../../../src/cli/commands/check.ts'
import { createPaint } from '../../../src/cli/terminal.ts'
import { createMenshen } from '../../../src/index.ts'
import { refuseToListen } from '../../../src/options.ts'
import { type Environment, runMenshen } from '../../kit/instance.ts'
import { requireProgram } from '../../kit/requirements.ts'
import { tempFolder } from '../../kit/temp.ts'

const PROVIDER = { AUTH_URL: 'https://idp.example.com', CLIENT_ID: 'menshen', CLIENT_SECRET: 'secret-CANARY' }
const SAFE = /^[^\p{Cc}\p{Bidi_Control}]*$/u

/** In a folder with these files, as somebody who stands in it. */
async function check(t: TestContext, environment: Environment, files: Record<string, string> = {}) {
  const folder = tempFolder(t)
  const home = process.cwd()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  process.chdir(folder)
  try {
    const run = { environment, now: Date.now, paint: createPaint(false) }
    const { text, problems } = await runCheckCommand([], run)
    assert.deepEqual(readdirSync(folder).sort(), Object.keys(files).sort(), 'nothing is written')
    assert.doesNotMatch(text + problems, /CANARY/)
    const lines = (output: string) => output.split('\n').slice(0, -1)
    for (const line of [...lines(text), ...lines(problems)]) assert.match(line, SAFE)
    return { folder, text: lines(text), problems: lines(problems) }
  } finally {
    process.chdir(home)
  }
}

suite('valid settings', () => {
  test('menshen check confirms valid settings with a short summary, even if nothing is set', async t => {
    const nothing = await check(t, {})
    assert.deepEqual(nothing.problems, [])
    assert.match(nothing.text[0] ?? '', /^✔ All settings are valid\.$/)
    assert.match(nothing.text[1] ?? '', /development provider, not for production/)
    const config = "export default { rules: [{ path: '/x', public: true }], upstreams: { '/a': 'http://127.0.0.1:9' } }"
    const env = { ...PROVIDER, STORE: 'redis://user:pass-CANARY@127.0.0.1:9', UPSTREM: 'http://127.0.0.1:9' }
    const { text, problems } = await check(t, env, { 'menshen.config.mjs': config, '.env': 'STATE_CHECK=bound\n' })
    assert.deepEqual(problems, [])
    assert.match(
      text.join('\n'),
      /preset +idaas \(PROVIDER is not set\)\n +provider +https:\/\/idp\.example\.com\n.*store +redis:\/\/user:\[hidden\]@/,
    )
    assert.match(text.join('\n'), /menshen\.config\.mjs, 1 rule\n +upstream +\/a → http:\/\/127\.0\.0\.1:9/)
    assert.match(text.join('\n'), /^ +tokens +idp\.example\.com$/m)
    assert.match(text.at(-1) ?? '', /^! UPSTREM is not a Menshen setting and is ignored; did you mean UPSTREAM\?$/)
  })
})

test('menshen check warns about settings of other products in .env, but not in the environment', async t => {
  const env = { ...PROVIDER, STATE_CHECK: 'bound', TRUST_PROXY: '1' }
  const { text } = await check(t, env, { '.env': 'REDIS_URL=redis://127.0.0.1\nOAUTH2_PROXY_CLIENT_ID=x\n' })
  assert.deepEqual(
    text.filter(line => line.startsWith('!')),
    [
      '! REDIS_URL is not a Menshen setting and is ignored; did you mean STORE?',
      '! OAUTH2_PROXY_* is not a Menshen setting and is ignored; docs/migrating.md translates the settings of oauth2-proxy.',
    ],
  )
})

test('menshen check passes with a warning if BASE_URL points to this machine in production', async t => {
  const env = { ...PROVIDER, NODE_ENV: 'production', SECRET: 's'.repeat(32), STATE_CHECK: 'bound' }
  const { text, problems } = await check(t, env)
  assert.deepEqual(problems, [])
  assert.match(text.at(-1) ?? '', /^! NODE_ENV is production, but BASE_URL .*Set BASE_URL to the address/)
})

test('menshen check warns about expired rows of machines, and about a menshen.yaml that is not read', async t => {
  const hash = (digit: string) => `keySha256: '${digit.repeat(64)}'`
  const machines = `machines:
  - { name: old, ${hash('a')}, expires: 2025-01-01 }
  - { name: older, ${hash('b')}, expires: 2024-01-01 }
  - { name: valid, ${hash('c')}, expires: 2999-01-01 }
`
  const { text } = await check(t, PROVIDER, { 'menshen.config.yaml': machines })
  assert.match(
    text.join('\n'),
    /a row of machines has expired: its key is rejected → Create a new key and row for old, older with menshen keys new, or/,
  )
  const other = await check(t, PROVIDER, { 'menshen.yaml': machines })
  assert.match(
    other.text.join('\n'),
    /config +none \(no menshen\.config\.\{.*; menshen\.yaml is not read: rename it to/,
  )
  assert.doesNotMatch((await check(t, PROVIDER)).text.join('\n'), /is not read/)
})

test('menshen check shows the preset, the provider and every host that receives tokens, in English and Chinese', async t => {
  const client = "clientId: 'a', clientSecret: 'b-CANARY', stateCheck: 'bound'"
  const lines = async (provider: string, environment: Environment = {}) => {
    const config = `export default { provider: { ${client}, ${provider} }, roles: [{ role: 'developer', groups: ['ops'] }] }`
    const { text, problems } = await check(t, environment, { 'menshen.config.mjs': config })
    assert.deepEqual(problems, [])
    return text
      .filter(line => /^ +(preset|provider|tokens|预设|平台|令牌) /.test(line))
      .map(line => line.trim().replace(/ +/g, ' '))
  }
  assert.deepEqual(await lines("preset: 'github'"), [
    'preset github (GitHub)',
    'provider github https://github.com/login/oauth/authorize',
    'tokens github.com, api.github.com',
  ])
  assert.deepEqual(await lines("preset: 'github', userInfoUrl: 'https://git.example.com/api/v3/user'"), [
    'preset github (GitHub)',
    'provider github https://github.com/login/oauth/authorize',
    'tokens github.com, git.example.com',
  ])
  const oidc = "preset: 'oidc', issuer: 'https://sso.example.com', userInfoUrl: 'https://me.example.com/'"
  const url = 'https://sso.example.com/.well-known/openid-configuration'
  assert.deepEqual(await lines(oidc), [
    'preset oidc',
    'provider oidc https://sso.example.com',
    `tokens me.example.com and the hosts named in ${url}`,
  ])
  assert.deepEqual(await lines(oidc, { LC_ALL: 'zh_CN.UTF-8' }), [
    '预设 oidc',
    '平台 oidc https://sso.example.com',
    `令牌 me.example.com 和 ${url} 中列出的主机`,
  ])
})

test('in production, menshen check requires SECRET if the client secret is too short to derive keys from', async t => {
  const env = { ...PROVIDER, NODE_ENV: 'production', BASE_URL: 'https://app.example.com' }
  const problemsWith = async (more: Environment) => (await check(t, { ...env, ...more })).problems
  assert.deepEqual(await problemsWith({ CLIENT_SECRET: '0123456789abcdef' }), [])
  const [problem, ...others] = await problemsWith({ CLIENT_SECRET: 'b' })
  assert.deepEqual(others, [])
  assert.match(problem ?? '', /^SECRET is not set, and the client secret.*too short.*openssl rand -hex 32\.$/)
  assert.deepEqual(await problemsWith({ CLIENT_SECRET: 'b', SECRET: 's'.repeat(32) }), [])
  assert.deepEqual(await problemsWith({ CLIENT_SECRET: 'b', NODE_ENV: 'development' }), [])
})

suite('invalid settings', () => {
  test('menshen check explains how to fix each mistake', async t => {
    const rows: [env: Environment, problem: string | RegExp][] = [
      [{ PAGE_LANGUAGE: 'zh' }, /^PAGE_LANGUAGE is "zh"; .*; did you mean zh-CN\?$/],
      [{ PROVIDER: 'keycloak' }, /^provider\.vars\.realm \(or PROVIDER_VARS=realm=…\) is missing: /],
      [
        { CLIENT_SECRET: '', CLIENT_SECRET_FILE: '/nonexistent' },
        /^CLIENT_SECRET_FILE is "\/nonexistent", which is missing; expected the path of a readable file/,
      ],
      [
        { CLIENT_SECRET: '', CLIENT_SECRET_FILE: '/dev/null' },
        /^CLIENT_SECRET_FILE is "\/dev\/null", which is not a file; /,
      ],
      [{ STORE: 'sqlite:/dev/null/menshen.db' }, /^STORE is "sqlite:\/dev\/null\/menshen\.db", which is not a file; /],
      [{ STORE: 'sqlite:./data/' }, /^STORE is "sqlite:\.\/data\/"; expected memory:, sqlite:FILE, /],
      [
        { NODE_ENV: 'production', BASE_URL: 'https://app.example.com', AUTH_URL: 'http://idp.example.com' },
        /^AUTH_URL is "http:\/\/idp\.example\.com"; expected an https address in production, for example https:\/\/idp\.example\.com /,
      ],
      [{ SECRET_FILE: '/' }, /^SECRET_FILE is "\/", which is not a file; /],
      [{ SECRET_FILE: 'CANARY' }, /^SECRET_FILE is not usable; /],
      [
        { STORE: 'redis://:pass-CANARY@127.0.0.1?prefx=x' },
        'STORE has an unknown parameter, prefx; did you mean prefix?',
      ],
      [
        { STORE: 'redis://127.0.0.1?prefix=a{b}' },
        /^STORE has a prefix that cannot be used; expected at most 64 letters, /,
      ],
    ]
    for (const [env, problem] of rows) {
      const { problems } = await check(t, { ...PROVIDER, ...env })
      assert.equal(problems.length, 1, problems.join('\n'))
      if (typeof problem === 'string') assert.equal(problems[0], problem)
      else assert.match(problems[0] ?? '', problem)
    }
    const listen = { setting: 'PORT', port: 80, host: '127.0.0.1' } as const
    assert.throws(
      () => refuseToListen(Object.assign(new Error(), { code: 'EACCES' }), listen),
      /: PORT: this user cannot listen on port 80 /,
    )
  })

  test('an upstream that is Menshen itself is refused by menshen check, at the start and by the library', async t => {
    const own = async (env: Environment, files = {}) => (await check(t, { ...PROVIDER, ...env }, files)).problems
    const sentence = (name: string, url: string) =>
      `${name} is "${url}", which is Menshen itself; expected the address of the application behind it.`
    const ways: [url: string, env: Environment][] = [
      ['http://localhost:3000', {}],
      ['http://127.0.0.1:3000', {}],
      ['http://127.0.0.1:3000', { BASE_URL: 'https://app.example.com', TRUSTED_PROXIES: '127.0.0.1' }],
      ['http://[::1]:8080', { HOST: '::', PORT: '8080', BASE_URL: 'https://app.example.com' }],
      ['http://127.0.0.9:8080', { HOST: '0.0.0.0', PORT: '8080', BASE_URL: 'https://app.example.com' }],
      ['https://app.example.com', { BASE_URL: 'https://app.example.com' }],
    ]
    for (const [UPSTREAM, env] of ways)
      assert.deepEqual(await own({ ...env, UPSTREAM }), [sentence('UPSTREAM', UPSTREAM)])
    const config =
      "export default { upstreams: { '/a': { url: 'http://localhost:3000' }, '/b': 'http://localhost:3001' } }"
    assert.deepEqual(await own({}, { 'menshen.config.mjs': config }), [
      sentence('upstreams./a', 'http://localhost:3000'),
    ])
    for (const UPSTREAM of ['http://localhost:3001', 'http://127.0.0.2:3000', 'unix:/run/app.sock'])
      assert.deepEqual(await own({ UPSTREAM }), [])
    const { code, output } = await runMenshen({ ...PROVIDER, UPSTREAM: 'http://127.0.0.1:3000' })
    assert.deepEqual([code, output], [1, sentence('UPSTREAM', 'http://127.0.0.1:3000')])
    await assert.rejects(createMenshen({ upstream: 'http://localhost:3000', store: 'memory:' }), {
      message: `upstream: ${sentence('UPSTREAM', 'http://localhost:3000')}`,
    })
  })

  test('menshen check reports all problems at once: in settings, .env, configuration, words and their combination', async t => {
    const files = {
      '.env': 'PORT=ninety\nRATE_LIMIT_PER_MINUTE=many\n',
      'menshen.config.mjs': `export default {
        words: { 'login.titel': 'x' },
        providers: { one: { clientSecretFile: '/nowhere/one' }, two: { clientKeyFile: '/nowhere/two' } },
      }`,
    }
    const env = { LOG_LEVEL: 'loud', NODE_ENV: 'production', BASE_URL: 'http://app.example.com', LOG_LEVLE: 'x' }
    const { problems, text } = await check(t, env, files)
    const wrong = [
      'PORT',
      'RATE_LIMIT_PER_MINUTE',
      'LOG_LEVEL',
      'BASE_URL',
      'providers.one.clientSecretFile is "/nowhere/one"',
      'providers.two.clientKeyFile is "/nowhere/two"',
      'words',
    ]
    for (const name of wrong)
      assert.equal(problems.filter(line => line.startsWith(name)).length, 1, `${name} in ${problems.join('\n')}`)
    assert.equal(problems.length, wrong.length)
    assert.deepEqual(text, ['! LOG_LEVLE is not a Menshen setting and is ignored; did you mean LOG_LEVEL?'])
    const rules = "export default { rules: [{ path: 'x', public: true }, { path: '/y' }], colour: 'red' }"
    const both = await check(t, { PROVIDER: 'nobody' }, { 'menshen.config.mjs': rules })
    for (const part of ['rules.0.path', 'rules.1', 'colour', 'PROVIDER is "nobody"'])
      assert.ok(
        both.problems.some(line => line.includes(part)),
        both.problems.join('\n'),
      )
  })

  test('menshen check names missing provider settings, an unknown language, an unusable bearer rule and a missing SECRET', async t => {
    const { problems } = await check(t, { AUTH_URL: PROVIDER.AUTH_URL })
    assert.deepEqual(problems, [
      'CLIENT_ID is missing: users cannot sign in without it.',
      'CLIENT_SECRET (or CLIENT_SECRET_FILE) is missing: users cannot sign in without it.',
    ])
    for (const language of ['ja', 'fr', 'el'])
      assert.deepEqual((await check(t, { ...PROVIDER, PAGE_LANGUAGE: language })).problems, [
        `PAGE_LANGUAGE is "${language}"; expected zh-CN, en, auto, or a name from languages in the configuration, for example en.`,
      ])
    for (const language of ['en-US', 'enn'])
      assert.match((await check(t, { ...PROVIDER, PAGE_LANGUAGE: language })).problems.join(), /; did you mean en\?$/)
    const bearer = { 'menshen.config.mjs': "export default { rules: [{ path: '/x', roles: ['*'], bearer: true }] }" }
    assert.match((await check(t, PROVIDER, bearer)).problems.join(), /^rules\.0 has bearer, but .*\.$/)
    const none = { 'menshen.config.mjs': "export default { provider: { clientAuth: 'none', pkce: true } }" }
    const { CLIENT_SECRET: _, ...client } = PROVIDER
    assert.match((await check(t, client, none)).problems.join(), /^SECRET is not set, and there is no client secret/)
  })

  test('menshen check names files with unusable content, and settings that are invalid or contradict each other', async t => {
    const other = tempFolder(t)
    const file = (name: string, text: string) => {
      writeFileSync(join(other, name), text)
      return join(other, name)
    }
    const garbage = file('garbage.pem', 'garbage-CANARY')
    const rows: [env: Environment, says: RegExp][] = [
      [{ TLS_CERT_FILE: garbage, TLS_KEY_FILE: garbage }, /^TLS_CERT_FILE and TLS_KEY_FILE cannot be used/],
      [{ UPSTREAM_CA_FILE: garbage }, /^UPSTREAM_CA_FILE is ".*", which contains no certificate/],
      [
        { CLIENT_KEY_FILE: garbage, CLIENT_AUTH: 'private_key_jwt' },
        /^CLIENT_KEY_FILE contains no private key; expected/,
      ],
      [{ CLIENT_AUTH: 'tls_client_auth' }, /^CLIENT_AUTH is "tls_client_auth", which needs a certificate and its key;/],
      [{ PAR: 'on' }, /^PAR is "on", but there is no address/],
      [{ DPOP: 'on', FORWARD_ACCESS_TOKEN: 'true' }, /^DPOP is "on" with FORWARD_ACCESS_TOKEN/],
      [{ STORE: `sqlite:${dirname(garbage)}` }, /^STORE is "sqlite:.*", which is not a file/],
      [{ STORE: 'redis://127.0.0.1:99999' }, /^STORE is not a Redis address/],
      [{ STORE: 'rediss://127.0.0.1:9?ca=/nowhere/ca.pem' }, /^STORE names \/nowhere\/ca\.pem as ca/],
      [{ SECRET_FILE: garbage }, /^SECRET_FILE is not usable/],
      [{ CONFIG: './nowhere.ts' }, /^CONFIG is ".*nowhere\.ts", which does not exist/],
    ]
    for (const [env, says] of rows) {
      const { problems } = await check(t, { ...PROVIDER, ...env })
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems[0] ?? '', says)
    }
    const pair = (name: string, days: string) => {
      const [key, cert] = [join(other, `${name}.key`), join(other, `${name}.pem`)]
      const args = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days ${days}`
      execFileSync(requireProgram('openssl'), [...args.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' })
      return { TLS_CERT_FILE: cert, TLS_KEY_FILE: key }
    }
    const [good, another] = [pair('good', '90'), pair('other', '3')]
    const crossed = { ...good, TLS_KEY_FILE: another.TLS_KEY_FILE }
    assert.match((await check(t, { ...PROVIDER, ...crossed })).problems.join('\n'), /^TLS_CERT_FILE and .*\.$/)
    assert.deepEqual((await check(t, { ...PROVIDER, ...good })).problems, [])
    assert.match((await check(t, { ...PROVIDER, ...another })).text.join('\n'), /^! TLS_CERT_FILE: .*valid for 2 more/m)
  })

  test('menshen check writes problems, including an unreadable .env, to stderr, one per line, and exits with code 1', async t => {
    const cwd = tempFolder(t)
    mkdirSync(join(cwd, '.env'))
    const { code, output, errors } = await runMenshen({ ...PROVIDER, PORT: '\u001b[2J0' }, { cwd, args: ['check'] })
    assert.deepEqual({ code, errors: errors.split('\n').sort() }, { code: 1, errors: output.split('\n').sort() })
    assert.match(errors, /^\.env cannot be read \(EISDIR\).*\nPORT is " \[2J0"; expected a port from 1 to 65535.*\.$/)
    assert.deepEqual(readdirSync(cwd), ['.env'])
  })
})

suite('upstream settings', () => {
  test('menshen check names every mistake in an upstream and its files without showing file contents', async t => {
    const upstreams = {
      '/a': { url: 'http://127.0.0.1:9', headers: { 'X-Key': { file: './key' }, 'X-None': { file: './none' } } },
      '/b': { url: 'https://127.0.0.1:9', caFile: './key' },
    }
    const config = `export default { upstreams: ${JSON.stringify(upstreams)} }`
    const { problems } = await check(t, PROVIDER, { 'menshen.config.mjs': config, key: 'a\nCANARY\n' })
    const at = /^.*menshen\.config\.mjs: upstreams\./
    assert.deepEqual(
      problems.map(problem => problem.replace(at, '').replace(/;.*/, '')),
      [
        '/a.headers.X-Key: ./key is empty, too long or not a header value',
        '/a.headers.X-None: ./none cannot be read (ENOENT)',
        '/b.caFile: ./key contains no certificate',
      ],
    )
    const taken = { '/a': { url: 'http://127.0.0.1:9', headers: { 'X-Forwarded-User': '{sub}' } } }
    const named = await check(t, PROVIDER, {
      'menshen.config.mjs': `export default { upstreams: ${JSON.stringify(taken)} }`,
    })
    assert.deepEqual(
      named.problems.map(problem => problem.replace(at, '')),
      ['/a.headers.X-Forwarded-User: Menshen sends the user in this header; expected another one.'],
    )
    const good = await check(t, PROVIDER, {
      'menshen.config.mjs': `export default { upstreams: { '/a': { url: 'http://127.0.0.1:9', headers: { 'X-Key': { file: './key' } } } } }`,
      key: 'CANARY\n',
    })
    assert.deepEqual(good.problems, [])
  })
})
