// `menshen doctor --sign-in`: whoever opens the printed address and signs in sees in the terminal what came and what was made
// of it; nobody is signed in by it, and nobody else's sign-in is shown.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Client, createClient, type Response, signIn } from '../kit/client.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { freePort } from '../kit/free-port.ts'
import type { Environment } from '../kit/instance.ts'
import { startStrictOidcServer } from '../kit/oidc/strict-oidc-server.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))
const USER = { username: 'lisi', nickname: 'CANARY-nickname', phone_number: 'CANARY-phone' }

const commands = createCommandRunner()
const ADDRESS = /http:\S+\?ticket=[\w-]{43}/

/** The command, with the address that it has printed. */
async function startDoctor(env: Environment, cwd: string, ...args: string[]) {
  const address = Promise.withResolvers<string>()
  const ended = commands.run(env, { cwd, args: ['doctor', '--sign-in', ...args] }, output => {
    const [found] = ADDRESS.exec(output) ?? []
    if (found) address.resolve(found)
  })
  ended.then(({ output }) => address.reject(new Error(`it ended: ${output}`)), address.reject)
  return { address: await address.promise, ended }
}

/** In a process of its own, that can be asked to end. */
async function spawnDoctor(t: TestContext, env: Environment, cwd: string) {
  const { PATH } = process.env
  const child = spawn(process.execPath, [MAIN, 'doctor', '--sign-in'], { cwd, env: { PATH, ...env } })
  t.after(() => child.kill('SIGKILL'))
  const address = Promise.withResolvers<string>()
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', text => {
      printed += text
      const [found] = ADDRESS.exec(printed) ?? []
      if (found) address.resolve(found)
    })
  const ended = once(child, 'close').then(([code]) => {
    address.reject(new Error(`it ended: ${printed}`))
    return { code }
  })
  return { address: await address.promise, ended, child, printed: () => printed }
}

/** Through the provider and back, as a browser goes. */
async function walk(client: Client, address: string): Promise<Response> {
  const { pathname, search } = new URL(address)
  const start = await client.get(pathname + search)
  assert.equal(start.status, 302, start.text)
  return client.follow(await client.follow(start))
}

async function scene(t: TestContext, env: Environment = {}) {
  const provider = await openScriptedProvider(t, { user: USER })
  const port = String(await freePort())
  const BASE_URL = `http://localhost:${port}`
  const cwd = tempFolder(t)
  return {
    provider,
    cwd,
    env: { ...provider.settings, BASE_URL, PORT: port, STORE: `sqlite:${join(cwd, 'data', 'menshen.db')}`, ...env },
    BASE_URL,
  }
}

/** A Menshen that the command, in another process, finds running. */
async function runs(t: TestContext, env: Environment): Promise<void> {
  await openGateway(t, env, { now: Date.now() })
}

suite('menshen doctor --sign-in', () => {
  test('menshen doctor --sign-in listens itself if Menshen is not running, and prints names and types but no values', async t => {
    const { cwd, env, BASE_URL } = await scene(t)
    const config = "export default { roles: [{ role: 'auditor', username: ['lisi'] }] }\n"
    writeFileSync(join(cwd, 'menshen.config.mjs'), config)
    const { address, ended } = await startDoctor(env, cwd)
    const visitor = createClient(BASE_URL)
    assert.equal((await visitor.get('/')).status, 503)
    const page = await walk(visitor, address)
    assert.match(page.text, /测试登录已完成/)
    assert.ok(!visitor.cookies.has('menshen_session'))
    const { code, out, err } = await ended
    assert.equal(code, 0, err)
    assert.match(out, /userinfo +username: string/)
    assert.match(out, /token +access_token: string/)
    assert.match(out, /username +from username in userinfo\n/)
    assert.match(out, /ou_id +(from|empty)/)
    assert.match(out, /Role: auditor\. Groups: none/)
    assert.doesNotMatch(out + err, /CANARY/)
  })

  test('menshen doctor --sign-in --show prints the values, and with --json only one JSON document on stdout', async t => {
    const { cwd, env, BASE_URL } = await scene(t)
    const { address, ended } = await startDoctor(env, cwd, '--show', '--json')
    await walk(createClient(BASE_URL), address)
    const { code, out } = await ended
    const { checks, signIn: mapping } = JSON.parse(out)
    assert.equal(code, 0)
    assert.deepEqual([checks[0].name, checks[0].ok], ['sign-in', true])
    assert.equal(mapping.role, 'common')
    const nickname = mapping.fields.find(({ field }: { field: string }) => field === 'nickname')
    assert.deepEqual(nickname, { field: 'nickname', source: 'userinfo', place: 'nickname', value: '"CANARY-nickname"' })
  })

  test('a running Menshen runs the test sign-in through the store, only for the browser that opened the address', async t => {
    const { cwd, env, BASE_URL, provider } = await scene(t)
    await runs(t, env)
    const { address, ended, child } = await spawnDoctor(t, env, cwd)
    // Somebody else signs in meanwhile.
    const other = createClient(BASE_URL)
    assert.equal((await signIn(other, provider, { username: 'wangwu' })).headers.location, '/')
    assert.equal(child.exitCode, null)
    const visitor = createClient(BASE_URL)
    const { pathname, search } = new URL(address)
    const start = await visitor.get(pathname + search)
    // The address works once, and its answer counts in that browser only.
    assert.equal((await createClient(BASE_URL).get(pathname + search)).status, 404)
    const back = await visitor.follow(start)
    const { pathname: path, search: query } = new URL(back.headers.location ?? '')
    const thief = await createClient(BASE_URL).get(path + query)
    assert.doesNotMatch(thief.text, /测试登录已完成/)
    assert.equal(child.exitCode, null)
    child.kill('SIGINT')
    assert.equal((await ended).code, 1)
    // Once more, to the end.
    const again = await startDoctor(env, cwd)
    const page = await walk(visitor, again.address)
    assert.match(page.text, /测试登录已完成/)
    assert.ok(!visitor.cookies.has('menshen_session'))
    const { code, out } = await again.ended
    assert.equal(code, 0)
    assert.match(out, /This user would be signed in/)
    assert.doesNotMatch(out, /CANARY|wangwu/)
    assert.equal((await other.get('/_menshen/me')).status, 200)
  })

  test('menshen doctor --sign-in reports a provider error, a refused code and a missing username', async t => {
    const { cwd, env, BASE_URL, provider } = await scene(t)
    await runs(t, env)
    provider.answer(
      'userinfo',
      { kind: 'json', body: { success: true, data: { sub: 'CANARY-1', name: 'CANARY' } } },
      'once',
    )
    const unnamed = await startDoctor(env, cwd)
    await walk(createClient(BASE_URL), unnamed.address)
    const first = await unnamed.ended
    assert.equal(first.code, 1)
    assert.match(first.out, /username +empty\n[\s\S]*Sign-in would fail: no username/)
    provider.answer('token', { kind: 'json', status: 400, body: { error: 'invalid_grant' } }, 'once')
    const refused = await startDoctor(env, cwd)
    await walk(createClient(BASE_URL), refused.address)
    assert.match((await refused.ended).out, /Sign-in would fail: the provider returned 400 with invalid_grant/)
    const denied = await startDoctor(env, cwd)
    const visitor = createClient(BASE_URL)
    const { pathname, search } = new URL(denied.address)
    const start = await visitor.get(pathname + search)
    const state = new URL(start.headers.location ?? '').searchParams.get('state')
    await visitor.get(`/callback?error=invalid_scope&state=${state}`)
    const { out } = await denied.ended
    assert.match(out, /the provider returned the error invalid_scope/)
    assert.doesNotMatch(first.out + out, /CANARY/)
  })

  test('menshen doctor --sign-in prints a remedy for each kind of failure', async t => {
    const { cwd, env, BASE_URL, provider } = await scene(t)
    await runs(t, env)
    const end = async (client: Client, address: string, error?: string) => {
      const { pathname, search } = new URL(address)
      const start = await client.get(pathname + search)
      const state = new URL(start.headers.location ?? '').searchParams.get('state')
      if (error) return client.get(`/callback?error=${error}&error_description=CANARY&state=${state}`)
      return client.follow(await client.follow(start))
    }
    const refusal = (error: string) => ({ kind: 'json', status: 400, body: { error } }) as const
    const cases: [prepare: () => unknown, says: RegExp][] = [
      [() => 'access_denied', /→ The provider denied this user/],
      [() => 'invalid_scope', /→ Check SCOPE/],
      [() => 'invalid_request', /might require PKCE, which is off\.\n→ Set PKCE=S256/],
      [() => provider.answer('token', refusal('invalid_client'), 'once'), /→ Check CLIENT_ID and CLIENT_SECRET/],
      [
        () => provider.answer('token', refusal('invalid_grant'), 'once'),
        new RegExp(`→ The provider rejects the code .* ${BASE_URL}/callback is registered`),
      ],
      [
        () => provider.answer('userinfo', { kind: 'json', body: { success: true, data: {} } }, 'once'),
        /→ docs\/providers/,
      ],
    ]
    for (const [prepare, says] of cases) {
      const { address, ended } = await startDoctor(env, cwd)
      const error = prepare()
      await end(createClient(BASE_URL), address, typeof error === 'string' ? error : undefined)
      const { code, out } = await ended
      assert.equal(code, 1)
      assert.match(out, says)
      assert.doesNotMatch(out, /CANARY/)
    }
  })

  test('menshen doctor --sign-in reports a browser that did not return and names the redirect address to register', async t => {
    const { cwd, env, BASE_URL } = await scene(t)
    await runs(t, env)
    const { address, ended, child, printed } = await spawnDoctor(t, env, cwd)
    const { pathname, search } = new URL(address)
    assert.equal((await createClient(BASE_URL).get(pathname + search)).status, 302)
    await until(() => printed().includes('is at the provider now'))
    child.kill('SIGINT')
    assert.equal((await ended).code, 1)
    assert.match(printed(), /✖ sign-in: the browser went to the provider and did not come back/)
    assert.match(printed(), new RegExp(`→ Register exactly ${BASE_URL}/callback`))
  })

  test('menshen doctor --sign-in warns about a missing refresh token and says how long sessions last', async t => {
    const { cwd, env, BASE_URL, provider } = await scene(t)
    provider.behaviour.refreshTokens = false
    provider.behaviour.expiresIn = 300
    const { address, ended } = await startDoctor(env, cwd)
    await walk(createClient(BASE_URL), address)
    const { code, out } = await ended
    assert.equal(code, 0)
    assert.match(out, /^! no refresh token: sessions expire with the access token after 5 minutes → /m)
    const op = await startStrictOidcServer(t)
    op.bend.token = ({ refresh_token: _, ...right }) => right
    op.client = { ...op.client, baseUrl: BASE_URL }
    const oidc = { ...env, ...op.settings }
    const second = await startDoctor(oidc, cwd)
    await walk(createClient(BASE_URL), second.address)
    assert.match((await second.ended).out, /→ Add offline_access: SCOPE="openid profile email offline_access"/)
  })

  test('menshen doctor --sign-in prints failures and warnings in the language given with --language', async t => {
    const { cwd, env, BASE_URL, provider } = await scene(t)
    await runs(t, env)
    provider.answer('token', { kind: 'json', status: 400, body: { error: 'invalid_grant' } }, 'once')
    const refused = await startDoctor(env, cwd, '--language', 'zh-CN')
    await walk(createClient(BASE_URL), refused.address)
    const { out } = await refused.ended
    assert.match(out, /^无法登录：身份认证平台返回了 400，错误码为 invalid_grant。\n→ 平台拒绝了刚刚签发的授权码/m)
    provider.behaviour.refreshTokens = false
    const short = await startDoctor(env, cwd, '--language', 'zh-CN', '--json')
    await walk(createClient(BASE_URL), short.address)
    const { checks, signIn: mapping } = JSON.parse((await short.ended).out)
    assert.match(mapping.notes[0].seen, /^没有刷新令牌，无法续期/)
    assert.deepEqual(
      checks.map(({ name, level }: { name: string; level: string }) => [name, level]),
      [
        ['sign-in', 'good'],
        ['sign-in refresh', 'warning'],
      ],
    )
    assert.equal(checks[1].seen, mapping.notes[0].seen)
  })

  test('menshen doctor --sign-in creates neither the store nor AUDIT_FILE', async t => {
    const { cwd, env, BASE_URL, provider } = await scene(t)
    const AUDIT_FILE = join(cwd, 'audit.log')
    const { address, ended } = await startDoctor({ ...env, AUDIT_FILE }, cwd)
    provider.answer('token', { kind: 'json', status: 400, body: { error: 'invalid_grant' } }, 'once')
    await walk(createClient(BASE_URL), address)
    await ended
    assert.deepEqual(readdirSync(cwd), [])
  })

  test('menshen doctor --sign-in fails while Menshen runs with STORE=memory:, and asks the operator to stop it', async t => {
    const { cwd, env } = await scene(t, { STORE: 'memory:' })
    await runs(t, env)
    await assert.rejects(startDoctor(env, cwd, '--json'), /memory:.*Stop it and run the command again/)
  })
})
