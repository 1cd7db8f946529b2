// S02, S22: nobody guesses a state or a ticket.
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, test } from 'node:test'
import { DEFAULT_ROLES } from '../../src/access/roles.ts'
import { Secret } from '../../src/config/secret.ts'
import { readSettings } from '../../src/index.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { createSessions } from '../../src/session/sessions.ts'
import { openStore } from '../../src/stores/open.ts'
import { signIn } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { bitBias, byteBias } from './random.ts'

const AT_ONCE = 20
/** Chance alone goes beyond this once in about half a million runs. */
const FAR = 5

const agent = new Agent({ keepAlive: true })
after(() => agent.destroy())

async function collect<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = []
  while (made.length < count)
    made.push(...(await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - made.length) }, make))))
  return made
}

function assertRandom(texts: readonly string[]): void {
  assert.equal(new Set(texts).size, texts.length, 'one came twice')
  const values = texts.map(text => Buffer.from(text, 'base64url'))
  for (const value of values) assert.equal(value.length, 32, '256 bits')
  assert.ok(bitBias(values) < FAR, `ones and zeros: ${bitBias(values)}`)
  assert.ok(byteBias(values) < FAR, `bytes: ${byteBias(values)}`)
  // A counter or a clock would show in the same place of each.
  for (let place = 0; place < 32; place++) {
    const column = [Buffer.from(values.map(value => value[place] ?? 0))]
    assert.ok(bitBias(column) < FAR + 1, `byte ${place}: ${bitBias(column)}`)
  }
}

const withoutSuffix = (state: string | null) => {
  assert.match(state ?? '', /^[\w-]{43}_idp$/)
  return (state ?? '').slice(0, -'_idp'.length)
}

test('2,000 states of POST /login are distinct, have 256 bits each and look random', async t => {
  const scene = await setUp(t)
  const states = await collect(2000, async () => {
    const { status, headers } = await scene.visitor().post('/login', '', { agent })
    assert.equal(status, 303)
    return withoutSuffix(new URL(String(headers.location)).searchParams.get('state'))
  })
  assertRandom(states)
})

test('1,000 states, attempt secrets and code challenges for the login script are distinct and look random', async t => {
  const scene = await setUp(t, { env: { STATE_CHECK: 'bound', PKCE: 'S256' } })
  const secrets: string[] = []
  const challenges: string[] = []
  const states = await collect(1000, async () => {
    const visitor = scene.visitor()
    const answer = await visitor.post('/login', '', { agent, headers: { accept: 'application/json' } })
    const { state, location } = answer.json<{ state: string; location: string }>()
    const query = new URL(location).searchParams
    assert.equal(query.get('state'), state)
    secrets.push(visitor.cookies.get('menshen_attempt') ?? '')
    challenges.push(query.get('code_challenge') ?? '')
    return withoutSuffix(state)
  })
  for (const texts of [states, secrets, challenges]) assertRandom(texts)
  assert.equal(new Set([...states, ...secrets, ...challenges]).size, 3000, 'none is used for two things')
})

test('5,000 tickets are 43 characters of base64url, distinct, and look random', async t => {
  const scene = await setUp(t)
  const fromCallbacks = await collect(200, async () => {
    const visitor = scene.visitor()
    await signIn(visitor, scene.provider)
    return visitor.cookies.get('menshen_session') ?? ''
  })
  // The rest from where the callback gets them: two calls to a provider for each would only take time.
  const store = await openStore('memory:', Date.now, () => {})
  t.after(() => store.close())
  const nobody = () => Promise.reject(new Error('nothing is due'))
  const providers = { get: () => ({ plan: { refreshLead: 'fixed' as const }, refresh: nobody, signOut: nobody }) }
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret('secret') })
  const keyring = createDataKeyring({ store, keys, now: Date.now, report() {} })
  const sessions = createSessions({
    store,
    providers,
    roles: DEFAULT_ROLES,
    keyring,
    settings: readSettings({}),
    now: Date.now,
    report() {},
  })
  const empty = { ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '' }
  const user = { sub: 'sub-zhangsan', username: 'zhangsan', ...empty }
  const others = await collect(4800, () =>
    sessions.open({
      tokens: { accessToken: 'at', expiresIn: 7200, receivedAt: Date.now() },
      user: { userInfo: user, groups: [], claims: {} },
      provider: undefined,
    }),
  )
  const tickets = [...fromCallbacks, ...others.map(({ ticket }) => ticket)]
  for (const ticket of tickets) assert.match(ticket, /^[\w-]{43}$/)
  assertRandom(tickets)
})
