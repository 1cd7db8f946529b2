// The library checks as much as the command, and leaves nothing behind: neither after a start that fails nor after close.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createMenshen, type MenshenError, type MenshenOptions, readSettings, type Settings } from '../../src/index.ts'
import { createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { startRedis } from '../kit/redis-server.ts'
import { requireLinux } from '../kit/requirements.ts'
import { openScriptedProvider, startScriptedProvider } from '../kit/scripted-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { createTestLog } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'

const MEMORY = readSettings({ STORE: 'memory:' })

suite('createMenshen', () => {
  test('createMenshen refuses a configuration that the command would refuse, with the same message', async () => {
    const rows: [config: unknown, expected: RegExp][] = [
      [
        { rules: [{ path: '/admin/', roles: ['developer'] }] },
        /^createMenshen: rules\.0\.path: expected no trailing slash/,
      ],
      [{ rules: [{ path: '/admin', role: 'developer' }] }, /^createMenshen: rules\.0: /],
      [{ rules: [{ path: '/admin', roles: ['boss'] }] }, /^createMenshen: rules\.0\.roles\.0: /],
      [{ upstreams: { '/api': 'ftp://a' } }, /^createMenshen: upstreams\.\/api: /],
      [{ rule: [] }, /^createMenshen: config: there is no "rule"; did you mean rules\?/],
      [5, /^createMenshen: config: /],
      ['./no-such-file.ts', /^CONFIG is ".*no-such-file\.ts", which does not exist; /],
    ]
    for (const [config, expected] of rows)
      assert.match(await refusalOf({ config } as Partial<MenshenOptions>), expected, JSON.stringify(config))
  })

  test('createMenshen refuses settings that the command would refuse', async () => {
    const rows: [change: object, expected: RegExp][] = [
      [{ BASE_URL: 'https://app.example.com/path' }, /^BASE_URL is "https:\/\/app\.example\.com\/path"; expected /],
      [{ BASE_URL: new URL('https://app.example.com') }, /^BASE_URL is /],
      [{ BASE_URL: undefined }, /^BASE_URL is "undefined"; expected /],
      [{ RATE_LIMIT_PER_MINUTE: '600' }, /^RATE_LIMIT_PER_MINUTE is "600"; expected /],
      [{ SESSION_MAX_HOURS: Number.NaN }, /^SESSION_MAX_HOURS is "NaN"; expected /],
      [{ FORWARD_ACCESS_TOKEN: 'false' }, /^FORWARD_ACCESS_TOKEN is /],
      [{ TRUSTED_PROXIES: '10.0.0.1' }, /^TRUSTED_PROXIES is /],
      [{ CLIENT_SECRET: 'text-CANARY' }, /^CLIENT_SECRET is not usable; expected /],
      [{ STATE_CHEK: 'bound' }, /^STATE_CHEK is not a setting/],
      [{ WORKERS: 2 }, /^STORE is "memory:", which several WORKERS cannot share/],
      [{ TLS_CERT_FILE: '/dev/null' }, /^TLS_CERT_FILE and TLS_KEY_FILE belong together/],
      [{ NODE_ENV: 'production', BASE_URL: 'http://app.example.com' }, /^BASE_URL .* in production/],
    ]
    for (const [change, expected] of rows) {
      const refusal = await refusalOf({ settings: { ...MEMORY, ...change } as Settings })
      assert.match(refusal, expected)
      assert.doesNotMatch(refusal, /\n|CANARY/)
    }
  })

  test('createMenshen warns on the console that no one or anyone can sign in, unless it has a log to write to', async t => {
    const said = t.mock.method(console, 'warn', () => {})
    const open = async (options: MenshenOptions) => {
      said.mock.resetCalls()
      const menshen = await createMenshen({ store: 'memory:', ...options })
      await menshen.close()
      return said.mock.calls.map(({ arguments: [text] }) => String(text))
    }
    const [nobody = '', ...more] = await open({ authUrl: 'https://idp.example.com' })
    assert.match(nobody, /^Menshen: users cannot sign in: missing clientId, clientSecret; set them, or .*\.$/)
    assert.deepEqual(more, [])
    const [anybody = ''] = await open({ devProvider: true })
    assert.match(anybody, /^Menshen: the development provider is in use \(http.*\): anyone can sign in as admin/)
    const [named = ''] = await open({ settings: MEMORY })
    assert.match(named, /AUTH_URL, CLIENT_ID, CLIENT_SECRET/)
    const whole = { authUrl: 'https://idp.example.com', clientId: 'app', clientSecret: 's'.repeat(32) }
    assert.deepEqual(await open(whole), [])
    const { log, lines } = createTestLog()
    assert.deepEqual(await open({ log }), [])
    assert.ok(lines.some(({ event }) => event === 'settings_missing'))
    lines.length = 0
    assert.deepEqual(await open({ log, devProvider: true }), [])
    assert.ok(lines.some(({ event }) => event === 'started'))
  })

  test('createMenshen accepts the settings that readSettings returns', async t => {
    const all = {
      TRUSTED_PROXIES: '10.0.0.0/8,::1',
      CLIENT_SECRET: 'secret',
      PORT: '4000',
      UPSTREAM: 'http://127.0.0.1:8080',
    }
    const provider = { AUTH_URL: 'https://idp.example.com', CLIENT_ID: 'app', CLIENT_SECRET: 'x'.repeat(32) }
    const production = { NODE_ENV: 'production', BASE_URL: 'https://app.example.com', ...provider }
    for (const env of [{}, all, production]) {
      const settings = readSettings({ STORE: `sqlite:${tempFolder(t)}/menshen.db`, ...env })
      await (await createMenshen({ settings, log: createTestLog().log })).close()
    }
  })

  test('createMenshen in production rejects without a usable provider and names the missing settings', async () => {
    const base = { NODE_ENV: 'production', BASE_URL: 'https://app.example.com', STORE: 'memory:' }
    await assert.rejects(createMenshen({ settings: readSettings(base), log: createTestLog().log }), {
      code: 'bad_settings',
      message: /users could not sign in, and NODE_ENV is "production"; expected AUTH_URL, CLIENT_ID, CLIENT_SECRET\.$/,
    })
  })

  test('an issuer without preset and address selects OpenID Connect, as an option and in provider and providers', async t => {
    const [issuer, clientId, clientSecret] = ['https://idp.example.com', 'app', 'x']
    const provider = { issuer, clientId, clientSecret }
    for (const options of [
      provider,
      { provider },
      { provider: { fields: { dept: ['dept'] } }, ...provider },
      { providers: { staff: provider } },
    ]) {
      const { log, lines } = createTestLog()
      const menshen = await createMenshen({ store: 'memory:', log, ...options })
      t.after(() => menshen.close())
      assert.ok(!lines.some(({ event }) => event === 'settings_missing'), JSON.stringify(options))
    }
  })

  test('createMenshen names issuer as an alternative to authUrl where OpenID Connect is possible', async () => {
    const options = { nodeEnv: 'production', baseUrl: 'https://app.example.com', store: 'memory:' }
    const either = /expected authUrl \(or issuer, for OpenID Connect\), clientId, clientSecret\.$/
    await assert.rejects(createMenshen(options), { message: either })
    await assert.rejects(createMenshen({ ...options, provider: 'oidc' }), { message: either })
    await assert.rejects(createMenshen({ ...options, provider: 'idaas' }), {
      message: /expected authUrl, clientId, clientSecret\.$/,
    })
  })

  test('createMenshen suggests the option secret for sessionSecret and cookieSecret', async () => {
    for (const name of ['sessionSecret', 'cookieSecret'])
      await assert.rejects(createMenshen({ store: 'memory:', [name]: 'x' } as never), {
        message: `"${name}" is not an option; did you mean secret?`,
      })
  })

  test('a createMenshen that fails midway closes the files that it has opened', async t => {
    const folder = join(tempFolder(t), 'data')
    const { AUTH_URL, CLIENT_ID, CLIENT_SECRET } = {
      AUTH_URL: 'http://127.0.0.1:9',
      CLIENT_ID: 'x',
      CLIENT_SECRET: 'y',
    }
    const settings = readSettings({
      STORE: `sqlite:${folder}/menshen.db`,
      AUTH_URL,
      CLIENT_ID,
      CLIENT_SECRET,
      UPSTREAM: 'http://127.0.0.1:9',
    })
    // Goes wrong as soon as the store is open.
    const trap = Object.defineProperty({ ...settings }, 'UPSTREAM_CONNECTIONS', {
      enumerable: true,
      get: () => (existsSync(folder) ? assert.fail('midway') : settings.UPSTREAM_CONNECTIONS),
    })
    await assert.rejects(createMenshen({ settings: trap, log: createTestLog().log }), /midway/)
    assert.deepEqual(openFilesIn(folder), [])
    await (await createMenshen({ settings, log: createTestLog().log })).close()
    assert.deepEqual(openFilesIn(folder), [])
  })
})

suite('after close', () => {
  test('after close no listener, timer or file descriptor is left with the embedded store', async t => {
    await leavesNothing(t, `sqlite:${tempFolder(t)}/menshen.db`)
  })

  test('after close no listener, timer or file descriptor is left with Redis', async t => {
    const redis = await startRedis()
    t.after(redis.stop)
    await leavesNothing(t, `redis://127.0.0.1:${redis.port}`)
  })

  test('close waits for requests in flight, but not longer than the given time', async t => {
    const provider = await openScriptedProvider(t)
    const menshen = await createMenshen({ settings: readSettings({ STORE: 'memory:', ...provider.settings }) })
    const release = provider.hold('token')
    const address = `http://localhost:3000/callback?code=${provider.codeFor()}&state=abc_idp`
    const answer = menshen.fetch(new Request(address))
    await provider.called('token')
    let isClosed = false
    const closing = menshen.close(100).then(() => {
      isClosed = true
    })
    await Promise.resolve()
    assert.equal(isClosed, false)
    // Nobody lets the provider answer.
    await closing
    release()
    assert.equal((await answer)?.status, 302)
  })

  test('a second close returns the same promise as the first', async () => {
    const menshen = await createMenshen({ settings: MEMORY, log: createTestLog().log })
    assert.equal(menshen.close(), menshen.close())
    await menshen.close()
  })
})

/** A whole life, twice: what the first one leaves (a loaded library, say) does not grow. */
async function leavesNothing(t: TestContext, STORE: string): Promise<void> {
  const provider = await startScriptedProvider()
  const upstream = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.after(async () => {
    upstream.close()
    upstream.closeAllConnections()
    await provider.close()
  })
  const address = upstream.address()
  const UPSTREAM = `http://127.0.0.1:${typeof address === 'object' && address?.port}`
  const live = async () => {
    const port = await freePort()
    const settings = readSettings({ STORE, UPSTREAM, ...provider.settings, PORT: String(port) })
    const menshen = await createMenshen({ settings, log: createTestLog().log })
    const server = createServer(menshen.listener).listen(port, '127.0.0.1')
    await once(server, 'listening')
    const user = createClient(`http://127.0.0.1:${port}`)
    await signIn(user, provider)
    assert.equal((await user.get('/')).text, 'hello')
    server.close()
    server.closeAllConnections()
    await menshen.close()
  }
  await live()
  await quiet()
  const before = whatIsOpen()
  await live()
  await quiet()
  assert.deepEqual(whatIsOpen(), before)
}

/** Sockets close a few turns after they were asked to, on both sides. */
async function quiet(): Promise<void> {
  let last = ''
  await until(async () => {
    await pause(50)
    const before = last
    last = JSON.stringify(whatIsOpen())
    return last === before
  })
}

function whatIsOpen() {
  requireLinux('/proc')
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    resources: process.getActiveResourcesInfo().filter(name => name !== 'Immediate').length,
    listeners: process.eventNames().map(name => `${String(name)}: ${process.listenerCount(name)}`),
  }
}

function openFilesIn(folder: string): string[] {
  requireLinux('/proc')
  return readdirSync('/proc/self/fd').flatMap(number => {
    try {
      const file = readlinkSync(`/proc/self/fd/${number}`)
      return file.startsWith(folder) ? [file] : []
    } catch {
      return []
    }
  })
}

async function refusalOf(options: Partial<MenshenOptions>): Promise<string> {
  return createMenshen({ settings: MEMORY, log: createTestLog().log, ...options }).then(
    () => assert.fail('accepted'),
    (error: MenshenError) => {
      assert.equal(error.code, 'bad_settings', String(error))
      return error.message
    },
  )
}
