// A start with wrong settings ends with sentences that a person can act on; a start with right ones says what it does.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { format, inspect } from 'node:util'
import { withEnvFile } from '../../src/config/load.ts'
import { readSettings, wantsDevProvider } from '../../src/config/read.ts'
import { Secret } from '../../src/config/secret.ts'
import { type Row, SETTINGS, type Settings } from '../../src/config/settings.ts'
import { findMisspelt } from '../../src/config/suggestions.ts'
import { MenshenError } from '../../src/errors.ts'
import { phraseIn, phrasesOf } from '../../src/text/text.ts'
import { createClient } from '../kit/client.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { freePort } from '../kit/free-port.ts'
import {
  type Environment,
  type InstanceOptions,
  type ProcessOptions,
  runMenshen,
  startInstance,
} from '../kit/instance.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority } from '../proxies/certificates.ts'

const commands = createCommandRunner()

/** A provider that nobody calls. */
const PROVIDER = { AUTH_URL: 'http://127.0.0.1:9', CLIENT_ID: 'menshen-test', CLIENT_SECRET: 'secret-CANARY-1' }
const MEMORY = { ...PROVIDER, STORE: 'memory:' }
const rows: Readonly<Record<string, Row<unknown>>> = SETTINGS

/** For every row, what must not pass. */
const BAD: Readonly<Record<string, readonly string[]>> = {
  BASE_URL: [
    'localhost:3000',
    'app.example.com',
    'ftp://app.example.com',
    'https://app.example.com/path',
    'https://app.example.com?a=b',
    'https://app.example.com#a',
    'http://',
  ],
  HOST: ['http://0.0.0.0', '0.0.0.0:3000', 'two words'],
  PORT: ['0', '65536', '-1', '80.5', '3e3', '0x50', ' 80', 'http', '８０'],
  AUTH_URL: ['idp.example.com', 'https://idp.example.com?tenant=1', 'https://idp.example.com/#/login', '//idp'],
  CLIENT_ID: ['  '],
  CLIENT_SECRET: ['  '],
  // The last one is a secret in the place of its path.
  CLIENT_SECRET_FILE: ['/nowhere/secret', '/dev', '/dev/null', 'CANARY'],
  SECRET: ['CANARY', ',,,,', ' \n ', 'x'.repeat(31), `${'x'.repeat(32)},CANARY`, '门神'.repeat(15)],
  SECRET_FILE: ['/nowhere/secret', '/dev', '/dev/null', 'CANARY'],
  STORE: ['memory', 'sqlite', 'sqlite:', 'lmdb:./data', 'mysql://localhost', 'MEMORY:'],
  UPSTREAM: ['127.0.0.1:8080', 'http://127.0.0.1:8080/path', 'unix:relative', 'unix:', 'ftp://127.0.0.1'],
  UPSTREAM_HOST_HEADER: ['Browser', 'app.example.com'],
  UPSTREAM_CA_FILE: ['/nowhere/ca.pem', '/dev'],
  UPSTREAM_CONNECTIONS: ['0', '100001', 'all'],
  UPSTREAM_QUEUE: ['-1', '100001', 'all'],
  UPSTREAM_QUEUE_TIMEOUT_MS: ['99', '600001', '5s'],
  UPSTREAM_STREAMS: ['0', '-1', '100001', 'all'],
  CLIENT_TIMEOUT_MS: ['99', '86400001', '30s'],
  UPSTREAM_CONNECT_TIMEOUT_MS: ['99', '600001', '5s'],
  UPSTREAM_HEADERS_TIMEOUT_MS: ['99', '86400001', '1m'],
  UPSTREAM_IDLE_TIMEOUT_MS: ['-1', '86400001', 'never'],
  IDENTITY_USER: ['X Forwarded User', 'x-user: admin', '用户'],
  IDENTITY_GROUPS: ['X Forwarded Groups', 'none', '用户组'],
  HSTS_MAX_AGE: ['-1', '1 year', '99999999'],
  SUPPORT_CONTACT: ['helpdesk', 'javascript:alert(1)', 'a b@example.com'],
  IDENTITY_EMAIL: ['x_email:'],
  IDENTITY_NAME: ['x name'],
  IDENTITY_ROLE: ['x,role'],
  IDENTITY_ASSERTION: ['x/y'],
  DROP_HEADERS: ['*', 'x-user:', 'x-*-y'],
  KEEP_HEADERS: ['*', 'x(y)'],
  ASSERTION_AUDIENCE: ['   '],
  BEARER_AUDIENCE: [' , ', ',', '*', 'https://*.example'],
  FORWARD_ACCESS_TOKEN: ['yes', '1', 'TRUE'],
  TLS_CERT_FILE: ['/nowhere/cert.pem', '/dev'],
  TLS_KEY_FILE: ['/nowhere/key.pem'],
  MAX_HEADER_KB: ['0', '3', '1025', '16KB'],
  KEEP_ALIVE_TIMEOUT_MS: ['0', '999', '3600001', '75s'],
  TRUSTED_PROXIES: ['localhost', '10.0.0.0/33', '10.0.0.1/8/8', '::1/129', '10.0.0', '10.0.0.1,all', '0.0.0.0/-1'],
  WORKERS: ['0', '-1', '1.5', 'auto'],
  PROVIDER_VARS: ['realm', '=staff', 'realm='],
  CLIENT_AUTH: ['client_secret_post', 'Basic'],
  CLIENT_KEY_FILE: ['/nowhere/key.pem'],
  CLIENT_KEY_ID: [' '],
  CLIENT_CERT_FILE: ['/nowhere/cert.pem'],
  CLIENT_ASSERTION_AUDIENCE: ['Issuer', 'token'],
  CLIENT_ASSERTION_ALGORITHM: ['HS256', 'none'],
  PROVIDER: [' ', 'x'.repeat(41)],
  PROVIDER_NAME: ['名'.repeat(61)],
  SCOPE: [' '],
  STATE_CHECK: ['SUFFIX', 'none', 'true'],
  PKCE: ['s256', 'plain', 'on'],
  PAR: ['true', 'On', 'required'],
  DPOP: ['true', 'ON', 'required'],
  REFRESH_LEAD_SECONDS: ['-1', '86401', '5m'],
  REFRESH_FAILURE: ['ignore'],
  IDENTITY_REFRESH: ['Always', 'on', 'true'],
  LOGOUT_STYLE: ['post'],
  REVOKE: ['true', 'Always', 'sometimes'],
  LOGOUT_URL: ['oauth/logout', '//evil.example', 'javascript:alert(1)', 'https://'],
  PROVIDER_TIMEOUT_MS: ['99', '120001', '5s'],
  PROVIDER_PARALLEL_CALLS: ['-1', 'all', '1.5'],
  ISSUER: ['  '],
  ISSUER_REQUIRED: ['yes', '1', 'TRUE'],
  JWKS_URL: ['jwks.json', 'ftp://idp.example.com/jwks.json', 'file:///etc/passwd'],
  SESSION_MAX_HOURS: ['0', '8761', '1.5'],
  ATTEMPT_MINUTES: ['0', '1441', '1.5', 'half an hour'],
  AUTO_SIGN_IN: ['true', 'yes', 'inapp', 'ON'],
  SESSION_IDLE_MINUTES: ['-1', '0.5', '30m', '525601'],
  SESSIONS_PER_USER: ['-1', '1.5', 'one', '10001'],
  PERSONAL_KEY_MAX_DAYS: ['0', '-1', '1.5', 'a year', '3661'],
  DEVICE_BOUND_SESSIONS: ['true', 'auto', 'ON'],
  SESSION_CACHE_SIZE: ['-1', '10000001', 'big'],
  SESSION_CACHE_MB: ['-1', '1000001', '1.5', 'big'],
  RATE_LIMIT_PER_MINUTE: ['-1', '1000001', 'many'],
  METRICS_FROM: ['localhost', '10.0.0.0/33', 'none,127.0.0.1', 'all'],
  APP_NAME: ['名'.repeat(61)],
  LOGO_FILE: ['/nowhere/logo.svg', '/'],
  ACCENT_COLOR: ['blue', '#12', '#12345g', '1f5fbf'],
  PAGE_LANGUAGE: [' ', 'zh_CN', '中文', 'x'.repeat(36)],
  LOG_LEVEL: ['INFO', 'loud'],
  LOG_FORMAT: ['JSON', 'text', 'true'],
  ACCESS_LOG: ['yes', '1', 'TRUE'],
  HTTP2: ['yes', '1', 'TRUE'],
  AUDIT_KEEP: ['-1', '10000001', 'all'],
  AUDIT_FILE: ['/nowhere/at/all.jsonl', '/dev', '/dev/null/x', './folder/'],
  CONFIG: [' '],
  NODE_ENV: [' '],
  ALLOW_PLAIN_HTTP: ['yes', '1', 'TRUE'],
  ALLOW_UNVERIFIED_EMAIL: ['yes', '1', 'TRUE'],
  LOGIN_PATH: ['/', 'login', '/login?next=/', '/_menshen/me'],
  CALLBACK_PATH: ['/', '/callback/', '/callback/*'],
  LOGOUT_PATH: ['/', 'https://app.example.com/logout', '/a/../b'],
  DEV_PROVIDER_PORT: ['0', '65536', 'none'],
}

/** So that their files are told apart from them. */
const GOOD_SECRETS = { CLIENT_SECRET: 'secret-CANARY-1', SECRET: 'CANARY'.repeat(6) }

/** What a setting needs to be alone with its problem. */
const TOGETHER: Readonly<Record<string, Environment>> = {
  TLS_CERT_FILE: { TLS_KEY_FILE: '/dev/null' },
  TLS_KEY_FILE: { TLS_CERT_FILE: '/dev/null' },
}

suite('a bad value', () => {
  test('every setting has a bad value in this test', () => {
    assert.deepEqual(
      Object.keys(rows).filter(name => !(name in BAD)),
      [],
    )
  })

  for (const [name, values] of Object.entries(BAD)) {
    const row = rows[name]
    if (!row || values.length === 0) continue
    test(`a bad ${name} is refused with one sentence: the value unless it is secret, what is expected, and an example`, () => {
      for (const value of values) {
        const [sentence = '', ...more] = refusalOf({ ...TOGETHER[name], [name]: value })
        assert.deepEqual(more, [], `${name}=${value} is one problem`)
        for (const part of [name, row.expected, row.example])
          assert.ok(sentence.includes(part), `${sentence} | ${part}`)
        const isPath = name.endsWith('_FILE') && value.startsWith('/')
        assert.equal(sentence.includes(value), !row.secret || isPath, `${sentence} | ${value}`)
      }
    })
  }

  test('the example and the default of every setting, except for files, are valid', () => {
    for (const [name, { check, example, default: usual = example }] of Object.entries(rows)) {
      if (name.endsWith('_FILE')) continue // needs the file
      for (const text of [example, usual]) assert.ok(check.safeParse(text).success, `${name}=${text}`)
    }
  })

  test('a bad value with line breaks or control characters does not break its error into several lines', () => {
    for (const value of ['no\nsuch', 'no\r\nERROR all is lost', 'no\u2028such', '\u001b[2Jno'])
      for (const name of ['STORE', 'LOG_LEVEL', 'BASE_URL', 'PKCE']) {
        const sentences = refusalOf({ [name]: value })
        assert.equal(sentences.length, 1, `${name}=${JSON.stringify(value)}`)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach a terminal
        assert.doesNotMatch(sentences[0] ?? '', /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
      }
  })

  test('the error for a bad address does not show the password in it', () => {
    for (const name of ['BASE_URL', 'AUTH_URL', 'STORE', 'LOGOUT_URL']) {
      const shown = refusalOf({ [name]: 'redis+x://user:pass-CANARY@db.example.com:6379/0' }).join('\n')
      assert.ok(shown.includes(name))
      assert.doesNotMatch(shown, /CANARY/, name)
    }
  })

  test('an empty setting is the same as one that is not set', () => {
    const nothing = Object.fromEntries(Object.keys(rows).map(name => [name, '']))
    assert.deepEqual(readSettings(nothing), readSettings({}))
  })
})

suite('a start', { concurrency: 2 }, () => {
  test('a start with many bad settings names each of them on a separate line', async () => {
    const bad = Object.entries(BAD).flatMap(([name, [value]]) => (value === undefined ? [] : [[name, value] as const]))
    const { code, output } = await commands.run({ ...Object.fromEntries(bad), ...GOOD_SECRETS })
    assert.equal(code, 1)
    assertPlain(output)
    const lines = output.split('\n')
    for (const [name] of bad.filter(([name]) => !(name in GOOD_SECRETS)))
      assert.equal(lines.filter(line => line.startsWith(`${name} `)).length, 1, `${name} in:\n${output}`)
    assert.equal(lines.length, bad.length, output)
  })

  test('a start with both a secret and a file for it fails without showing the secret', async () => {
    const both = { ...PROVIDER, CLIENT_SECRET_FILE: '/nowhere/path' }
    await fails(both, ['CLIENT_SECRET', 'CLIENT_SECRET_FILE'], 2)
    const own = { ...MEMORY, SECRET: GOOD_SECRETS.SECRET, SECRET_FILE: '/nowhere/path' }
    await fails(own, ['SECRET', 'SECRET_FILE'], 2)
  })

  test('a start on a port in use names PORT and the port', async t => {
    const PORT = await takePort(t)
    await workerFails({ ...MEMORY, PORT }, ['PORT', PORT])
  })

  test('a start on a port in use exits even if the development provider is already running', async t => {
    const PORT = await takePort(t)
    await processFails({ STORE: 'memory:', PORT, DEV_PROVIDER_PORT: String(await freePort()) }, ['PORT', PORT])
  })

  test('a start with the port of the development provider in use names DEV_PROVIDER_PORT and the port', async t => {
    const DEV_PROVIDER_PORT = await takePort(t)
    const PORT = String(await freePort())
    await workerFails({ STORE: 'memory:', PORT, DEV_PROVIDER_PORT }, ['DEV_PROVIDER_PORT', DEV_PROVIDER_PORT])
  })

  test('a start and menshen check refuse the same port for PORT and DEV_PROVIDER_PORT with one sentence', async () => {
    const PORT = String(await freePort())
    const env = { STORE: 'memory:', PORT, DEV_PROVIDER_PORT: PORT }
    await workerFails(env, ['PORT', 'DEV_PROVIDER_PORT', PORT])
    await fails(env, ['PORT', 'DEV_PROVIDER_PORT', PORT], 1, { args: ['check'] })
  })

  test('a start of several workers on a port in use reports it once', async t => {
    const PORT = await takePort(t)
    await processFails({ ...PROVIDER, PORT, WORKERS: '2' }, ['PORT', PORT])
  })

  test('a start with an invalid certificate names TLS_CERT_FILE and TLS_KEY_FILE', async t => {
    const path = join(tempFolder(t), 'pem')
    for (const content of ['', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n']) {
      writeFileSync(path, content)
      const tls = { TLS_CERT_FILE: path, TLS_KEY_FILE: path, PORT: String(await freePort()) }
      await workerFails({ ...MEMORY, ...tls }, ['TLS_CERT_FILE', 'TLS_KEY_FILE'])
    }
  })

  test('a start on an address of another machine names HOST and the address', async () => {
    await workerFails({ ...MEMORY, PORT: String(await freePort()), HOST: '192.0.2.1' }, ['HOST', '192.0.2.1'])
  })

  test('a start with a data folder that cannot be created names STORE and the folder', async t => {
    const folder = join(tempFolder(t), 'file', 'data')
    writeFileSync(join(folder, '..'), 'a file, not a folder')
    await workerFails({ ...PROVIDER, PORT: String(await freePort()), STORE: `sqlite:${folder}/menshen.db` }, [
      'STORE',
      folder,
    ])
    const ports = { PORT: String(await freePort()), DEV_PROVIDER_PORT: String(await freePort()) }
    await workerFails({ ...ports, STORE: `sqlite:${folder}/menshen.db` }, ['STORE', folder])
  })

  test('a start with a missing client secret file names the setting and the path', async () => {
    const { CLIENT_SECRET: _, ...provider } = PROVIDER
    await fails({ ...provider, CLIENT_SECRET_FILE: '/nowhere/path' }, [
      'CLIENT_SECRET_FILE',
      '/nowhere/path',
      'is missing',
    ])
    await fails({ ...provider, CLIENT_SECRET_FILE: 'CANARY' }, ['CLIENT_SECRET_FILE'])
  })

  test('a client secret file with several lines stops the start, and its content is not shown', async t => {
    const cwd = tempFolder(t)
    writeFileSync(join(cwd, 'secret'), 'new-CANARY\r\nold-CANARY\r\n')
    await fails({ ...MEMORY, CLIENT_SECRET: '', CLIENT_SECRET_FILE: './secret' }, ['on one line'], 1, { cwd })
    const provider = { preset: 'oauth2', clientId: 'a', clientSecretFile: './secret' }
    writeFileSync(join(cwd, 'menshen.config.json'), JSON.stringify({ provider }))
    const sentence = 'provider.clientSecretFile: ./secret has several lines; expected only the secret, on one line.'
    await fails({ STORE: 'memory:', MENSHEN_ONLY_WORKER: '1' }, [sentence], 1, { cwd })
  })

  test('a start with a named pipe in the place of a file does not wait for its writer', async t => {
    const cwd = tempFolder(t)
    const pipe = join(cwd, 'pipe')
    execFileSync('mkfifo', [pipe])
    for (const name of ['CLIENT_SECRET_FILE', 'SECRET_FILE', 'CLIENT_KEY_FILE', 'UPSTREAM_CA_FILE', 'LOGO_FILE'])
      await fails({ ...MEMORY, CLIENT_SECRET: '', [name]: pipe }, [
        `${name} is "${pipe}", which is not a file; expected`,
      ])
    for (const key of ['clientSecretFile', 'clientKeyFile', 'clientCertFile']) {
      const provider = { preset: 'oauth2', clientId: 'a', [key]: pipe }
      writeFileSync(join(cwd, 'menshen.config.json'), JSON.stringify({ provider }))
      const env = { STORE: 'memory:', MENSHEN_ONLY_WORKER: '1' }
      await fails(env, [`provider.${key} is "${pipe}", which cannot be read`], 1, { cwd })
    }
  })

  test('a start with an unreadable .env fails and names the file', async t => {
    const cwd = tempFolder(t)
    mkdirSync(join(cwd, '.env'))
    await fails(MEMORY, ['.env'], 1, { cwd })
  })

  test('a # inside a value in .env is part of the value', t => {
    const file = join(tempFolder(t), '.env')
    const lines = [
      '# a comment, A=x#y',
      'A=ab#cd',
      'export B = ab#cd # a comment',
      'C=#cd',
      'D= # a comment',
      "E='ab#cd' # a comment",
      'F="ab # cd"',
      'G=ab # cd#ef',
      "H=it's#1",
      'I="one',
      'J=x#y',
      'K=x"',
      'L=first#1',
      'L=last',
    ]
    writeFileSync(file, lines.join('\r\n'))
    const { I: _, ...read } = withEnvFile({ M: 'given' }, file)
    assert.deepEqual(read, {
      ...{ A: 'ab#cd', B: 'ab#cd', C: '#cd', D: '', E: 'ab#cd', F: 'ab # cd', G: 'ab', H: "it's#1", L: 'last' },
      M: 'given',
    })
  })

  test('an invalid line in .env stops the start with its line number, and its content is not shown', async t => {
    const cwd = tempFolder(t)
    const file = join(cwd, '.env')
    const problem = (text: string) => {
      writeFileSync(file, text)
      try {
        withEnvFile({}, file)
        return undefined
      } catch (error) {
        assert.ok(error instanceof MenshenError)
        assert.deepEqual(
          [error.message],
          phrasesOf(error).map(given => phraseIn('en', given)),
        )
        assert.doesNotMatch(error.message, /CANARY/)
        return error.message.slice(file.length)
      }
    }
    const said = (line: number) =>
      `:${line}: expected NAME=value on one line, or a comment that begins with #; put a value of several lines in quotes.`
    for (const text of ['BASE_URL https://CANARY', 'BASE_URL: https://CANARY', 'CANARY', 'A B=CANARY', '=CANARY'])
      assert.equal(problem(`# one\r\nA=1\r\n\r\n${text}\r\nB=2\r\n`), said(4))
    assert.equal(problem('A="one\nB="CANARY"\n'), said(2))
    assert.equal(problem('A="one\ntwo\n" # three\nB\n'), said(4))
    for (const text of [
      '',
      '\n \n\t# x\n',
      'A=\n',
      'export A = b\n',
      'A="b\nB=1\n',
      "A='one\ntwo'",
      'a.b-c=`x`#y',
      "A=it's\n",
    ])
      assert.equal(problem(text), undefined, text)
    writeFileSync(file, 'STORE=memory:\nBASE_URL https://CANARY\n')
    await fails({}, ['.env:2:', 'NAME=value'], 1, { cwd })
  })
})

suite('a .env', () => {
  const file = { APP_NAME: '"采购平台"', ...MEMORY, RATE_LIMIT_PER_MINUTE: 'many', STATE_CHEK: 'bound-CANARY' }
  const empty = { AUTH_URL: '', CLIENT_ID: '', CLIENT_SECRET: '', APP_NAME: '' }
  const misspelt = { CLIENT_SECERT: 'secret-CANARY', MENSHEN_COLOUR: 'CANARY' }

  function folderWithFile(t: TestContext): string {
    const cwd = tempFolder(t)
    writeFileSync(join(cwd, '.env'), `\ufeff${linesOf(file).join('\r\n')}`)
    return cwd
  }

  test('a start uses .env and reports misspelt settings', async t => {
    const cwd = folderWithFile(t)
    const DEV_PROVIDER_PORT = String(await freePort())
    const env = { ...empty, ...misspelt, RATE_LIMIT_PER_MINUTE: '0', DEV_PROVIDER_PORT }
    const { login, output } = await start(t, env, { cwd })

    await t.test('a start reads .env, including the first line after a byte order mark', async () => {
      assert.match(login, /采购平台/)
      await fails({ APP_NAME: '财务平台' }, ['RATE_LIMIT_PER_MINUTE', 'many'], 1, { cwd })
    })

    await t.test(
      'empty variables in the environment neither override .env nor start the development provider',
      async () => {
        assert.doesNotMatch(login, /<button[^>]* disabled/)
        assert.equal(readLog(output).find(({ event }) => event === 'started')?.provider, PROVIDER.AUTH_URL)
        await assert.rejects(createClient(`http://127.0.0.1:${DEV_PROVIDER_PORT}`).get('/'), { code: 'ECONNREFUSED' })
      },
    )

    await t.test('the start names a misspelt setting in the environment or in .env, without its value', async () => {
      const told = () => readLog(output).filter(({ event }) => event === 'misspelt_setting')
      await until(() => told().length >= 3)
      assert.deepEqual(
        told().map(({ level, setting, remedy }) => [level, setting, remedy]),
        [
          ['warn', 'STATE_CHEK', 'did you mean STATE_CHECK?'],
          ['warn', 'CLIENT_SECERT', 'did you mean CLIENT_SECRET?'],
          ['warn', 'MENSHEN_COLOUR', 'see docs/settings.md'],
        ],
      )
      assert.doesNotMatch(output.join('\n'), /CANARY/)
    })
  })

  test('the environment overrides .env, and LOG_LEVEL=silent turns the log off', async t => {
    const env = { RATE_LIMIT_PER_MINUTE: '0', APP_NAME: '财务平台', LOG_LEVEL: 'silent' }
    const { login, output } = await start(t, env, { cwd: folderWithFile(t) })
    assert.match(login, /财务平台/)
    assert.doesNotMatch(login, /采购平台|disabled/)
    assert.deepEqual(output, [])
  })
})

suite('the port to listen on', () => {
  const portFor = (env: Environment) => readSettings(env).PORT

  test('the port to listen on is that of BASE_URL if it points to this machine, and 3000 otherwise', t => {
    assert.equal(portFor({}), 3000)
    for (const host of ['localhost', 'app.localhost', '127.0.0.1', '127.8.8.8', '[::1]'])
      assert.equal(portFor({ BASE_URL: `http://${host}:4321` }), 4321, host)
    assert.equal(portFor({ BASE_URL: 'http://localhost' }), 80)
    const { certFile, keyFile } = makeAuthority(tempFolder(t))
    const certificate = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }
    assert.equal(portFor({ BASE_URL: 'https://localhost', ...certificate }), 443)
    // Only a proxy in front can serve https then, and it has that port.
    assert.equal(portFor({ BASE_URL: 'https://localhost' }), 3000)
    assert.equal(portFor({ BASE_URL: 'https://localhost:8443' }), 3000)
    for (const host of ['app.example.com', 'localhost.example.com', '127.0.0.1.example.com', '10.0.0.1', '[::2]'])
      assert.equal(portFor({ BASE_URL: `https://${host}:4321` }), 3000, host)
  })

  test('PORT sets the port to listen on, and changes BASE_URL only if BASE_URL is not set', () => {
    assert.equal(portFor({ BASE_URL: 'http://localhost:4321', PORT: '5000' }), 5000)
    assert.equal(readSettings({ BASE_URL: 'http://localhost:4321', PORT: '5000' }).BASE_URL, 'http://localhost:4321')
    assert.equal(readSettings({ PORT: '5000' }).BASE_URL, 'http://localhost:5000')
  })
})

suite('in production', () => {
  const production = { ...MEMORY, NODE_ENV: 'production', BASE_URL: 'https://app.example.com' }

  test('in production, BASE_URL and AUTH_URL with plain http beyond this machine are refused', async () => {
    for (const name of ['BASE_URL', 'AUTH_URL'])
      assert.equal(refusalOf({ ...production, [name]: 'http://app.example.com' }).length, 1, name)
    const both = { ...production, BASE_URL: 'http://10.0.0.1', AUTH_URL: 'http://10.0.0.2' }
    await fails(both, ['BASE_URL', 'http://10.0.0.1', 'AUTH_URL', 'http://10.0.0.2', 'https://', 'ALLOW_PLAIN_HTTP'], 2)
  })

  test('in production, https is accepted, and plain http only on this machine or with ALLOW_PLAIN_HTTP=true', () => {
    readSettings(production)
    readSettings({ ...production, BASE_URL: 'http://localhost:3000', AUTH_URL: 'http://127.0.0.1:3001' })
    readSettings({ ...production, BASE_URL: 'http://app.example.com', ALLOW_PLAIN_HTTP: 'true' })
    assert.equal(refusalOf({ ...production, BASE_URL: 'http://app.example.com', ALLOW_PLAIN_HTTP: 'false' }).length, 1)
  })

  test('in production, plain http is refused in LOGOUT_URL, which receives a refresh token, and in JWKS_URL', () => {
    for (const name of ['LOGOUT_URL', 'JWKS_URL']) {
      readSettings({ ...production, [name]: 'https://idp.example.com/path' })
      assert.match(
        refusalOf({ ...production, [name]: 'http://idp.example.com/path' }).join('\n'),
        RegExp(`^${name} .*$`),
      )
    }
  })

  test('in production, no development provider starts, and the sign-in page and the log name the missing settings', async t => {
    const DEV_PROVIDER_PORT = String(await freePort())
    const env = { NODE_ENV: 'production', STORE: 'memory:', DEV_PROVIDER_PORT }
    const { login, output, url } = await start(t, env, { probe: '/_menshen/health' })
    for (const name of ['AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET']) assert.match(login, new RegExp(`>${name}<`))
    assert.match(login, /<button[^>]* disabled/)
    assert.ok(readLog(output).some(line => String(line.missing) === 'AUTH_URL,CLIENT_ID,CLIENT_SECRET'))
    const { status, text } = await createClient(url).get('/_menshen/ready')
    assert.equal(status, 503)
    assert.equal(JSON.parse(text).reason, 'settings')
    await assert.rejects(createClient(`http://127.0.0.1:${DEV_PROVIDER_PORT}`).get('/'), { code: 'ECONNREFUSED' })
  })
})

suite('NODE_ENV', () => {
  const PUBLIC = { ...MEMORY, BASE_URL: 'http://app.example.com' }

  test('NODE_ENV means development only if it is empty, development, dev or test; any other value is production', () => {
    for (const NODE_ENV of ['', 'development', 'dev', 'test']) {
      readSettings({ ...PUBLIC, NODE_ENV })
      assert.ok(wantsDevProvider(readSettings({ NODE_ENV })), NODE_ENV)
    }
    for (const NODE_ENV of [
      'production',
      'prod',
      'Production',
      'PRODUCTION',
      'live',
      'staging',
      'Development',
      'dev ',
    ]) {
      assert.match(refusalOf({ ...PUBLIC, NODE_ENV }).join(), /^BASE_URL .* in production/, NODE_ENV)
      assert.ok(!wantsDevProvider(readSettings({ NODE_ENV })), NODE_ENV)
    }
  })

  test('an unknown NODE_ENV is logged as a warning and starts no development provider', async t => {
    const DEV_PROVIDER_PORT = String(await freePort())
    const env = { NODE_ENV: 'prod', STORE: 'memory:', DEV_PROVIDER_PORT }
    const { output } = await start(t, env, { probe: '/_menshen/health' })
    const warning = readLog(output).find(({ event }) => event === 'unknown_node_env')
    assert.match(String(warning?.remedy), /NODE_ENV=production/)
    await assert.rejects(createClient(`http://127.0.0.1:${DEV_PROVIDER_PORT}`).get('/'), { code: 'ECONNREFUSED' })
  })
})

suite('the development provider', { concurrency: 2 }, () => {
  test('the development provider starts only if BASE_URL points to this machine', async t => {
    for (const BASE_URL of ['http://localhost:3000', 'http://app.localhost', 'http://127.0.0.1', 'https://[::1]:8443'])
      assert.ok(wantsDevProvider(readSettings({ BASE_URL })), BASE_URL)
    for (const BASE_URL of [
      'https://app.example.com',
      'http://10.0.0.1',
      'http://0.0.0.0:3000',
      'http://127.0.0.1.nip.io',
    ])
      assert.ok(!wantsDevProvider(readSettings({ BASE_URL })), BASE_URL)

    const DEV_PROVIDER_PORT = String(await freePort())
    const PORT = String(await freePort())
    const env = { STORE: 'memory:', BASE_URL: 'http://app.example.com', PORT, DEV_PROVIDER_PORT }
    const { login, output, url } = await start(t, env, {})
    assert.match(login, /<button[^>]* disabled/)
    const missing = readLog(output).find(({ event }) => event === 'settings_missing')
    assert.match(String(missing?.remedy), /set BASE_URL to an address of this machine/)
    await assert.rejects(createClient(`http://127.0.0.1:${DEV_PROVIDER_PORT}`).get('/'), { code: 'ECONNREFUSED' })
    // Somebody who sets it up still gets the page that names what is missing.
    assert.equal((await createClient(url).get('/_menshen/ready')).status, 200)
  })
})

suite('a misspelt setting', () => {
  const likely = (name: string, value = 'x') => findMisspelt({ [name]: value }).map(found => found.likely)

  test('a misspelt setting is matched with its likely name', () => {
    const rows: [given: string, likely: string][] = [
      ['CLIENT_SECERT', 'CLIENT_SECRET'],
      ['CLIENT_SERCET_FILE', 'CLIENT_SECRET_FILE'],
      ['CLIENTSECRET', 'CLIENT_SECRET'],
      ['client_id', 'CLIENT_ID'],
      ['BASE_ULR', 'BASE_URL'],
      ['BASEURL', 'BASE_URL'],
      ['BASE_URI', 'BASE_URL'],
      ['OAUTH_URL', 'AUTH_URL'],
      ['TRUSTED_PROXY', 'TRUSTED_PROXIES'],
      ['STATE_CHEK', 'STATE_CHECK'],
      ['UPSTREAM_URL', 'UPSTREAM'],
      ['WORKER', 'WORKERS'],
      ['STROE', 'STORE'],
      ['PROT', 'PORT'],
      ['LOGLEVEL', 'LOG_LEVEL'],
      ['MENSHEN_CLIENT_ID', 'CLIENT_ID'],
      ['MENSHEN_BASE_ULR', 'BASE_URL'],
      ['SESSION_IDLE', 'SESSION_IDLE_MINUTES'],
      ['session_max', 'SESSION_MAX_HOURS'],
      ['MENSHEN_SESSION_IDLE', 'SESSION_IDLE_MINUTES'],
      ['MENSHEN_REDIS_URL', 'STORE'],
    ]
    for (const [given, expected] of rows) assert.deepEqual(likely(given), [expected], given)
    assert.deepEqual(findMisspelt({ MENSHEN_COLOUR: 'red' }), [{ name: 'MENSHEN_COLOUR', likely: undefined }])
  })

  test('real settings and variables of the system, shells, npm or Kubernetes are not reported as misspelt', () => {
    const others = `PATH HOME HOST HOSTNAME HOSTS HOSTTYPE PORTS USER LOGNAME SHELL LANG LC_ALL PWD OLDPWD TERM EDITOR
      TMPDIR SHLVL DISPLAY XDG_CACHE_HOME SSL_CERT_FILE SSL_CERT_DIR SSL_KEY_FILE NODE NODE_PATH NODE_OPTIONS
      NODE_EXTRA_CA_CERTS NODE_COMPILE_CACHE INIT_CWD npm_config_cache npm_package_name npm_lifecycle_event npm_execpath
      DATABASE_URL REDIS_URL API_URL SITE_URL LOGO_URL SMTP_HOST SMTP_PORT DB_HOST RESTORE STORES SCORE POST SORT HTTP_PROXY
      https_proxy NO_PROXY CI DEBUG TZ KUBERNETES_SERVICE_HOST KUBERNETES_PORT MENSHEN_SERVICE_HOST MENSHEN_SERVICE_PORT
      MENSHEN_SERVICE_PORT_HTTP MENSHEN_PORT_3000_TCP MENSHEN_PORT_3000_TCP_ADDR SECRETS_DIR APP_ENV APP_KEY APP_URL LOG_FILE
      TLS_CERT TLS_KEY CLIENT_CERT CLIENT_KEY KEEP_ALIVE RATE_LIMIT SESSION SESSION_TIMEOUT SESSION_MANAGER
      TRUST_PROXY ISSUER_URL OAUTH2_PROXY_SERVICE_HOST OAUTH2_PROXY_PORT_4180_TCP`
    for (const name of [...others.trim().split(/\s+/), ...Object.keys(SETTINGS)])
      assert.deepEqual(likely(name), [], name)
    assert.deepEqual(likely('MENSHEN_PORT', 'tcp://10.0.0.1:3000'), [])
    assert.deepEqual(likely('MENSHEN_PORT', '3000'), ['PORT'])
    assert.deepEqual(likely('OAUTH2_PROXY_PORT', 'tcp://10.0.0.1:4180'), [])
  })

  test('a setting of another product is reported only in .env, and not if the Menshen setting is set as well', () => {
    const rows: [given: string, likely: string][] = [
      ['REDIS_URL', 'STORE'],
      ['ISSUER_URL', 'AUTH_URL'],
      ['TRUST_PROXY', 'TRUSTED_PROXIES'],
      ['SESSION_TIMEOUT', 'SESSION_IDLE_MINUTES'],
      ['TLS_CERT', 'TLS_CERT_FILE'],
    ]
    for (const [name, likely] of rows) {
      assert.deepEqual(findMisspelt({ [name]: 'x' }, [], [name]), [{ name, likely }])
      assert.deepEqual(findMisspelt({ [name]: 'x' }), [])
      assert.deepEqual(findMisspelt({ [name]: 'x', [likely]: 'y' }, [], [name]), [])
    }
  })

  test('the settings of oauth2-proxy are reported once, with a pointer to docs/migrating.md', () => {
    const given = { OAUTH2_PROXY_CLIENT_ID: 'x', OAUTH2_PROXY_UPSTREAMS: 'y', OAUTH2_PROXY_SERVICE_HOST: '10.0.0.1' }
    assert.deepEqual(findMisspelt(given), [{ name: 'OAUTH2_PROXY_*', likely: undefined, page: 'docs/migrating.md' }])
  })
})

suite('provider settings', () => {
  const shownBy = async (t: TestContext, env: Environment) => {
    const { client, lines } = await openGateway(t, env)
    const { text: login } = await client.get('/login')
    return { client, login, output: JSON.stringify(lines) }
  }
  /** In a process, too, where the development provider would be. */
  const shownByProcess = async (t: TestContext, env: Environment) => {
    const DEV_PROVIDER_PORT = String(await freePort())
    const { login, output, url } = await start(t, { ...env, DEV_PROVIDER_PORT })
    await assert.rejects(createClient(`http://127.0.0.1:${DEV_PROVIDER_PORT}`).get('/'), { code: 'ECONNREFUSED' })
    return { client: createClient(url), login, output: output.join('\n') }
  }

  for (const [name, show] of [
    ['AUTH_URL', shownByProcess],
    ['CLIENT_ID', shownBy],
    ['CLIENT_SECRET', shownBy],
  ] as const)
    test(`without ${name}, the sign-in page names only it, sign-in fails, and no development provider starts`, async t => {
      const { [name]: _, ...others } = PROVIDER
      const env = { ...others, STORE: 'memory:' }
      assert.ok(!wantsDevProvider(readSettings(env)))
      const { client, login, output } = await show(t, env)
      const named = [...login.matchAll(/<li><code>(\w+)<\/code><\/li>/g)].map(([, setting]) => setting)
      assert.deepEqual(named, [name])
      assert.match(login, /<button[^>]* disabled/)
      assert.doesNotMatch(login + output, /CANARY/)
      assert.equal((await client.post('/login')).headers.location, '/login')
      const back = await client.get('/callback?code=abc&state=abc_idp')
      assert.match(back.headers.location ?? '', /^\/login\?error=(token_error|callback_error)$/)
      assert.equal((await client.get('/')).headers.location, '/login')
    })
})

suite('the log', { concurrency: 2 }, () => {
  test('the start logs the address, the provider, the store and the development users', async t => {
    const DEV_PROVIDER_PORT = String(await freePort())
    const { output, url } = await start(t, { DEV_PROVIDER_PORT })
    const started = readLog(output).find(line => Object.values(line).includes('started'))
    assert.ok(started, output.join('\n'))
    assert.equal(started.address, url)
    assert.match(String(started.provider), new RegExp(`http://localhost:${DEV_PROVIDER_PORT}\\b.*not for production`))
    assert.equal(started.store, 'sqlite:./data/menshen.db')
    assert.ok(Array.isArray(started.users) && started.users.includes('admin') && started.users.includes('zhangsan'))
  })

  test('the log is one JSON object per line, from start to stop, and contains no secret', async t => {
    const env = { ...MEMORY, BASE_URL: `http://localhost:${await freePort()}`, LOG_LEVEL: 'trace' }
    const { url, output, stop } = await start(t, env)
    const client = createClient(url)
    // Nobody listens at the provider's address, so this goes wrong in the log as well.
    await client.get('/callback?code=code-CANARY-1&state=state-CANARY_idp')
    await client.get('/callback?error=error-CANARY%0A%7B')
    await client.get('/%0a{"level":"error"}?token=query-CANARY', {
      headers: { cookie: 'menshen_session=ticket-CANARY' },
    })
    await client.post('/logout', '', { headers: { origin: 'https://evil.example' } })
    assert.deepEqual(await stop(), { code: 0, signal: null })
    assert.ok(readLog(output).length > 2)
    assert.doesNotMatch(output.join('\n'), /CANARY/)
    const started = readLog(output).find(line => Object.values(line).includes('started'))
    assert.equal(started?.provider, PROVIDER.AUTH_URL)
    assert.equal(started?.users, undefined)
  })
})

suite('a secret', () => {
  test('a secret is hidden when it is printed, formatted, inspected or serialized', () => {
    const secret = new Secret('s-CANARY')
    const error = new Error('broken', { cause: secret })
    const settings = readSettings({ CLIENT_SECRET: 's-CANARY' })
    const shown = [
      String(secret),
      `${secret}`,
      `a ${secret} b`,
      `${[secret]}`,
      JSON.stringify(secret),
      JSON.stringify({ secret }),
      JSON.stringify(settings),
      inspect(secret),
      inspect({ deep: { deeper: { deepest: [secret] } } }, { depth: 9, showHidden: true }),
      inspect(error),
      inspect(settings),
      inspect(new AggregateError([error])),
      format('%s %o %O %j', secret, secret, secret, secret),
    ]
    for (const text of shown) {
      assert.match(text, /\[hidden\]/)
      assert.doesNotMatch(text, /CANARY/)
    }
    const others = [inspect(secret, { customInspect: false, showHidden: true }), JSON.stringify(Object.entries(secret))]
    assert.doesNotMatch(others.join(''), /CANARY/)
    assert.equal(secret.reveal(), 's-CANARY')
  })

  test('a secret is read from its file without the trailing line break', t => {
    const path = join(tempFolder(t), 'secret')
    writeFileSync(path, 's-CANARY\r\n')
    const settings: Settings = readSettings({ CLIENT_SECRET_FILE: path })
    assert.equal(settings.CLIENT_SECRET?.reveal(), 's-CANARY')
  })
})

function refusalOf(env: Environment): string[] {
  try {
    readSettings(env)
  } catch (error) {
    assert.equal((error as { code?: unknown }).code, 'bad_settings', String(error))
    return (error as Error).message.split(/\r\n|[\r\n\u2028\u2029]/)
  }
  return assert.fail(`accepted: ${JSON.stringify(env)}`)
}

/** A start ends by itself, with code 1 and nothing but `count` sentences that name all of `parts`. */
async function fails(
  env: Environment,
  parts: readonly string[],
  count = 1,
  options: ProcessOptions = {},
): Promise<void> {
  assertRefusal(await commands.run(env, options), parts, count)
}

/** The same in the process that the supervisor starts, which has opened something by then. */
function workerFails(env: Environment, parts: readonly string[]): Promise<void> {
  return fails({ ...env, MENSHEN_ONLY_WORKER: '1' }, parts)
}

/** A start that ends as a process, with all that it had opened by then. */
async function processFails(env: Environment, parts: readonly string[]): Promise<void> {
  assertRefusal(await runMenshen(env), parts, 1)
}

function assertRefusal(
  { code, output }: { code: number | null; output: string },
  parts: readonly string[],
  count: number,
): void {
  assert.equal(code, 1, output)
  assertPlain(output)
  assert.equal(output.split('\n').length, count, output)
  for (const part of parts) assert.ok(output.includes(part), `${part} is not in: ${output}`)
}

/** Sentences for people: no stack, no secret. */
function assertPlain(output: string): void {
  assert.doesNotMatch(output, /^\s+at |node:|file:\/\/|Error:|undefined|\[object|CANARY/m)
  for (const line of output.split('\n')) assert.match(line, /\.$/)
}

async function start(t: TestContext, env: Environment, options: InstanceOptions = {}) {
  const menshen = await startInstance(env, options)
  t.after(menshen.stop)
  const { status, text: login } = await createClient(menshen.url).get('/login')
  assert.equal(status, 200)
  return { ...menshen, login }
}

async function takePort(t: TestContext): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address ? String(address.port) : assert.fail()
}

function readLog(lines: readonly string[]): Record<string, unknown>[] {
  return lines.map(line => {
    const read: unknown = JSON.parse(line)
    assert.ok(typeof read === 'object' && read !== null && !Array.isArray(read), line)
    return { ...read }
  })
}

function linesOf(env: Environment): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`)
}
