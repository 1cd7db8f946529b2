// What createMenshen takes: every setting in camelCase, checked by the same rows with the same sentences.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CONFIG_NAMES } from '../../src/config/file.ts'
import { type Row, SETTINGS } from '../../src/config/settings.ts'
import { createMenshen, defineConfig, type MenshenError, type MenshenOptions, readSettings } from '../../src/index.ts'
import { readOptions } from '../../src/options.ts'
import { optionName, SECRET_SETTINGS, SPECIAL_SETTINGS } from '../../src/setting-options.ts'
import { freePort } from '../kit/free-port.ts'
import { tempFolder } from '../kit/temp.ts'
import { createTestLog } from '../kit/test-log.ts'

const MEMORY = { store: 'memory:' }

suite('the options', () => {
  test('process.env in place of settings is refused with a message that names readSettings', async () => {
    const settings = process.env as never
    await assert.rejects(createMenshen({ settings }), {
      code: 'bad_settings',
      message: 'settings: expected the result of readSettings, not the environment itself.',
    })
  })

  test('a bearer rule with the development provider is refused, and the message names introspectionUrl', async () => {
    const rules = [{ path: '/api', bearer: true, roles: ['developer' as const] }]
    await assert.rejects(createMenshen({ ...MEMORY, devProvider: true, rules }), {
      code: 'bad_settings',
      message: /^rules\.0 has bearer, and tokens of devProvider cannot be verified; .*introspectionUrl\.$/,
    })
  })

  test('the message about the rule path /*.css says that it looks like a pattern and to write a rule for each path, not one for /', async () => {
    await assert.rejects(createMenshen({ ...MEMORY, rules: [{ path: '/*.css', public: true }] }), (error: Error) => {
      assert.match(error.message, /looks like a pattern.*write a rule for each path/)
      assert.doesNotMatch(error.message, /write [`"]?\//)
      return true
    })
  })

  test('a localhost BASE_URL in production is reported on the console, or in the log if one is given', async t => {
    const said = t.mock.method(console, 'warn', () => {})
    const provider = { authUrl: 'https://idp.example.com', clientId: 'a', clientSecret: 'b', secret: 's'.repeat(40) }
    const settings = { ...readSettings({ NODE_ENV: 'production', STORE: 'memory:' }) }
    await (await createMenshen({ settings, ...provider })).close()
    assert.match(
      String(said.mock.calls[0]?.arguments),
      /production.*localhost:3000.*expected the address that browsers use/,
    )
    const { log, lines } = createTestLog()
    await (await createMenshen({ settings, ...provider, log })).close()
    assert.ok(lines.some(({ event }) => event === 'local_base_url'))
  })

  test('after close every request gets 503, and session() rejects', async () => {
    const menshen = await createMenshen({ ...MEMORY, devProvider: true, log: createTestLog().log })
    await menshen.close()
    const asked = new Request('http://localhost:3000/login')
    assert.equal((await menshen.admit(asked)).answer?.status, 503)
    assert.equal((await menshen.fetch(asked))?.status, 503)
    await assert.rejects(menshen.session(asked), { message: 'Menshen is closed.' })
    const server = createServer(menshen.listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 503)
    server.close()
  })

  test('every setting is an option in camelCase with the same value as from the environment', async t => {
    const file = join(tempFolder(t), 'file')
    const image = fileURLToPath(new URL('../../browser/icon.svg', import.meta.url))
    writeFileSync(file, 's'.repeat(40))
    for (const [name, row] of Object.entries(SETTINGS)) {
      if (name === 'PROVIDER' || name === 'CONFIG') continue
      const text =
        name === 'LOGO_FILE'
          ? image
          : name.endsWith('_FILE')
            ? file
            : name.startsWith('IDENTITY_') && name !== 'IDENTITY_REFRESH'
              ? `x-${name.slice(9)}`
              : row.example
      // Each with what has to stand beside it.
      const beside = name.startsWith('TLS_')
        ? { TLS_CERT_FILE: file, TLS_KEY_FILE: file }
        : name === 'DEVICE_BOUND_SESSIONS'
          ? { BASE_URL: 'https://app.example.com' }
          : {}
      const expected = readSettings({ ...beside, [name]: text })
      const value = (expected as Record<string, unknown>)[name]
      const given = typeof value === 'number' || typeof value === 'boolean' ? value : text
      const options = { ...inCamelCase(beside), [optionName(name)]: given } as MenshenOptions
      assert.deepEqual((await readOptions(options, undefined)).settings, expected, name)
    }
  })

  test('invalid options are refused with the messages of the command, under the names of the options', async t => {
    const clientSecretFile = join(tempFolder(t), 'secret')
    writeFileSync(clientSecretFile, 'CANARY')
    const rows: [options: object, expected: RegExp][] = [
      [
        { baseUrl: 'https://a.example/path' },
        /^baseUrl: BASE_URL is "https:\/\/a\.example\/path"; expected an http or https/,
      ],
      [
        { baseUrl: new URL('https://a.example') },
        /^baseUrl: BASE_URL is of the type object; expected an http or https address/,
      ],
      [{ baseUrl: '' }, /^baseUrl: BASE_URL is the text ""; expected /],
      [{ baseUrl: null }, /^baseUrl: BASE_URL is null; expected /],
      [{ appName: 5 }, /^appName: APP_NAME is the number 5; expected a name/],
      [{ appName: ['a'] }, /^appName: APP_NAME is of the type array; expected a name/],
      [
        { sessionMaxHours: '168' },
        /^sessionMaxHours: SESSION_MAX_HOURS is the text "168"; expected a number of hours from 1 to 8760/,
      ],
      [
        { sessionMaxHours: 0 },
        /^sessionMaxHours: SESSION_MAX_HOURS is "0"; expected a number of hours from 1 to 8760, for example 168\.$/,
      ],
      [{ sessionMaxHours: Number.NaN }, /^sessionMaxHours: SESSION_MAX_HOURS is "NaN"; expected /],
      [{ sessionMaxHours: 1.5 }, /^sessionMaxHours: SESSION_MAX_HOURS is "1\.5"; expected /],
      [
        { forwardAccessToken: 'true' },
        /^forwardAccessToken: FORWARD_ACCESS_TOKEN is the text "true"; expected true or false/,
      ],
      [{ clientSecret: ['CANARY'] }, /^clientSecret: CLIENT_SECRET is not usable; expected the secret/],
      [{ secret: 'CANARY' }, /^secret: SECRET is not usable; expected one or more secrets/],
      [{ store: 'redis://:CANARY@h', workers: 0 }, /^workers: WORKERS is "0"; /],
      [{ store: 'what:CANARY@h' }, /^store: STORE is "what:CANARY@h"; expected memory:/],
      [{ trustedProxies: 'my network' }, /^trustedProxies: TRUSTED_PROXIES is "my network"; expected addresses/],
      [{ provider: 'no-such-one' }, /^provider is "no-such-one"; expected one of idaas, /],
      [{ provider: 5 }, /^createMenshen: provider: /],
      [
        { clientSecret: 'a', clientSecretFile },
        /^clientSecret, clientSecretFile: CLIENT_SECRET and CLIENT_SECRET_FILE are both set/,
      ],
      [{ workers: 2 }, /^store, workers: STORE is "memory:", which several WORKERS cannot share/],
      [
        { tlsCertFile: '/etc/hosts' },
        /^tlsCertFile, tlsKeyFile: TLS_CERT_FILE and TLS_KEY_FILE belong together; expected both or neither\.$/,
      ],
      [
        { nodeEnv: 'production', baseUrl: 'http://a.example' },
        /^baseUrl, allowPlainHttp: BASE_URL is "http:\/\/a\.example"; expected an https address in production.* \(ALLOW_PLAIN_HTTP=true accepts/,
      ],
      [
        {
          ...{ nodeEnv: 'production', baseUrl: 'https://a.example', secret: 'x'.repeat(32) },
          provider: { preset: 'oidc', clientId: 'x', clientSecret: 'x', issuer: 'http://b.example' },
        },
        /^allowPlainHttp: provider\.issuer leads to "http:\/\/b\.example"; .* \(ALLOW_PLAIN_HTTP=true accepts the risk\)\.$/,
      ],
      [
        { provider: { preset: 'github', clientId: 'x', clientAuth: 'none', pkce: false }, secret: 'x'.repeat(32) },
        /^pkce: provider\.clientAuth is "none" without PKCE, .* PKCE=S256/,
      ],
      [
        { provider: { preset: 'github', clientId: 'x', clientSecret: 'x', logout: { style: 'browser' } } },
        /^logoutUrl: provider\.logout\.style is "browser", .* LOGOUT_URL/,
      ],
      [
        {
          providers: {
            staff: {
              preset: 'oidc',
              clientId: 'x',
              clientSecret: 'x'.repeat(16),
              issuer: 'https://a.example',
              dpop: 'on',
            },
          },
          ...{ forwardAccessToken: true, upstream: 'http://127.0.0.1:9' },
        },
        /^forwardAccessToken: providers\.staff\.dpop .*FORWARD_ACCESS_TOKEN/,
      ],
      [
        { rules: [{ path: '/admin/', roles: ['developer'] }] },
        /^createMenshen: rules\.0\.path: expected no trailing slash/,
      ],
      [
        { rules: [{ path: '/_menshen/x', public: true }] },
        /^createMenshen: rules\.0\.path: this path belongs to Menshen/,
      ],
      [
        { upstreams: { '/login': 'http://127.0.0.1:1' } },
        /^createMenshen: upstreams\.\/login: this path belongs to Menshen/,
      ],
      [
        { provider: { preset: 'oidc', clientAuth: 'none', clientId: 'x', issuer: 'https://a.example' } },
        /^secret: SECRET is not set/,
      ],
      [{ log: {} }, /^log cannot be written to; expected an object with info, warn and error/],
      [{ now: 5 }, /^now is the number 5; expected a function/],
      [{ devProvider: 'yes' }, /^devProvider is the text "yes"; expected true or false, or an object/],
      [{ devProvider: null }, /^devProvider is null; expected true or false, or an object/],
      [{ devProvider: { users: [] } }, /^createMenshen: devProvider\.users: expected at least one user\.$/],
      [{ devProvider: { users: 'ann' } }, /^createMenshen: devProvider\.users: expected a list of users, for example/],
      [{ devProvider: { users: [{}] } }, /^createMenshen: devProvider\.users\.0\.username: expected text\.$/],
      [
        { devProvider: { users: [{ username: ' a' }] } },
        /users\.0\.username: expected a name, without spaces around it/,
      ],
      [{ devProvider: { users: [{ username: 'a', groups: 'x' }] } }, /users\.0\.groups: expected a list of names\.$/],
      [
        { devProvider: { users: [{ username: 'a' }, { username: 'b', sub: 'dev-a' }] } },
        /^createMenshen: devProvider\.users\.1\.sub: another user has the same/,
      ],
      [{ devProvider: { user: [] } }, /^createMenshen: devProvider: /],
    ]
    for (const [options, expected] of rows) {
      const refusal = await refusalOf({ ...MEMORY, ...options } as MenshenOptions)
      assert.match(refusal, expected)
      assert.doesNotMatch(refusal.replace('what:CANARY', ''), /\n|CANARY/)
    }
  })

  test('secret options accept text or the name of a variable or a file, and messages about them never show the secret', async t => {
    const folder = tempFolder(t)
    const file = join(folder, 'secret')
    writeFileSync(file, `${'n'.repeat(32)}\n${'o'.repeat(32)}\n`)
    const variables = { OIDC_SECRET: 'of-the-client', REDIS: 'redis://u:pass-CANARY@127.0.0.1' }
    const options: MenshenOptions = {
      clientSecret: { env: 'OIDC_SECRET' },
      secret: { file },
      store: { env: 'REDIS' },
    }
    const { settings } = await readOptions(options, undefined, variables)
    assert.equal(settings.CLIENT_SECRET?.reveal(), 'of-the-client')
    assert.deepEqual(
      settings.SECRET?.map(secret => secret.reveal()),
      ['n'.repeat(32), 'o'.repeat(32)],
    )
    assert.equal(settings.STORE, variables.REDIS)
    const text = { clientSecret: 'of-the-client', secret: 'n'.repeat(32), store: variables.REDIS }
    const given = (await readOptions(text, undefined, {})).settings
    assert.deepEqual(
      [given.CLIENT_SECRET?.reveal(), given.SECRET?.map(secret => secret.reveal()), given.STORE],
      [text.clientSecret, [text.secret], text.store],
    )
    const rows = Object.entries<Row<unknown>>(SETTINGS)
    const secrets = rows.filter(([, row]) => row.secret && !row.file).map(([name]) => name)
    assert.deepEqual([...secrets, 'STORE'].sort(), [...SECRET_SETTINGS].sort())

    const wrong = async (options: object) => {
      const error: MenshenError = await createMenshen(options as MenshenOptions).then(
        () => assert.fail('it has started'),
        error => error,
      )
      assert.doesNotMatch(error.message, /CANARY/)
      return error.message
    }
    assert.equal(
      await wrong({ clientSecret: { env: 'NO_SUCH_VARIABLE' }, secret: { file: `${folder}/none` } }),
      `clientSecret: the variable NO_SUCH_VARIABLE is missing or empty; set it in the environment or in .env.\nsecret: ${folder}/none cannot be read (ENOENT); expected the path of a readable file with the secret.`,
    )
    assert.equal(await wrong({ clientSecret: { evn: 'X' } }), 'clientSecret: there is no "evn"; did you mean env?')
    assert.match(await wrong({ secret: {} }), /^secret: expected either env, the name of a variable, or file/)
    // Its text is checked like any other, and not shown.
    writeFileSync(file, 'CANARY')
    for (const secret of [{ file }, 'CANARY'])
      assert.match(await wrong({ secret }), /^secret: SECRET is not usable; expected one or more secrets of at/)
    assert.match(await wrong({ clientId: { env: 'X' } }), /^clientId: CLIENT_ID is of the type object; expected/)
  })

  test('unknown options are refused by name, with the closest option as a suggestion', async () => {
    const rows: [option: string, expected: string][] = [
      ['baseURL', '"baseURL" is not an option; did you mean baseUrl?'],
      ['BASE_URL', '"BASE_URL" is not an option; did you mean baseUrl?'],
      ['sesionMaxHours', '"sesionMaxHours" is not an option; did you mean sessionMaxHours?'],
      ['rule', '"rule" is not an option; did you mean rules?'],
      ['devprovider', '"devprovider" is not an option; did you mean devProvider?'],
      ['colour', '"colour" is not an option; the type MenshenOptions has them all.'],
      ['constructor', '"constructor" is not an option; the type MenshenOptions has them all.'],
    ]
    for (const [option, expected] of rows) assert.equal(await refusalOf({ ...MEMORY, [option]: 'x' }), expected)
    // Whatever stands in it is only a name.
    assert.doesNotMatch(await refusalOf({ 'a\n\u001b[2J': 1 } as MenshenOptions), /[^\x20-\x7e]/)
    for (const nothing of [null, 'x', 5, []])
      assert.match(await refusalOf(nothing as unknown as MenshenOptions), /expected an options object/)
  })

  test('all invalid options are reported at once', async () => {
    const refusal = await refusalOf({ baseUrl: 'x', appName: 5, colour: 1, workers: 0 } as unknown as MenshenOptions)
    assert.deepEqual(
      refusal.split('\n').map(line => line.split(' ')[0]),
      ['appName:', '"colour"', 'baseUrl:', 'workers:'],
    )
  })

  test('the error about invalid options has each problem as data, with its setting or its path', async () => {
    const options = { ...MEMORY, baseUrl: 'x', rules: [{ path: 'admin', public: true }] } as MenshenOptions
    const problemsOf = (given: MenshenOptions) =>
      createMenshen(given).then(
        () => assert.fail('accepted'),
        ({ problems, message }: MenshenError) => {
          assert.equal(problems.map(problem => problem.message).join('\n'), message)
          return problems
        },
      )
    const [setting] = await problemsOf(options)
    assert.deepEqual(setting, {
      setting: 'BASE_URL',
      message:
        'baseUrl: BASE_URL is "x"; expected an http or https address without a path, for example https://app.example.com.',
      example: 'https://app.example.com',
    })
    const [path] = await problemsOf({ ...options, baseUrl: undefined })
    assert.equal(path?.path, 'rules.0.path')
    assert.match(path?.message ?? '', /did you mean "\/admin"\?$/)
  })

  test('options that are undefined are treated as absent', async () => {
    const { settings } = await readOptions({ baseUrl: undefined, log: undefined, config: undefined }, undefined)
    assert.deepEqual(settings, readSettings({}))
  })

  test('options are combined with the settings of the environment and take precedence', async () => {
    const settings = readSettings({ STORE: 'memory:', APP_NAME: 'env', WORKERS: '1', CLIENT_SECRET: 'first' })
    const read = await readOptions({ settings, appName: 'mine', clientSecret: 'second' }, undefined)
    assert.equal(read.settings.APP_NAME, 'mine')
    assert.equal(read.settings.STORE, 'memory:')
    assert.equal(read.settings.CLIENT_SECRET?.reveal(), 'second')
    // Whoever reads the environment knows the settings by their names there.
    assert.match(await refusalOf({ settings, workers: 2 }), /^STORE is "memory:", which several WORKERS cannot share/)
  })

  test('options accept the fields of a configuration, a whole configuration, or the path of its file', async t => {
    const config = defineConfig({ rules: [{ path: '/reports', roles: ['developer'] }] })
    const file = join(tempFolder(t), 'menshen.config.mjs')
    writeFileSync(file, `export default ${JSON.stringify(config)}`)
    const settings = readSettings({ CONFIG: file })
    for (const options of [{ ...config }, { config }, { config: file }, { settings }])
      assert.deepEqual((await readOptions(options, undefined)).config, config)
    assert.match(await refusalOf({ config, rules: [] }), /^createMenshen: rules given both in config and beside it/)
  })

  test('NODE_ENV of the process applies unless the option nodeEnv is given', async () => {
    assert.equal((await readOptions({}, 'production')).settings.NODE_ENV, 'production')
    assert.equal((await readOptions({ nodeEnv: 'test' }, 'production')).settings.NODE_ENV, 'test')
    assert.equal((await readOptions({ settings: readSettings({}) }, 'production')).settings.NODE_ENV, 'production')
  })
})

suite('the development provider', () => {
  test('the development provider is refused in production, with a public BASE_URL, beside a real provider, and on a port in use', async t => {
    const rows: [options: MenshenOptions, expected: RegExp][] = [
      [{ nodeEnv: 'production' }, /^nodeEnv: devProvider is true although NODE_ENV is "production"; /],
      [{ nodeEnv: 'staging' }, /^nodeEnv: devProvider is true although NODE_ENV is "staging"; /],
      [{ baseUrl: 'https://a.example' }, /^baseUrl: devProvider is true although BASE_URL is "https:\/\/a\.example"; /],
      [{ authUrl: 'https://idp.example' }, /^devProvider is true although a provider is configured; /],
      [{ provider: 'oidc' }, /^devProvider is true although a provider is configured; /],
      [{ providers: { a: { preset: 'github' } } }, /^devProvider is true although a provider is configured; /],
    ]
    for (const [options, expected] of rows)
      assert.match(await refusalOf({ ...MEMORY, devProvider: true, ...options }), expected)
    const taken = await listening(t)
    assert.match(
      await refusalOf({ ...MEMORY, devProvider: true, devProviderPort: taken }, 'cannot_start'),
      new RegExp(`^devProviderPort: DEV_PROVIDER_PORT: port ${taken} is already in use`),
    )
  })

  test('the development provider has the users of the option or of the configuration, and starts only if it is turned on', async t => {
    const users = [{ username: 'ann', groups: ['finance'] }, { username: 'bob' }]
    for (const options of [{ devProvider: { users } }, { devProvider: true, config: { devProvider: { users } } }]) {
      const { log, lines } = createTestLog()
      const menshen = await createMenshen({ ...MEMORY, ...options, log })
      t.after(() => menshen.close())
      assert.match(JSON.stringify(lines.find(({ event }) => event === 'started')), /"users":\["ann","bob"\]/)
    }
    const silent = await createMenshen({ ...MEMORY, config: { devProvider: { users } } })
    t.after(() => silent.close())
    const login = await silent.fetch(new Request('http://localhost:3000/login'))
    assert.match((await login?.text()) ?? '', /CLIENT_ID/, 'it starts only where somebody asks for it')
  })

  test('the development provider starts on a free port, logs its users and signs one in with a click', async t => {
    const { log, lines } = createTestLog()
    const menshen = await createMenshen({ ...MEMORY, devProvider: true, log })
    t.after(() => menshen.close())
    const started = lines.find(({ event }) => event === 'started')
    assert.match(JSON.stringify(started?.fields), /development provider, not for production.*"admin"/)
    const login = await menshen.fetch(new Request('http://localhost:3000/login'))
    const address = /data-[\w-]+="(http:\/\/localhost:\d+\/oauth\/authorize[^"]*)"/.exec(
      (await login?.text()) ?? '',
    )?.[1]
    const authorize = `${address?.replaceAll('&amp;', '&')}&state=abc_idp`
    const page = await fetch(authorize)
    assert.equal(page.status, 200)
    assert.match(await page.text(), /<button[^>]*value="zhangsan"/)
    const body = new URLSearchParams({ username: 'zhangsan' })
    const back = await fetch(authorize, { method: 'POST', body, redirect: 'manual' })
    const answer = await menshen.fetch(new Request(back.headers.get('location') ?? ''))
    const [cookie = ''] = answer?.headers.getSetCookie().filter(one => one.startsWith('menshen_session=')) ?? []
    const signedIn = new Request('http://localhost:3000/', { headers: { cookie: cookie.split(';')[0] ?? '' } })
    assert.equal((await menshen.session(signedIn))?.userInfo.username, 'zhangsan')
  })

  test('the development provider uses the given port and is closed with the instance', async () => {
    const devProviderPort = await freePort()
    const menshen = await createMenshen({ ...MEMORY, devProvider: true, devProviderPort })
    const page = () => fetch(`http://localhost:${devProviderPort}/oauth/authorize`).then(answer => answer.status)
    assert.equal(await page(), 400)
    assert.equal(menshen.close(), menshen.close())
    await menshen.close()
    await assert.rejects(page())
  })

  test('a start that fails closes the development provider', async t => {
    const devProviderPort = await freePort()
    const store = `sqlite:${join(tempFolder(t), 'file', 'menshen.db')}`
    writeFileSync(dirname(store.slice('sqlite:'.length)), '')
    await refusalOf({ store, devProvider: true, devProviderPort }, 'cannot_start')
    await assert.rejects(fetch(`http://localhost:${devProviderPort}/`))
  })
})

function inCamelCase(environment: object): object {
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [optionName(name), value]))
}

async function listening(t: TestContext): Promise<number> {
  const port = await freePort()
  const server = createServer().listen(port, '127.0.0.1')
  t.after(() => server.close())
  return port
}

async function refusalOf(options: MenshenOptions, code = 'bad_settings'): Promise<string> {
  return createMenshen(options).then(
    () => assert.fail(`accepted ${JSON.stringify(options)}`),
    (error: MenshenError) => {
      assert.equal(error.code, code, String(error))
      return error.message
    },
  )
}

test('every option has a description for editors, that of its setting or its own', () => {
  const ofSettings = commentsIn('setting-options.ts')
  for (const [name, { description }] of Object.entries<Row<unknown>>(SETTINGS)) {
    if (SPECIAL_SETTINGS.includes(name)) continue
    const shown = ofSettings.get(optionName(name)) ?? assert.fail(`${name} has no comment`)
    assert.ok(shown.startsWith(description.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')), `${name}: ${shown}`)
  }
  const own = new Map(['config/file.ts', 'options.ts', 'sign-in/hooks.ts'].flatMap(path => [...commentsIn(path)]))
  const others = [
    ...CONFIG_NAMES,
    'settings',
    'config',
    'log',
    'now',
    'devProvider',
    'onSignIn',
    'onSignOut',
    'instanceName',
  ]
  assert.deepEqual(
    others.filter(name => !own.get(name)),
    [],
  )
})

/** The documentation comments of a file's members, by their names. */
function commentsIn(path: string): Map<string, string> {
  const text = readFileSync(new URL(`../../src/${path}`, import.meta.url), 'utf8')
  const members = text.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n {2}(?:readonly )?(\w+)\??[:(]/g)
  return new Map(
    Array.from(members, ([, comment = '', name = '']) => [name, comment.replace(/\s*\n\s*\*?\s*/g, ' ').trim()]),
  )
}
