// The end of the process, by any means: who was told "signed in" stays so, who was told "signed out" stays so, and
// nothing that is left on the disk is of use to a thief.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { recordKey } from '../../src/session/ticket.ts'
import { type Client, cookieOf, createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { type Environment, type Exit, type Instance, setUpInstances, startInstance } from '../kit/instance.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const BURST = 30
/** What an operator who stops a service is ready to wait. */
const FEW_SECONDS_MS = 5000
/** What is in flight may take longer, but not for ever. */
const PATIENCE_MS = 15_000
const GONE: Exit = { code: null, signal: 'SIGKILL' }

suite('after kill -9 and a restart', { concurrency: 2 }, () => {
  test('kill -9 during sign-ins contradicts no response that users have received', async t => {
    const { provider, start, reopen, visitor } = await prepare(t)
    const menshen = await start()
    const [stayed, left, sentAway, developer] = [visitor(), visitor(), visitor(), visitor()]
    assert.equal((await signIn(stayed, provider)).headers.location, '/')

    await signIn(left, provider, { username: 'lisi' })
    const cookie = cookieOf(left)
    assert.equal((await left.post('/logout')).headers.location, '/login')

    await signIn(sentAway, provider, { username: 'wangwu' })
    await signIn(developer, provider, { username: 'admin' })
    const { text } = await developer.get('/_menshen/console/sessions?username=wangwu')
    const session = /name="session" value="([^"]+)"/.exec(text)?.[1] ?? assert.fail('the session is not listed')
    assert.equal((await developer.post('/_menshen/console/end', { session })).status, 303)

    const users = Array.from({ length: BURST }, visitor)
    const answered: Client[] = []
    const enough = Promise.withResolvers<void>()
    const attempts = users.map(async (user, n) => {
      const { headers } = await signIn(user, provider, { username: `user-${n}` })
      assert.equal(headers.location, '/')
      answered.push(user)
      if (answered.length === BURST / 3) enough.resolve()
    })
    const outcomes = Promise.allSettled(attempts)
    await Promise.race([enough.promise, outcomes])
    assert.deepEqual(await menshen.kill('SIGKILL'), GONE)
    await outcomes
    assert.ok(answered.length >= BURST / 3, `only ${answered.length} were answered`)
    await reopen()

    await t.test('after kill -9, a user whose sign-in was confirmed is still signed in', async () => {
      assert.equal(await usernameOf(stayed), 'zhangsan')
    })

    await t.test(
      'after kill -9, a signed-out user stays signed out, even if the request sends the old cookie',
      async () => {
        assert.equal((await left.get('/_menshen/me', { headers: { cookie } })).status, 401)
        assert.equal(await usernameOf(stayed), 'zhangsan')
      },
    )

    await t.test('after kill -9, a user whom a developer signed out is still signed out', async () => {
      assert.equal((await sentAway.get('/_menshen/me')).status, 401)
      assert.equal(await usernameOf(developer), 'admin')
    })

    await t.test(
      `after kill -9 during ${BURST} sign-ins, every confirmed sign-in is still valid, and the other users can sign in`,
      async () => {
        for (const user of answered) assert.equal(await usernameOf(user), `user-${users.indexOf(user)}`)
        // Nor is the store hurt: the others sign in now.
        for (const user of users.filter(user => !answered.includes(user)))
          assert.equal((await signIn(user, provider)).headers.location, '/')
      },
    )
  })

  test('after kill -9 of the primary process, its workers exit too, and users are still signed in after a restart', async t => {
    const { provider, start, reopen, visitor } = await prepare(t)
    const menshen = await start({ WORKERS: '2' })
    const user = visitor()
    await signIn(user, provider)
    // Resolves when the last process has let go of its output.
    assert.deepEqual(await menshen.kill('SIGKILL'), GONE)
    await assert.rejects(user.get('/_menshen/health'), { code: 'ECONNREFUSED' })
    await reopen()
    assert.equal(await usernameOf(user), 'zhangsan')
  })

  test('after kill -9 while the provider has not answered a token refresh, the user is still signed in', async t => {
    const { provider, start, reopen, visitor } = await prepare(t, { PROVIDER_TIMEOUT_MS: '1000' })
    provider.behaviour.expiresIn = 200
    const menshen = await start()
    const user = visitor()
    await signIn(user, provider)
    provider.answer('refresh', { kind: 'hang' }, 'once')
    const visit = user.get('/').catch(() => 'cut off')
    await provider.called('refresh')
    assert.deepEqual(await menshen.kill('SIGKILL'), GONE)
    assert.equal(await visit, 'cut off')
    await reopen()
    assert.equal(await usernameOf(user), 'zhangsan')
    assert.equal(provider.callsTo('refresh').length, 2)
    assert.equal(provider.reuses, 0)
  })
})

suite('SIGTERM', { concurrency: 2 }, () => {
  test('Menshen exits with code 0 within 5 seconds of SIGTERM despite keep-alive connections and one without a request', async t => {
    const { start } = await prepare(t)
    const menshen = await start()
    const agent = new Agent({ keepAlive: true, maxSockets: 5 })
    t.after(() => agent.destroy())
    await Promise.all(Array.from({ length: 5 }, () => visitAndKeep(agent, `${menshen.url}/login`)))
    await connectTo(t, menshen)
    await endsSoon(menshen)
  })

  test('Menshen exits with code 0 after SIGTERM despite requests that clients never finish sending', async t => {
    const { provider, start, visitor } = await prepare(t)
    const menshen = await start()
    const developer = visitor()
    await signIn(developer, provider, { username: 'admin' })
    const half = [
      'GET /login HTTP/1.1\r\nhost: local',
      'POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nhalf of it',
      `POST /_menshen/console/end HTTP/1.1\r\nhost: localhost\r\ncookie: ${cookieOf(developer)}\r\ncontent-length: 100\r\n\r\nsession=`,
    ]
    for (const request of half) (await connectTo(t, menshen)).write(request)
    await developer.get('/') // they have arrived by now
    await endsSoon(menshen, PATIENCE_MS)
  })

  test('SIGTERM stops all worker processes and the development provider', async t => {
    const DEV_PROVIDER_PORT = String(await freePort())
    const menshen = await startInstance({ DEV_PROVIDER_PORT, WORKERS: '2' })
    t.after(menshen.stop)
    const agent = new Agent({ keepAlive: true })
    t.after(() => agent.destroy())
    await visitAndKeep(agent, `http://127.0.0.1:${DEV_PROVIDER_PORT}/`)
    await endsSoon(menshen)
  })

  test('SIGINT and SIGTERM in quick succession, as npm and a terminal send them, let a sign-in in progress complete', async t => {
    const { provider, start, visitor } = await prepare(t)
    for (const WORKERS of ['1', '2']) {
      const menshen = await start({ WORKERS })
      const coming = visitor()
      const calls = provider.callsTo('token').length
      const release = provider.hold('token')
      const answer = signIn(coming, provider)
      await provider.called('token', calls + 1)
      menshen.kill('SIGINT')
      const exit = menshen.kill('SIGTERM')
      await refusesConnections(menshen)
      release()
      assert.equal((await answer).headers.location, '/')
      assert.deepEqual(await exit, { code: 0, signal: null }, menshen.output.join('\n'))
    }
  })

  test('repeated SIGTERM signals end Menshen with code 1 without waiting for a sign-in in progress', async t => {
    const { provider, start, visitor } = await prepare(t)
    const menshen = await start()
    provider.hold('token')
    const answer = signIn(visitor(), provider).catch(() => 'cut off')
    await provider.called('token')
    let exit: Exit | undefined
    menshen.exited.then(ended => {
      exit = ended
    })
    while (!exit) {
      menshen.kill('SIGTERM')
      await pause(100)
    }
    assert.deepEqual(exit, { code: 1, signal: null })
    assert.equal(await answer, 'cut off')
  })

  test('SIGTERM lets work in progress complete before Menshen exits with code 0', async t => {
    const { provider, start, reopen, visitor } = await prepare(t)
    const menshen = await start()
    const [coming, due] = [visitor(), visitor()]
    provider.behaviour.expiresIn = 200
    await signIn(due, provider, { username: 'lisi' })
    provider.behaviour.expiresIn = 7200
    const releaseRefresh = provider.hold('refresh')
    const browser = new AbortController()
    const visit = due.get('/', { signal: browser.signal }).catch(() => 'gone')
    await provider.called('refresh')
    browser.abort()
    assert.equal(await visit, 'gone')

    const releaseToken = provider.hold('token')
    const answer = signIn(coming, provider)
    await provider.called('token', 2)
    const exit = menshen.kill('SIGTERM')
    await refusesConnections(menshen)
    releaseToken()
    assert.equal((await answer).headers.location, '/')
    // From here on nothing but the refresh keeps it from its end.
    releaseRefresh()
    assert.deepEqual(await exit, { code: 0, signal: null })
    await reopen()

    await t.test('SIGTERM lets a sign-in in progress complete', async () => {
      assert.equal(await usernameOf(coming), 'zhangsan')
    })

    await t.test(
      'SIGTERM does not sign out a user whose token is being refreshed, even if the browser has disconnected',
      async () => {
        assert.equal(await usernameOf(due), 'lisi')
        assert.equal(provider.reuses, 0)
      },
    )
  })
})

suite('files and log lines left behind', { concurrency: 2 }, () => {
  test('files on disk are not accessible to other accounts, in a new data folder and in an existing one', async t => {
    const { folder, provider, start, visitor } = await prepare(t)
    mkdirSync(folder)
    chmodSync(folder, 0o755)
    const menshen = await start()
    await signIn(visitor(), provider)
    const nested = await prepare(t, {}, join(folder, 'a', 'b'))
    await nested.reopen()
    for (const path of everythingIn(folder))
      assert.equal(modeOf(path) & 0o077, 0, `${path} ${modeOf(path).toString(8)}`)
    assert.ok(everythingIn(folder).some(path => statSync(path).isFile()))
    await menshen.stop()
  })

  test('neither disk nor log contains a token, code, ticket, secret, e-mail address, phone number, department or display name', async t => {
    const { folder, provider, start, visitor } = await prepare(t, {
      LOG_LEVEL: 'trace',
      STATE_CHECK: 'suffix',
      PKCE: 'S256',
    })
    provider.behaviour.expiresIn = 200
    const menshen = await start()
    const users = [visitor(), visitor(), visitor()]
    const secrets = new Set<string>()
    const keys: string[] = []
    for (const [n, user] of users.entries()) {
      // The provider wants the verifier that belongs to the challenge, so this goes the whole way.
      const leaving = await user.post('/login')
      const back = await user.follow(await user.follow(leaving))
      assert.equal(back.headers.location, '/', `user ${n}`)
      for (const value of user.cookies.values()) secrets.add(value)
      keys.push(recordKey(user.cookies.get('menshen_session') ?? ''))
      assert.equal((await user.get('/')).status, 200) // refreshed on the way
    }
    const [first, second] = users
    await first?.post('/logout')
    provider.answer('refresh', { kind: 'cut', when: 'in the body' }, 'once')
    await second?.get('/')
    await visitor().get('/callback?code=code-CANARY-unknown&state=abc_idp')
    provider.answer('userinfo', { kind: 'json', body: { success: false, message: 'CANARY 86 13811111111' } }, 'once')
    await signIn(visitor(), provider)
    await menshen.kill('SIGKILL')

    const log = menshen.output.join('\n')
    const left = everythingIn(folder)
      .filter(path => statSync(path).isFile())
      .map(path => readFileSync(path, 'latin1'))
    assert.ok(secrets.size >= 3 && log.includes('sign_in'))
    assert.ok(
      left.some(text => text.includes(keys.at(-1) ?? '?')),
      'the record of the one who stayed is there',
    )
    assert.ok(provider.callsTo('refresh').length >= 3)
    for (const [place, text] of [['the log', log], ...left.map(text => ['the files', text])] as [string, string][]) {
      assert.ok(!text.includes('CANARY'), `a secret of the provider is in ${place}`)
      for (const secret of secrets) assert.ok(!text.includes(secret), `the value of a cookie is in ${place}`)
      const names = ['研发部', '张三'].flatMap(name => [name, Buffer.from(name).toString('latin1')])
      for (const person of ['13811111111', 'zhangsan@example.com', ...names])
        assert.ok(!text.includes(person), `${person} is in ${place}`)
    }
  })
})

/**
 * A provider, and a Menshen that can be started on one folder, behind one address. What is left there is opened again in the process of
 * the test.
 */
async function prepare(t: TestContext, more: Environment = {}, given?: string) {
  const folder = given ?? join(tempFolder(t), 'data')
  const BASE_URL = `http://localhost:${await freePort()}`
  const env = { STORE: `sqlite:${folder}/menshen.db`, BASE_URL, ...more }
  const { provider, start } = await setUpInstances(t, env)
  const { port: PORT } = new URL(BASE_URL)
  const reopen = () => openGateway(t, { ...provider.settings, ...env, PORT }, { hasRunningClock: true })
  return { folder, provider, start, reopen, visitor: () => createClient(BASE_URL) }
}

async function usernameOf(user: Client): Promise<string> {
  const answer = await user.get('/_menshen/me')
  assert.equal(answer.status, 200, answer.text)
  return answer.json<{ userInfo: { username: string } }>().userInfo.username
}

async function endsSoon(menshen: Instance, deadlineMs = FEW_SECONDS_MS): Promise<void> {
  const deadline = setTimeout(() => menshen.kill('SIGKILL'), deadlineMs)
  const exit = await menshen.kill('SIGTERM').finally(() => clearTimeout(deadline))
  assert.deepEqual(exit, { code: 0, signal: null }, menshen.output.join('\n'))
}

/** Resolves when it has taken notice of a signal: nobody new gets in. */
async function refusesConnections({ url }: Instance): Promise<void> {
  const client = createClient(url)
  while (
    await client.get('/_menshen/health').then(
      () => true,
      () => false,
    )
  );
}

async function visitAndKeep(agent: Agent, url: string): Promise<void> {
  const [response] = await once(get(url, { agent }), 'response')
  response.resume()
  await once(response, 'end')
}

async function connectTo(t: TestContext, { url }: Instance): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

function everythingIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => join(folder, name))
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}
