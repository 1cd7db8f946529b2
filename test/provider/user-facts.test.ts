// Who the user is, out of what several answers say.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MenshenError } from '../../src/errors.ts'
import { planNamedProvider } from '../../src/provider/make-plan.ts'
import { type Said, userFacts } from '../../src/provider/user-facts.ts'
import { checkConfig } from '../../src/settings/config/config-file.ts'
import type { ProviderConfig } from '../../src/settings/config/provider-config.ts'

const facts = (said: Said, config: ProviderConfig = { preset: 'oidc' }) =>
  userFacts(said, planNamedProvider('p', config))

function messageOf(attempt: () => unknown): string {
  try {
    attempt()
  } catch (error) {
    assert.ok(error instanceof MenshenError)
    assert.equal(error.code, 'provider_answer')
    return error.message
  }
  return ''
}

test('a missing sub or username names the field, the places, and what came, as names and types', () => {
  const config = { preset: 'oauth2', fields: { sub: ['open_id', ['tid', 'oid']], username: ['login'] } }
  const said = { userinfo: { nick: '李四', mobile: '13811111111', dept: { id: 5 } }, token: { uid: 7, tid: '' } }
  assert.equal(
    messageOf(() => facts(said, config)),
    'no sub (looked for in open_id, tid with oid); what came is { nick: string, mobile: string, dept: { id: number } } and { uid: number, tid: empty text }',
  )
  assert.match(
    messageOf(() => facts({ userinfo: { open_id: 'o' } }, config)),
    /^no username \(looked for in login\)/,
  )
  assert.equal(
    messageOf(() => facts({}, { preset: 'oauth2', fields: { sub: [] } })),
    'no sub (looked for in nowhere); what came is nothing',
  )
})

test('a field of the operator becomes part of the user info, and is empty where nothing is said', () => {
  const config = { preset: 'oidc', fields: { employee_no: ['work.no'], floor: ['work.floor'] } }
  const { userInfo } = facts({ userinfo: { sub: 's', work: { no: 12 } } }, config)
  assert.deepEqual({ ...userInfo }, { ...facts({ userinfo: { sub: 's' } }).userInfo, employee_no: '12', floor: '' })
})

test('a field of the operator takes no name that means something else', () => {
  for (const [field, expected] of [
    ['role', /: provider\.fields\.role: this name means something else/],
    ['iss', /: provider\.fields\.iss: this name means something else/],
    ['1st', /: provider\.fields\.1st: expected a field of letters/],
    ['a b', /: provider\.fields\.a b: expected a field of letters/],
  ] as const) {
    const config = JSON.parse(`{ "provider": { "fields": { "${field}": ["x"] } } }`)
    assert.throws(() => checkConfig(config, 'x', 'x'), expected)
  }
})

test('only sub and username are demanded, the other fields become empty', () => {
  const { userInfo, groups } = facts({ userinfo: { sub: 's', email: null, nickname: 7, phone_number: {} } })
  assert.deepEqual(userInfo, {
    sub: 's',
    username: 's',
    nickname: '7',
    email: '',
    phone_number: '',
    ou_id: '',
    ou_name: '',
  })
  assert.deepEqual(groups, [])
})

test('oidc takes the username from preferred_username, else email, else sub, whichever answer has it', () => {
  const userinfo = { sub: 's', name: 'N' }
  assert.equal(facts({ userinfo, id_token: { sub: 's', preferred_username: 'u', email: 'e' } }).userInfo.username, 'u')
  assert.equal(facts({ userinfo, id_token: { sub: 's', email: 'e' } }).userInfo.username, 'e')
  assert.equal(facts({ userinfo, id_token: { sub: 's' } }).userInfo.username, 's')
})

test('claims are all that was said, the first source first, and only of sources that count', () => {
  const said = {
    userinfo: { sub: 's', a: 1 },
    id_token: { sub: 's', a: 2, b: 2 },
    token: { c: 3 },
    access_token: { d: 4 },
  }
  assert.deepEqual(facts(said).claims, { sub: 's', a: 1, b: 2 })
})

test('require lets in whoever has one of the values, and nobody else', () => {
  const config = { preset: 'oidc', require: { hd: ['example.com'], groups: ['staff', 'guests'] } }
  const user = (more: object) => ({ userinfo: { sub: 's', ...more } })
  assert.equal(facts(user({ hd: 'example.com', groups: ['x', 'guests'] }), config).userInfo.sub, 's')
  for (const more of [{}, { hd: 'example.com' }, { groups: ['staff'] }, { hd: 'example.com.evil', groups: ['staff'] }])
    assert.match(
      messageOf(() => facts(user(more), config)),
      /require/,
    )
})

test('the groups of idaas are a list, and none where it sends none or something else', () => {
  const user = { sub: 's', username: 'u' }
  const groupsOf = (groups: unknown) => facts({ userinfo: { ...user, groups } }, { preset: 'idaas' }).groups
  assert.deepEqual(groupsOf(['a', 'b']), ['a', 'b'])
  assert.deepEqual(groupsOf(undefined), [])
  assert.deepEqual(groupsOf(null), [])
  assert.deepEqual(groupsOf([{ name: 'a' }]), [])
})

test('the fields of idaas are text or an error', () => {
  const user = { sub: 's', username: 'u' }
  const config = { preset: 'idaas' }
  assert.equal(facts({ userinfo: { ...user, email: null } }, config).userInfo.email, '')
  for (const odd of [{ email: 7 }, { sub: 7 }, { nickname: ['a'] }, { ou_id: {} }, { username: true }])
    assert.match(
      messageOf(() => facts({ userinfo: { ...user, ...odd } }, config)),
      /^unusable in the answer/,
    )
})
