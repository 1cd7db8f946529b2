// S14-S16: answers made to burst or to poison whoever reads them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Answer } from '../kit/answers.ts'
import { signIn } from '../kit/client.ts'
import { type Scene, setUp } from '../kit/set-up.ts'

const BOMB_BYTES = 100 * 1024 * 1024
const MEMORY_LIMIT = 64 * 1024 * 1024
const LEVELS = 100_000
const TOKENS = { access_token: 'at', token_type: 'bearer', expires_in: 7200 }
const JSON_TYPE = { 'content-type': 'application/json' }

const bomb = gzipSync(Buffer.alloc(BOMB_BYTES, ' '), { level: 9 })
const packed = (times: number) => {
  let body: Buffer = bomb
  for (let i = 1; i < times; i++) body = gzipSync(body)
  return { body, coding: Array(times).fill('gzip').join(', ') }
}

const ENDPOINTS = [
  ['token', 'token_error'],
  ['userinfo', 'userinfo_error'],
] as const

async function assertFails(scene: Scene, endpoint: 'token' | 'userinfo', answer: Answer, error: string, what = '') {
  scene.provider.answer(endpoint, answer, 'once')
  const visitor = scene.visitor()
  const { headers } = await signIn(visitor, scene.provider)
  assert.equal(headers.location, `/login?error=${error}`, what)
  assert.ok(!visitor.cookies.has('menshen_session'))
  assert.equal((await scene.visitor().get('/_menshen/health')).status, 200)
}

for (const times of [1, 3]) {
  test(`a 100 MB provider response behind ${times} × gzip fails the sign-in and takes less than 64 MB of memory`, async t => {
    const scene = await setUp(t)
    const { body, coding } = packed(times)
    const headers = { ...JSON_TYPE, 'content-encoding': coding }
    const before = process.memoryUsage().rss
    let highest = before
    const watch = setInterval(() => (highest = Math.max(highest, process.memoryUsage().rss)), 5)
    t.after(() => clearInterval(watch))
    for (const [endpoint, error] of ENDPOINTS)
      for (let n = 0; n < 5; n++) await assertFails(scene, endpoint, { kind: 'bytes', body, headers }, error)
    highest = Math.max(highest, process.memoryUsage().rss)
    assert.ok(highest - before < MEMORY_LIMIT, `${Math.round((highest - before) / 1024 / 1024)} MB more`)
    assert.equal((await signIn(scene.visitor(), scene.provider)).headers.location, '/')
  })
}

test('a provider response with a wrong content-encoding or truncated compressed data fails the sign-in', async t => {
  const scene = await setUp(t)
  const right = gzipSync(JSON.stringify(TOKENS))
  for (const [coding, body] of [
    ['gzip', JSON.stringify(TOKENS)],
    ['gzip', right.subarray(0, right.length - 12)],
    ['br', right],
    ['deflate', right],
    [Array(200).fill('gzip').join(','), right],
  ] as const) {
    const headers = { ...JSON_TYPE, 'content-encoding': coding }
    for (const [endpoint, error] of ENDPOINTS)
      await assertFails(scene, endpoint, { kind: 'bytes', body, headers }, error)
  }
})

const nested = (open: string, middle: string, close: string) => open.repeat(LEVELS) + middle + close.repeat(LEVELS)
const DEEP: Record<string, (inner: string) => string> = {
  'the whole': deep => deep,
  'a field that nobody reads': deep => `{"extra":${deep},"access_token":"","token_type":"bearer","expires_in":1}`,
  'the token': deep => `{"access_token":${deep},"token_type":"bearer","expires_in":7200}`,
  'the error': deep => `{"error":${deep}}`,
  'the data': deep => `{"success":true,"data":${deep}}`,
  'the user name': deep => `{"success":true,"data":{"sub":"s","username":${deep}}}`,
}

test(`JSON nested ${LEVELS} levels deep anywhere in a provider response fails the sign-in without a crash`, async t => {
  const scene = await setUp(t)
  for (const [place, at] of Object.entries(DEEP))
    for (const deep of [nested('[', '', ']'), nested('{"a":', '1', '}'), '['.repeat(LEVELS)])
      for (const [endpoint, error] of ENDPOINTS)
        await assertFails(scene, endpoint, { kind: 'bytes', body: at(deep), headers: JSON_TYPE }, error, place)
})

const POISON = '"__proto__":{"username":"admin","sub":"evil","userRole":"developer","expires_in":1,"polluted":"yes"}'
const POISONS = [POISON, POISON.replace('__proto__', 'constructor'), `"constructor":{"prototype":{${POISON}}}`]

function assertClean(): void {
  const plain = {} as Record<string, unknown>
  for (const name of ['polluted', 'username', 'userRole', 'sub']) assert.equal(plain[name], undefined)
  assert.equal({}.constructor, Object)
}

test('__proto__ and constructor in provider responses do not supply missing fields', async t => {
  const scene = await setUp(t)
  for (const poison of POISONS) {
    const bytes = (body: string): Answer => ({ kind: 'bytes', body, headers: JSON_TYPE })
    await assertFails(scene, 'token', bytes(`{${poison},"access_token":"a","token_type":"bearer"}`), 'token_error')
    await assertFails(scene, 'userinfo', bytes(`{"success":true,"data":{${poison}}}`), 'userinfo_error')
    await assertFails(scene, 'userinfo', bytes(`{"success":true,${poison}}`), 'userinfo_error')
    assertClean()
  }
})

test('__proto__ and constructor in a valid provider response change neither the user, the role nor the expiry', async t => {
  const scene = await setUp(t)
  for (const poison of POISONS) {
    const user = `{${poison},"sub":"sub-lisi","username":"lisi","userRole":"developer"}`
    scene.provider.answer('userinfo', { kind: 'bytes', body: `{"success":true,"data":${user},${poison}}` }, 'once')
    const body = `{${poison},"access_token":"at","token_type":"bearer","expires_in":7200}`
    scene.provider.answer('token', { kind: 'bytes', body, headers: JSON_TYPE }, 'once')
    const visitor = scene.visitor()
    assert.equal((await signIn(visitor, scene.provider)).headers.location, '/')
    const me = (await visitor.get('/_menshen/me')).json<{ userInfo: object; userRole: string; expiresAt: number }>()
    assert.equal(me.userRole, 'common')
    assert.equal(me.expiresAt, scene.now() + 7200_000)
    const empty = { ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '' }
    assert.deepEqual(me.userInfo, { sub: 'sub-lisi', username: 'lisi', ...empty })
    assert.equal((await visitor.get('/_menshen/console')).status, 403)
    assertClean()
  }
})
