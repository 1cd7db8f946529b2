// Whatever a user is called, the application can still read the request.
import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeJwt } from 'jose'
import { setUp } from '../kit/set-up.ts'

const NAMES = ['user', 'email', 'preferred-username', 'role', 'groups'].map(name => `x-forwarded-${name}`)
const LONG = '龘'.repeat(2000)

test('a nickname of 2,000 Chinese characters is cut between two characters, and the log names the header', async t => {
  const scene = await setUp(t)
  const user = await scene.user('zhangsan', { nickname: LONG })
  assert.equal((await user.get('/')).status, 200)
  const { headers } = scene.upstream.last()
  const nickname = String(headers['x-forwarded-preferred-username'])
  assert.equal(nickname.length, 2043)
  assert.equal(decodeURIComponent(nickname), '龘'.repeat(227))
  assert.equal(headers['x-forwarded-user'], 'zhangsan')
  const cuts = scene.lines.filter(({ event }) => event === 'identity_cut')
  assert.deepEqual(
    cuts.map(({ level, fields }) => {
      const { user, header, claim } = fields as { user?: unknown; header?: unknown; claim?: unknown }
      return [level, user, header, claim]
    }),
    [
      ['warn', 'zhangsan', 'x-menshen-assertion', 'nickname'],
      ['warn', 'zhangsan', 'x-forwarded-preferred-username', undefined],
    ],
  )
  const claims = decodeJwt(String(headers['x-menshen-assertion']))
  assert.equal(claims.username, 'zhangsan')
  assert.ok(!('nickname' in claims), 'half of a name is not signed')
})

test('identity headers fit into the request even if all fields are too long, in any kind of character', async t => {
  const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  for (const character of ['龘', '😀', 'a', '\u0001', '%', '\ud800', '"']) {
    const long = character.repeat(2500)
    const everything = { email: long, nickname: long, phone_number: long, ou_id: long, ou_name: long, sub: long }
    const user = await scene.user(long, everything)
    const asked = await user.get('/_menshen/check', { headers: { 'x-original-uri': '/' } })
    const page = await user.get('/')
    for (const { status } of [page, asked]) assert.equal(status, 200, JSON.stringify(character))
    for (const { headers } of [scene.upstream.last(), asked]) {
      for (const name of NAMES) {
        const value = String(headers[name])
        assert.ok(value.length <= 2048, name)
        const isOwn = name === 'x-forwarded-role' || name === 'x-forwarded-groups'
        assert.ok(long.toWellFormed().startsWith(decodeURIComponent(value)) || isOwn, name)
      }
      assert.ok(String(headers['x-menshen-assertion']).length <= 6144)
      const { username, sub, role } = decodeJwt(String(headers['x-menshen-assertion']))
      assert.deepEqual({ username, sub, role }, { username: undefined, sub: undefined, role: 'common' })
    }
  }
})

test('identity headers that just fit are not cut', async t => {
  const scene = await setUp(t)
  const user = await scene.user('a'.repeat(2048), { email: '', nickname: `${'龘'.repeat(227)}12345` })
  await user.get('/')
  const { headers } = scene.upstream.last()
  assert.equal(headers['x-forwarded-user'], 'a'.repeat(2048))
  assert.equal(String(headers['x-forwarded-preferred-username']).length, 2048)
  assert.ok(!scene.lines.some(({ event, fields }) => event === 'identity_cut' && !('claim' in fields)))
})
