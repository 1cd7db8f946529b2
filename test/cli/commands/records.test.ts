// `menshen audit`, `menshen sessions` and `menshen keys`, beside a Menshen that runs.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runAuditCommand } from '../../../src/cli/commands/audit.ts'
import { runKeysCommand } from '../../../src/cli/commands/keys.ts'
import { runSessionsCommand } from '../../../src/cli/commands/sessions.ts'
import { createPaint } from '../../../src/cli/terminal.ts'
import { readSince, UsageError } from '../../../src/cli/usage.ts'
import { recordKey } from '../../../src/session/ticket.ts'
import { keySha256 } from '../../../src/util/key-form.ts'
import { type Client, createClient } from '../../kit/client.ts'
import { createCommandRunner } from '../../kit/command-runner.ts'
import { freePort } from '../../kit/free-port.ts'
import {
  compiledCode,
  type Environment,
  isSentToLogin,
  isServed,
  setUpInstances,
  signedIn,
  startInstance,
} from '../../kit/instance.ts'
import { startRedis } from '../../kit/redis-server.ts'
import { openScriptedProvider, type ScriptedProvider } from '../../kit/scripted-provider.ts'
import { openGateway, setUp } from '../../kit/set-up.ts'
import { GRAFANA, PORTAL, setUpHosts, WIKI } from '../../kit/several-hosts.ts'
import { tempFolder } from '../../kit/temp.ts'
import { until } from '../../kit/until.ts'
import { auditLines } from '../../observe/audit-lines.ts'

const commands = createCommandRunner()
const ESCAPES = 'li\u001b[2J\u009b31m\u202e\r\nsi'
const SAFE = /^[^\p{Cc}\p{Bidi_Control}\u2028\u2029]*$/u
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64)'

/** A Menshen of its own process, with commands beside it. */
async function open(t: TestContext) {
  const { provider, folder, start } = await setUpInstances(t, { AUDIT_FILE: 'audit.jsonl' })
  return withCommands({ provider, folder, instance: await start() })
}

/** The same in the process of the test, which takes a tenth of the time to start. */
async function openHere(t: TestContext) {
  const folder = tempFolder(t)
  const env = { STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`, AUDIT_FILE: join(folder, 'audit.jsonl') }
  const instance = await setUp(t, { env, now: Date.now(), application: false })
  return withCommands({ provider: instance.provider, folder, instance })
}

function withCommands<Given extends { provider: ScriptedProvider; folder: string }>(given: Given) {
  const { provider, folder } = given
  const env = { ...provider.settings, STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`, AUDIT_FILE: 'audit.jsonl' }
  return {
    ...given,
    run: (args: string[], more: Environment = {}) => commands.run({ ...env, ...more }, { cwd: folder, args }),
    async json(...args: string[]): Promise<Record<string, unknown>[]> {
      const { code, output } = await commands.run(env, { cwd: folder, args: [...args, '--json'] })
      assert.equal(code, 0, output)
      return output
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
    },
  }
}

test('without a session, menshen sessions reports that no user is signed in, and its JSON output is empty', async t => {
  const { run } = await openHere(t)
  assert.equal((await run(['sessions'])).output.trim(), 'No user is signed in.')
  assert.equal((await run(['sessions', '--user', 'lisi'])).output.trim(), 'lisi is not signed in.')
  assert.equal((await run(['sessions', '--json'])).output.trim(), '')
})

test('menshen sessions and menshen audit work while Menshen is running', async t => {
  const { instance, provider, run, json } = await open(t)
  for (const username of ['zhangsan', ESCAPES, 'zhangsan']) await signedIn(instance, provider, username)
  const browser = createClient(instance.url)
  const headers = { 'user-agent': AGENT }
  await browser.get(`/callback?code=${provider.codeFor({ username: 'admin' })}&state=x_idp`, { headers })
  await until(async () => (await json('audit')).length === 4)

  await t.test('menshen sessions lists sessions, newest first, with all fields except the ticket', async () => {
    const all = await json('sessions')
    assert.deepEqual(
      all.map(({ user }) => user),
      ['admin', 'zhangsan', ESCAPES, 'zhangsan'],
    )
    const { id, session, since, seen, expires, ...rest } = all[0] ?? {}
    assert.deepEqual(rest, { user: 'admin', role: 'developer', address: '127.0.0.1', userAgent: AGENT })
    assert.match(String(id), /^[\w-]{43}$/)
    assert.equal(session, String(id).slice(0, 10))
    assert.ok((await run(['sessions'])).output.includes(` id=${id} `))
    for (const time of [since, seen, expires]) assert.ok(!Number.isNaN(Date.parse(String(time))))
    const own = all.filter(({ user }) => user === 'zhangsan')
    assert.deepEqual(await json('sessions', '--user', 'zhangsan'), own)
    assert.deepEqual(await json('sessions', '--user', 'zhang'), [])
  })

  await t.test(
    'control characters in a username cannot move the cursor or forge lines, in text or JSON output',
    async () => {
      for (const args of [['sessions'], ['sessions', '--json'], ['audit'], ['audit', '--json']]) {
        const lines = (await run(args)).output.split('\n')
        assert.equal(lines.length, 4)
        for (const line of lines) assert.match(line, SAFE)
      }
    },
  )

  await t.test('menshen audit prints one readable line per event and filters by user and time', async () => {
    const { output } = await run(['audit', '--since', '1h', '--user', 'admin'])
    assert.match(output, /^20\S+Z sign_in +admin .*address=127\.0\.0\.1/)
    assert.match(output, / userAgent="Mozilla\/5\.0 \(X11; Linux x86_64\)"/)
    assert.deepEqual(await json('audit', '--since', '2999-01-01'), [])
  })

  await t.test('menshen audit filters by event and by request id', async () => {
    const failed = await browser.get('/callback?error=access_denied')
    const id = String(failed.headers['x-request-id'])
    await until(async () => (await json('audit', '--request', id)).length === 1)
    const [event] = await json('audit', '--request', id)
    assert.equal(event?.event, 'sign_in_failed')
    assert.equal((await json('audit', '--event', 'sign_in')).length, 4)
    assert.deepEqual(await json('audit', '--event', 'sign_in_failed'), [event])
    assert.deepEqual(await json('audit', '--event', 'sign_in', '--request', id), [])
  })

  await t.test('without the right secret, menshen audit fails with code 1 and changes nothing', async () => {
    for (const more of [{ SECRET: 'x'.repeat(40), CLIENT_SECRET: 'another' }, { CLIENT_SECRET: 'another' }]) {
      const { code, output } = await run(['audit'], more)
      assert.equal(code, 1)
      assert.match(output, /^The stored data cannot be decrypted: SECRET \(or CLIENT_SECRET if it is not set\)/)
    }
    assert.equal((await json('audit')).length, 5)
  })
})

test('menshen sessions shows the hosts where each session is used if hosts are configured', async t => {
  const folder = tempFolder(t)
  const STORE = `sqlite:${join(folder, 'data', 'menshen.db')}`
  const scene = await setUpHosts(t, { env: { STORE }, now: Date.now() })
  const zhangsan = await scene.signedIn('zhangsan')
  for (const host of [WIKI, GRAFANA]) await zhangsan.open(`${host}/`)
  scene.passSeconds(1)
  await scene.signedIn('lisi')
  const hosts = { 'wiki.test': {}, 'grafana.test': {} }
  const listed = async (config: object, ...args: string[]) => {
    writeFileSync(join(folder, 'menshen.config.js'), `export default ${JSON.stringify(config)}`)
    const env = { ...scene.provider.settings, BASE_URL: PORTAL, STORE }
    return (await commands.run(env, { cwd: folder, args: ['sessions', ...args] })).out
  }
  const json = async (...args: string[]) =>
    (await listed({ hosts }, '--json', ...args))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).hosts)
  assert.deepEqual(await json(), [undefined, ['grafana.test', 'wiki.test']])
  assert.deepEqual(await json('--user', 'zhangsan'), [['grafana.test', 'wiki.test']])
  assert.match(await listed({ hosts }, '--user', 'zhangsan'), / hosts=grafana\.test,wiki\.test$/m)
  assert.doesNotMatch(await listed({}), /hosts/)
})

test('a backup made while Menshen is running has mode 600, and in place of the store it keeps the users of that moment signed in', async t => {
  const { instance, provider, folder, run } = await openHere(t)
  const user = await signedIn(instance, provider)
  const { code, output } = await run(['backup', 'copies/today.db'])
  assert.deepEqual([code, output], [0, `Copied the store ${join(folder, 'data', 'menshen.db')} to copies/today.db.`])
  assert.equal(statSync(join(folder, 'copies/today.db')).mode & 0o777, 0o600)
  const late = await signedIn(instance, provider, 'lisi')
  assert.ok(isServed(await user.get(instance)), 'it goes on')

  const restored = { STORE: `sqlite:${join(folder, 'copies/today.db')}` }
  const listed = await run(['sessions', '--json'], restored)
  assert.deepEqual(
    listed.output.split('\n').map(line => JSON.parse(line).user),
    ['zhangsan'],
  )
  await instance.close()
  const again = await openGateway(t, { ...provider.settings, ...restored }, { now: Date.now() })
  assert.ok(isServed(await user.get(again)))
  assert.ok(isSentToLogin(await late.get(again)), 'signed in after the backup')
})

test('menshen backup overwrites no file, and explains which stores cannot be copied', async t => {
  const folder = tempFolder(t)
  const sentences: [args: string[], env: Environment, says: RegExp][] = [
    [['backup'], {}, /^The name of the backup file is missing; expected menshen backup FILE\.$/],
    [['backup', 'a', 'b'], {}, /^Unexpected argument "b"; expected menshen backup FILE\.$/],
    [
      ['backup', 'a'],
      { STORE: 'memory:' },
      /^Only the embedded store can be copied .* "memory:" has nothing to copy\.$/,
    ],
    [
      ['backup', 'a'],
      { STORE: 'redis://127.0.0.1' },
      /^Only the embedded store can be copied .* redis-cli --rdb FILE\.$/,
    ],
    [['backup', 'a'], { STORE: 'sqlite:./none' }, /^No store in \.\/none\. /],
  ]
  for (const [args, env, says] of sentences) {
    const { code, output } = await commands.run(env, { cwd: folder, args })
    assert.ok(code === 1 || code === 2)
    assert.match(output, says)
  }
  assert.deepEqual(readdirSync(folder), [])
  const { run, folder: own } = await openHere(t)
  writeFileSync(join(own, 'file'), 'kept')
  assert.match(
    (await run(['backup', 'file'])).output,
    /^The file file already exists; expected the name of a new file\.$/,
  )
  assert.equal(readFileSync(join(own, 'file'), 'utf8'), 'kept')
})

test('a command whose Redis does not respond names the reason without the password, and says what to check', async t => {
  const env = { STORE: `redis://:pass-CANARY@127.0.0.1:${await freePort()}`, SECRET: 's'.repeat(32) }
  for (const args of [['sessions'], ['keys', 'list'], ['audit']]) {
    const { code, output } = await commands.run(env, { cwd: tempFolder(t), args })
    assert.equal(code, 1, output)
    assert.match(
      output,
      /^The store at redis:.* is not available \(.*ECONNREFUSED.*\)\. Check that the server in STORE is /,
    )
    assert.doesNotMatch(output, /CANARY/)
  }
})

test('--since accepts a timestamp, a date or an age such as 30m', () => {
  const now = Date.parse('2026-03-01T08:00:00Z')
  const read = (text: string) => new Date(readSince(text, now)).toISOString()
  assert.equal(read('30m'), '2026-03-01T07:30:00.000Z')
  assert.equal(read('2h'), '2026-03-01T06:00:00.000Z')
  assert.equal(read('7d'), '2026-02-22T08:00:00.000Z')
  assert.equal(read('2026-02-28'), '2026-02-28T00:00:00.000Z')
  for (const text of ['2026-02-28T06:30', '2026-02-28 06:30:00Z', '2026-02-28T14:30:00.000+08:00'])
    assert.equal(read(text), '2026-02-28T06:30:00.000Z')
})

test('audit, sessions and keys reject invalid arguments with a one-line usage error', async () => {
  const wrong: [args: string[], says: string][] = [
    [['audit', '--since', 'yesterday'], '--since is "yesterday"; expected a time, for example'],
    [['audit', '--since', '2026-02-31'], '--since is "2026-02-31"; expected'],
    [['audit', '--since', '2026-01-01T25:00Z'], '--since is "2026-01-01T25:00Z"; expected'],
    [['audit', '--since', '\u001b[31m'], '--since is "�[31m"; expected'],
    [['audit', '--user'], "Option '--user <value>' argument missing; expected menshen audit"],
    [['audit', '--user', ''], '--user needs a name; expected menshen audit'],
    [['audit', '--sinec', '2h'], "Unknown option '--sinec'; did you mean --since? Expected menshen audit"],
    [['sessions', 'ends'], 'Unexpected argument "ends"; did you mean end? Expected menshen sessions'],
    [
      ['audit', '--event', 'sign_inn'],
      '"sign_inn" is not an audited event; did you mean sign_in? Expected menshen audit',
    ],
    [['audit', '--event', 'nope'], '"nope" is not an audited event (expected one of config_reloaded, sign_in, '],
    [['audit', '--request', ''], '--request needs an id; expected menshen audit'],
    [['audit', '--follow'], "Unknown option '--follow'; expected menshen audit"],
    [['audit', 'all'], 'Unexpected argument "all"; expected menshen audit'],
    [['sessions', 'stop'], 'Unexpected argument "stop"; expected menshen sessions'],
    [['sessions', 'end'], '"end" needs either a user name or a session id; expected menshen sessions'],
    [['sessions', 'end', '--user', 'a', '--session', 'b'], '"end" needs either a user name or a session id'],
    [['sessions', 'end', '--user', ''], 'The user name is missing; expected menshen sessions'],
    [['sessions', 'end', '--session', ''], 'The session id is missing; expected menshen sessions'],
    [['sessions', '--session', 'b'], '--session can only be used with "end"; expected menshen sessions'],
    [['keys', 'revoke'], '"revoke" needs one of: a key id, a user name, a time; expected menshen keys'],
    [['keys', 'revoke', 'id', '--user', 'a'], '"revoke" needs one of'],
    [['keys', 'revoke', '--user', 'a', '--before', '1d'], '"revoke" needs one of'],
    [['keys', 'revoke', '--before', 'yesterday'], '--before is "yesterday"; expected a time, for example'],
    [['keys', 'revoke', '--before', ''], '--before is ""; expected a time, for example'],
    [['keys', 'revoke', '--user', ''], '--user needs a name; expected menshen keys'],
    [['keys', 'revoke', 'a', 'b'], 'Unexpected argument "b"; expected menshen keys'],
    [['keys', 'list', 'a'], 'Unexpected argument "a"; expected menshen keys'],
    [['keys', 'list', '--before', '1d'], '--before cannot be used with "list"; expected menshen keys'],
    [['keys', 'revok', 'a'], 'Unexpected argument "revok"; did you mean revoke? Expected menshen keys'],
    [['sessions', 'end', 'zhangsan'], 'Unexpected argument "zhangsan"; expected menshen sessions'],
  ]
  const run = { environment: {}, now: Date.now, paint: createPaint(false) }
  const runners: Record<string, (args: string[]) => Promise<void>> = {
    audit: args => runAuditCommand(args, run),
    sessions: args => runSessionsCommand(args, run),
    keys: args => runKeysCommand(args, () => run),
  }
  for (const [[name = '', ...args], says] of wrong) {
    const running = runners[name]?.(args) ?? assert.fail(name)
    await assert.rejects(running, (error: Error) => {
      assert.ok(error.message.startsWith(says) && !error.message.includes('\n'), error.message)
      return error instanceof UsageError
    })
  }
  const { code, output } = await commands.run({}, { args: ['audit', '--follow'] })
  assert.deepEqual([code, output.split('\n').length], [2, 1])
})

test('sessions end --user takes effect immediately, prints the number of sessions and is audited in trail and file', async t => {
  const { folder, instance, provider, run, json } = await openHere(t)
  const [one, two] = [await signedIn(instance, provider), await signedIn(instance, provider)]
  const other = await signedIn(instance, provider, 'lisi')
  const { code, output } = await run(['sessions', 'end', '--user', 'zhangsan'])
  assert.deepEqual([code, output], [0, 'Ended 2 sessions of zhangsan.'])
  for (const user of [one, two]) assert.ok(isSentToLogin(await user.get(instance)))
  assert.ok(isServed(await other.get(instance)))
  const fields = { event: 'session_ended', user: 'zhangsan', by: 'command', ended: 2 }
  // The process that runs may write down its sign-ins after this one.
  const endedIn = (events: readonly Readonly<Record<string, unknown>>[]) =>
    events.filter(({ event }) => event === 'session_ended')
  assert.partialDeepStrictEqual(endedIn(await json('audit', '--since', '1h')), [fields])
  assert.partialDeepStrictEqual(endedIn(auditLines(readFileSync(join(folder, 'audit.jsonl'), 'utf8'))), [fields])
  assert.equal((await run(['sessions', 'end', '--user', 'zhangsan'])).output, 'Ended 0 sessions of zhangsan.')
  assert.deepEqual(
    (await json('sessions')).map(({ user }) => user),
    ['lisi'],
  )
  assert.equal((await json('audit', '--user', 'zhangsan')).length, 3, 'what ended nothing is not an event')
})

const STORES: Record<string, (t: TestContext) => Promise<string>> = {
  sqlite: async t => `sqlite:${join(tempFolder(t), 'menshen.db')}`,
  async redis(t) {
    const redis = await startRedis()
    t.after(() => redis.stop())
    return `redis://${redis.host}`
  },
}

/** A gateway with personal keys, and commands beside it. */
async function openKeys(t: TestContext, STORE: string, answer?: RequestListener, more: Environment = {}) {
  const scene = await setUp(t, {
    env: { STORE, ...more },
    now: Date.now(),
    config: { rules: [{ path: '/', roles: ['*'], keys: 'personal' }] },
    ...(answer && { answer }),
  })
  const env = { ...scene.provider.settings, STORE, ...more }
  const cwd = tempFolder(t)
  const run = (args: string[], more: Environment = {}) => commands.run({ ...env, ...more }, { cwd, args })
  return {
    ...scene,
    run,
    async json(...args: string[]): Promise<Record<string, unknown>[]> {
      const { out } = await run([...args, '--json'])
      return out.split('\n').flatMap(line => (line ? [JSON.parse(line)] : []))
    },
    async make(client: Client, name: string): Promise<string> {
      const { text } = await client.post(
        '/_menshen/account/keys',
        { name, days: '30' },
        { headers: { origin: scene.url } },
      )
      return /mk_[\w-]{43}/.exec(text)?.[0] ?? assert.fail('no key')
    },
    statusWith: async (key: string) =>
      (await scene.visitor().get('/', { headers: { authorization: `Bearer ${key}` } })).status,
  }
}

for (const [name, openStore] of Object.entries(STORES)) {
  test(`on ${name}, sessions end --session ends one session and its streams, keeps other sessions and keys, and is audited`, async t => {
    const closed = Promise.withResolvers<void>()
    const stage = await openKeys(t, await openStore(t), (incoming, response) => {
      if (incoming.url !== '/events') return void response.end('hello')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
      response.once('close', closed.resolve)
    })
    const { user, make, run, json, statusWith } = stage
    const stays = await user()
    const key = await make(stays, 'laptop')
    stage.passSeconds(1)
    const ends = await user()
    const cookie = [...ends.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const stream = await fetch(`${stage.url}/events`, { headers: { cookie, accept: 'text/event-stream' } })
    const reader = stream.body?.getReader() ?? assert.fail()
    await reader.read()
    const [{ id } = {}] = await json('sessions')
    assert.deepEqual(
      [ends, stays].map(({ cookies }) => recordKey(cookies.get('menshen_session') ?? '')),
      (await json('sessions')).map(({ id }) => id),
    )

    const ended = await run(['sessions', 'end', '--session', String(id)])
    assert.deepEqual([ended.code, ended.output], [0, 'Ended 1 session of zhangsan.'])
    await closed.promise
    while (!(await reader.read().catch(() => ({ done: true }))).done);
    assert.ok(isSentToLogin(await ends.get('/', { headers: { accept: 'text/html' } })))
    assert.ok(isServed(await stays.get('/')))
    assert.equal(await statusWith(key), 200)
    const events = await json('audit', '--event', 'session_ended')
    assert.partialDeepStrictEqual(events, [
      { user: 'zhangsan', session: String(id).slice(0, 10), by: 'command', ended: 1 },
    ])

    for (const unknown of [String(id), String(id).slice(0, 10), 'data-keys', '\u001b[2J']) {
      const { code, out, err } = await run(['sessions', 'end', '--session', unknown])
      assert.deepEqual([code, out, err.split('\n').length], [1, '', 2])
      assert.match(err.trim(), /^There is no session "[^\p{Cc}"]+"; menshen sessions shows the ids\.$/u)
    }
    assert.equal((await json('audit', '--event', 'session_ended')).length, 1)
  })

  test(`on ${name}, menshen keys lists personal keys and revokes them by id, user or age while Menshen is running`, async t => {
    const stage = await openKeys(t, await openStore(t))
    const { user, make, run, json, statusWith, passSeconds } = stage
    assert.equal((await run(['keys', 'list'])).output, 'There are no personal keys.')
    assert.equal((await run(['keys', 'list', '--json'])).output, '')
    const [zhangsan, lisi] = [await user(), await user('lisi')]
    const old = await make(zhangsan, 'laptop')
    const oldOfLisi = await make(lisi, 'ci')
    assert.equal((await run(['keys', 'list', '--user', 'wangwu'])).err, 'wangwu has no personal keys.\n')
    passSeconds(300)
    const between = new Date(stage.now() - 60_000).toISOString()
    const next = await make(zhangsan, 'new laptop')
    for (const key of [old, oldOfLisi, next]) assert.equal(await statusWith(key), 200)

    const all = await json('keys', 'list')
    assert.deepEqual(
      all.map(({ id, user, name }) => [id, user, name]).sort(),
      [
        [keySha256(oldOfLisi), 'lisi', 'ci'],
        [keySha256(old), 'zhangsan', 'laptop'],
        [keySha256(next), 'zhangsan', 'new laptop'],
      ].sort(),
    )
    assert.deepEqual(Object.keys(all[0] ?? {}).slice(0, 5), ['id', 'user', 'name', 'created', 'expires'])
    assert.equal(all[0]?.name, 'new laptop', 'the newest first')
    assert.equal((await json('keys', 'list', '--user', 'lisi')).length, 1)
    const { output } = await run(['keys', 'list', '--user', 'zhangsan'])
    assert.match(output, /^20\S+Z zhangsan id=[\da-f]{64} name="new laptop" expires=20\S+Z/)
    for (const key of [old, oldOfLisi, next]) assert.ok(!output.includes(key))

    const aged = await run(['keys', 'revoke', '--before', between])
    assert.deepEqual([aged.code, aged.output], [0, `Revoked 2 personal keys created before ${between}.`])
    assert.deepEqual([await statusWith(old), await statusWith(oldOfLisi), await statusWith(next)], [401, 401, 200])
    const last = await make(zhangsan, 'last')
    const one = await run(['keys', 'revoke', keySha256(next)])
    assert.deepEqual([one.code, one.output], [0, 'Revoked the personal key "new laptop" of zhangsan.'])
    assert.deepEqual([await statusWith(next), await statusWith(last)], [401, 200])
    const whose = await run(['keys', 'revoke', '--user', 'zhangsan'])
    assert.deepEqual([whose.code, whose.output], [0, 'Revoked 1 personal key of zhangsan.'])
    assert.equal(await statusWith(last), 401)
    assert.ok(isServed(await zhangsan.get('/')), 'the user stays signed in')

    for (const unknown of [keySha256(next), 'data-keys', '../x']) {
      const { code, out, err } = await run(['keys', 'revoke', unknown])
      assert.deepEqual([code, out], [1, ''])
      assert.match(err, /^There is no personal key ".+"; menshen keys list shows the ids\.\n$/)
    }
    assert.equal((await run(['keys', 'revoke', '--user', 'zhangsan'])).output, 'Revoked 0 personal keys of zhangsan.')
    const events = await json('audit', '--event', 'key_revoked')
    assert.deepEqual(
      events.map(({ user, by, name, revoked }) => [user, by, name, revoked]).sort(),
      [
        ['lisi', 'command', undefined, 1],
        ['zhangsan', 'command', 'new laptop', undefined],
        ['zhangsan', 'command', undefined, 1],
        ['zhangsan', 'command', undefined, 1],
      ].sort(),
    )
  })
}

test('an older backup still contains a revoked key, and keys revoke --before revokes it there', async t => {
  const folder = tempFolder(t)
  const { user, make, run, json, statusWith } = await openKeys(t, `sqlite:${join(folder, 'menshen.db')}`)
  const key = await make(await user(), 'laptop')
  const copy = join(folder, 'copy.db')
  assert.equal((await run(['backup', copy])).code, 0)
  await run(['keys', 'revoke', keySha256(key)])
  assert.equal(await statusWith(key), 401)
  assert.deepEqual(await json('keys', 'list'), [])

  const restored = (...args: string[]) => run(args, { STORE: `sqlite:${copy}` })
  assert.equal(JSON.parse((await restored('keys', 'list', '--json')).out).id, keySha256(key))
  assert.match(
    (await restored('keys', 'revoke', '--before', '0s')).output,
    /^Revoked 1 personal key created before \S+\.$/,
  )
  assert.equal((await restored('keys', 'list')).output, 'There are no personal keys.')
})

test('menshen keys reports keys that it cannot decrypt because their secret is no longer configured', async t => {
  const STORE = `sqlite:${join(tempFolder(t), 'menshen.db')}`
  const [former, present] = ['f'.repeat(40), 'p'.repeat(40)]
  const before = await openKeys(t, STORE, undefined, { SECRET: former })
  const key = await before.make(await before.user(), 'laptop')
  const now = await openKeys(t, STORE, undefined, { SECRET: present })
  const own = await now.make(await now.user('lisi'), 'ci')

  const listed = await now.run(['keys', 'list', '--json'])
  assert.equal(JSON.parse(listed.out).id, keySha256(own))
  assert.equal(listed.err, '1 personal key cannot be decrypted: its secret is no longer in SECRET.\n')
  const revoked = await now.run(['keys', 'revoke', '--before', '2999-01-01'])
  assert.deepEqual(
    [revoked.code, revoked.out, revoked.err],
    [
      1,
      'Revoked 1 personal key created before 2999-01-01T00:00:00.000Z.\n',
      '1 personal key cannot be decrypted with this SECRET. Append the previous secret after the current one in SECRET, then run this command again.\n',
    ],
  )
  assert.equal(await before.statusWith(key), 200)
  const again = await now.run(['keys', 'revoke', '--user', 'zhangsan'], { SECRET: `${present},${former}` })
  assert.deepEqual([again.code, again.output], [0, 'Revoked 1 personal key of zhangsan.'])
  assert.equal(await before.statusWith(key), 401)
})

test('menshen sessions and menshen doctor report sessions whose secret is no longer configured', async t => {
  const provider = await openScriptedProvider(t)
  const folder = tempFolder(t)
  const env = { ...provider.settings, STORE: `sqlite:${join(folder, 'data', 'menshen.db')}` }
  const start = (SECRET: string) => openGateway(t, { ...env, SECRET }, { hasRunningClock: true })
  const [former, present] = ['f'.repeat(40), 'p'.repeat(40)]
  const run = (SECRET: string, ...args: string[]) => commands.run({ ...env, SECRET }, { cwd: folder, args })
  const before = await start(former)
  const user = await signedIn(before, provider)
  await before.close()
  const closed = await run(present, 'doctor')
  assert.match(
    closed.out,
    /✖ store keys: none of the configured secrets can decrypt .* → Append the previous secret after/,
  )
  const now = await start(present)
  await signedIn(now, provider, 'lisi')

  const listed = await run(present, 'sessions')
  assert.equal(listed.out.split('\n').length, 3)
  assert.equal(listed.err, '1 session cannot be decrypted: its secret is no longer in SECRET.\n')
  const own = await run(present, 'sessions', '--user', 'zhangsan')
  assert.match(own.err, /^1 session cannot be decrypted and may be zhangsan’s: .*\.\n$/)
  const ended = await run(present, 'sessions', 'end', '--user', 'zhangsan')
  assert.equal(ended.code, 1)
  assert.equal(ended.out, 'Ended 0 sessions of zhangsan.\n')
  assert.equal(
    ended.err,
    '1 session cannot be decrypted with this SECRET and may be zhangsan’s. Append the previous secret after the current one in SECRET, then run this command again.\n',
  )
  assert.match((await run(present, 'doctor')).out, /! store keys: some sessions use a secret/)
  assert.match(
    (await run(present, 'doctor', '--language', 'zh-CN')).out,
    /存储 · 密钥：有些会话所用的密钥不在 SECRET 中/,
  )

  const both = `${present},${former}`
  assert.match((await run(both, 'doctor')).out, /✔ store keys: the configured secrets can decrypt the stored data/)
  const all = await run(both, 'sessions')
  assert.match(all.out, / lisi .*\n.* zhangsan /)
  assert.equal(all.err, '')
  const again = await run(both, 'sessions', 'end', '--user', 'zhangsan')
  assert.deepEqual([again.code, again.output], [0, 'Ended 1 session of zhangsan.'])
  assert.ok(isSentToLogin(await user.get(now)))
})

test('if SECRET was replaced while no user was signed in, menshen doctor passes, and sessions and keys are empty', async t => {
  const provider = await openScriptedProvider(t)
  const folder = tempFolder(t)
  const env = { ...provider.settings, STORE: `sqlite:${join(folder, 'menshen.db')}` }
  const run = (SECRET: string, ...args: string[]) => commands.run({ ...env, SECRET }, { cwd: folder, args })
  const [former, present] = ['f'.repeat(40), 'p'.repeat(40)]
  const before = await openGateway(t, { ...env, SECRET: former }, { hasRunningClock: true })
  const user = await signedIn(before, provider)
  await user.signOut(before)
  await before.close()

  assert.match((await run(present, 'doctor')).out, /✔ store keys: no session or personal key needs a previous secret/)
  const lists: [args: string[], err: string][] = [
    [['sessions'], 'No user is signed in.\n'],
    [['sessions', '--user', 'zhangsan'], 'zhangsan is not signed in.\n'],
    [['keys', 'list'], 'There are no personal keys.\n'],
  ]
  for (const [args, err] of lists) assert.deepEqual({ args, ...(await run(present, ...args)) }.err, err)
  // An audit event of its own could not be decrypted later, and the others cannot be now.
  for (const args of [['audit'], ['sessions', 'end', '--user', 'zhangsan'], ['keys', 'revoke', '--before', '0s']])
    assert.match((await run(present, ...args)).err, /^The stored data cannot be decrypted/)

  const after = await openGateway(t, { ...env, SECRET: present }, { hasRunningClock: true })
  assert.ok(!after.lines.some(({ event }) => event === 'data_keys_closed'))
  await after.close()
  assert.match((await run(former, 'audit')).out, / sign_in +zhangsan /)
})

test('with nothing set, menshen audit shows a failed sign-in with the development provider', async t => {
  const cwd = tempFolder(t)
  const DEV_PROVIDER_PORT = String(await freePort())
  const PORT = String(await freePort())
  const menshen = await startInstance({ DEV_PROVIDER_PORT, PORT }, { cwd })
  t.after(() => menshen.stop())
  await createClient(menshen.url).get('/callback?error=access_denied')
  await menshen.stop()
  const { output } = await commands.run({}, { cwd, args: ['audit'] })
  assert.match(output, / sign_in_failed +- .*reason=access_denied/)
})

test('without a readable store, audit, sessions and keys fail with a one-line error and create no file', async t => {
  const cwd = tempFolder(t)
  for (const args of [['audit'], ['sessions'], ['keys', 'list'], ['keys', 'revoke', '--before', '1d']]) {
    const memory = await commands.run({ STORE: 'memory:' }, { cwd, args })
    assert.equal(memory.code, 1)
    assert.match(memory.output, /^STORE is "memory:", which only the running process can read; .*\.$/)
    const nothing = await commands.run({}, { cwd, args })
    assert.deepEqual([nothing.code, nothing.output.split('\n').length], [1, 1])
    assert.match(nothing.output, /^No store in \.\/data/)
  }
  assert.deepEqual(readdirSync(cwd), [])
})

test('a store that exists but cannot be opened is not called absent', async t => {
  const cwd = tempFolder(t)
  // Like a file in a folder of another account, it cannot be looked at.
  symlinkSync('loop', join(cwd, 'loop'))
  for (const args of [['sessions'], ['audit'], ['keys', 'list'], ['backup', 'copy.db']]) {
    const { code, output } = await commands.run({ STORE: 'sqlite:./loop' }, { cwd, args })
    assert.equal(code, 1)
    assert.match(output, /^Cannot open the store \.\/loop/)
  }
})

test('a command whose output cannot be written fails with one line', { skip: !existsSync('/dev/full') }, async () => {
  const full = openSync('/dev/full', 'w')
  const main = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))
  const child = spawn(process.execPath, [main, 'help'], {
    stdio: ['ignore', full, 'pipe'],
    env: { PATH: process.env.PATH, ...compiledCode() },
  })
  const [errors, [code]] = await Promise.all([text(child.stderr ?? assert.fail()), once(child, 'close')])
  closeSync(full)
  assert.deepEqual([code, errors], [1, 'The output could not be written (ENOSPC).\n'])
})
