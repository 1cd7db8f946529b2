// Who the user is, out of what several answers say.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkConfig } from '../../src/config/file.ts'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { readSettings } from '../../src/config/read.ts'
import { MenshenError } from '../../src/errors.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { planProviders } from '../../src/provider/providers.ts'
import { mapUser, type ProviderClaims } from '../../src/provider/user.ts'

const facts = (said: ProviderClaims, config: ProviderConfig = { preset: 'oidc' }) =>
  mapUser(said, planNamedProvider('p', config))

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

test('the error for a missing sub or username names the field, where it was looked for, and the names and types of the response', () => {
  const config = { preset: 'oauth2', fields: { sub: ['open_id', ['tid', 'oid']], username: ['login'] } }
  const said = { userinfo: { nick: '李四', mobile: '13811111111', dept: { id: 5 } }, token: { uid: 7, tid: '' } }
  assert.equal(
    messageOf(() => facts(said, config)),
    'no sub (looked for in open_id, tid with oid); received: { nick: string, mobile: string, dept: { id: number } } and { uid: number, tid: empty text }',
  )
  assert.match(
    messageOf(() => facts({ userinfo: { open_id: 'o' } }, config)),
    /^no username \(looked for in login\)/,
  )
  assert.equal(
    messageOf(() => facts({}, { preset: 'oauth2', fields: { sub: [] } })),
    'no sub (looked for in nowhere); received: nothing',
  )
})

test('a configured field becomes part of the user info, and is empty if the provider sends no value', () => {
  const config = { preset: 'oidc', fields: { employee_no: ['work.no'], floor: ['work.floor'] } }
  const { userInfo } = facts({ userinfo: { sub: 's', work: { no: 12 } } }, config)
  assert.deepEqual({ ...userInfo }, { ...facts({ userinfo: { sub: 's' } }).userInfo, employee_no: '12', floor: '' })
})

test('a configured field with a reserved or invalid name is refused', () => {
  for (const [field, expected] of [
    ['role', /: provider\.fields\.role: this name has another meaning/],
    ['iss', /: provider\.fields\.iss: this name has another meaning/],
    ['1st', /: provider\.fields\.1st: expected a field of letters/],
    ['a b', /: provider\.fields\.a b: expected a field of letters/],
  ] as const) {
    const config = JSON.parse(`{ "provider": { "fields": { "${field}": ["x"] } } }`)
    assert.throws(() => checkConfig(config, 'x', 'x'), expected)
  }
})

test('only sub and username are required, and other missing fields are empty', () => {
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

test('the oidc preset takes the username from preferred_username, then email, then sub, of any response', () => {
  const userinfo = { sub: 's', name: 'N' }
  assert.equal(facts({ userinfo, id_token: { sub: 's', preferred_username: 'u', email: 'e' } }).userInfo.username, 'u')
  assert.equal(facts({ userinfo, id_token: { sub: 's', email: 'e', email_verified: true } }).userInfo.username, 'e')
  assert.equal(facts({ userinfo, id_token: { sub: 's' } }).userInfo.username, 's')
})

test('claims merge the responses of userInfoFrom, and the first source wins', () => {
  const said = {
    userinfo: { sub: 's', a: 1 },
    id_token: { sub: 's', a: 2, b: 2 },
    token: { c: 3 },
    access_token: { d: 4 },
  }
  assert.deepEqual(facts(said).claims, { sub: 's', a: 1, b: 2 })
})

test('require admits only users who have one of the values of each claim', () => {
  const config = { preset: 'oidc', require: { hd: ['example.com'], groups: ['staff', 'guests'] } }
  const user = (more: object) => ({ userinfo: { sub: 's', ...more } })
  assert.equal(facts(user({ hd: 'example.com', groups: ['x', 'guests'] }), config).userInfo.sub, 's')
  for (const more of [{}, { hd: 'example.com' }, { groups: ['staff'] }, { hd: 'example.com.evil', groups: ['staff'] }])
    assert.match(
      messageOf(() => facts(user(more), config)),
      /require/,
    )
})

test('the idaas preset reads groups from a list, and has none for any other value', () => {
  const user = { sub: 's', username: 'u' }
  const groupsOf = (groups: unknown) => facts({ userinfo: { ...user, groups } }, { preset: 'idaas' }).groups
  assert.deepEqual(groupsOf(['a', 'b']), ['a', 'b'])
  assert.deepEqual(groupsOf(undefined), [])
  assert.deepEqual(groupsOf(null), [])
  assert.deepEqual(groupsOf([{ name: 'a' }]), [])
})

test('the idaas preset refuses a field that is not a string', () => {
  const user = { sub: 's', username: 'u' }
  const config = { preset: 'idaas' }
  assert.equal(facts({ userinfo: { ...user, email: null } }, config).userInfo.email, '')
  for (const odd of [{ email: 7 }, { sub: 7 }, { nickname: ['a'] }, { ou_id: {} }, { username: true }])
    assert.match(
      messageOf(() => facts({ userinfo: { ...user, ...odd } }, config)),
      /^invalid or missing in the response/,
    )
})

const MAIL = 'boss@corp.example'

test('an unverified e-mail address becomes neither username, e-mail address nor claim', () => {
  for (const preset of ['oidc', 'auth0', 'google', 'logto', 'authing', 'tencent-eiam', 'zitadel', 'okta', 'gitea'])
    for (const email_verified of [false, 'false', 'no', 0, 1, {}, []]) {
      const { userInfo, claims } = facts({ userinfo: { sub: 's-1', email: MAIL, email_verified } }, { preset })
      assert.equal(userInfo.username, 's-1', `${preset} ${JSON.stringify(email_verified)}`)
      assert.equal(userInfo.email, '', preset)
      assert.equal(claims.email, undefined, 'no role and no requirement sees it')
      assert.equal(claims.email_verified, email_verified)
    }
  const verified = facts({ userinfo: { sub: 's-1', email: MAIL, email_verified: true } })
  assert.deepEqual([verified.userInfo.username, verified.userInfo.email, verified.claims.email], [MAIL, MAIL, MAIL])
})

test('an e-mail address without email_verified is accepted only from presets that verify every address', () => {
  const emailOf = (preset: string, said: object) =>
    facts({ userinfo: { sub: 's-1', username: 'u', preferred_username: 'u', ...said } }, { preset }).userInfo.email
  for (const preset of ['oidc', 'auth0', 'google', 'logto', 'authing', 'keycloak', 'casdoor'])
    assert.equal(emailOf(preset, { email: MAIL }), '', preset)
  for (const preset of ['idaas', 'oauth2', 'tencent-eiam', 'aliyun-eiam']) {
    assert.equal(emailOf(preset, { email: MAIL }), MAIL, preset)
    assert.equal(emailOf(preset, { email: MAIL, email_verified: false }), '', preset)
  }
  const entra = (tenant: string, said: object) =>
    facts(
      { userinfo: { tid: 't', oid: 'o', preferred_username: MAIL, email: MAIL, ...said } },
      { preset: 'entra', vars: { tenant } },
    ).userInfo
  assert.equal(entra('6f1c', {}).email, MAIL, 'a directory of the organisation')
  for (const tenant of ['common', 'organizations', 'consumers']) {
    assert.equal(entra(tenant, {}).email, '', tenant)
    assert.equal(entra(tenant, {}).username, MAIL, 'its own name for the user stays')
    assert.equal(entra(tenant, { xms_edov: true }).email, MAIL, tenant)
  }
})

test('email_verified applies to the address in the same response, and one response that denies it suffices', () => {
  const username = (said: ProviderClaims) => facts(said).userInfo.username
  const id_token = { sub: 's', email: MAIL, email_verified: true }
  assert.equal(username({ userinfo: { sub: 's', email: MAIL }, id_token }), MAIL, 'gitea: only the id_token says it')
  assert.equal(username({ userinfo: { sub: 's', email: 'other@corp.example' }, id_token }), MAIL)
  assert.equal(username({ userinfo: { sub: 's', email: 'BOSS@corp.example', email_verified: false }, id_token }), 's')
})

test('an unverified e-mail address is not taken from another field either', () => {
  const said = { sub: 's', preferred_username: 'Boss@Corp.example', email: MAIL, email_verified: false }
  assert.equal(facts({ userinfo: said }).userInfo.username, 's')
  const config = { preset: 'oidc', fields: { username: ['mail', 'sub'], contact: ['mail'], email: ['mail'] } }
  const mapped = facts({ userinfo: { sub: 's', mail: MAIL, email_verified: false } }, config)
  assert.deepEqual([mapped.userInfo.username, Object(mapped.userInfo).contact], ['s', ''])
  const nested = { preset: 'oidc', fields: { email: ['profile.email'] }, emailVerified: { 'profile.ok': ['yes'] } }
  const emailOf = (ok: string) =>
    facts({ userinfo: { sub: 's', email_verified: true, profile: { email: MAIL, ok, x: 1 } } }, nested)
  assert.equal(emailOf('yes').userInfo.email, MAIL)
  assert.equal(emailOf('no').userInfo.email, '')
  assert.deepEqual(emailOf('no').claims.profile, { ok: 'no', x: 1 })
})

test('emailVerified and ALLOW_UNVERIFIED_EMAIL accept more addresses, and the error for a missing username says why', () => {
  const said = { userinfo: { sub: 's', email: MAIL, email_verified: 'true' } }
  assert.equal(facts(said).userInfo.email, '', 'a text counts as unverified, unless the provider is known for it')
  const cognito = { preset: 'oidc', emailVerified: { email_verified: [true, 'true'] } }
  assert.equal(facts(said, cognito).userInfo.email, MAIL)
  assert.match(
    messageOf(() => facts(said, { preset: 'oidc', fields: { username: ['email'] } })),
    /^no username \(looked for in email\); the e-mail address is not verified \(email_verified\); received: /,
  )
  const settings = readSettings({ ALLOW_UNVERIFIED_EMAIL: 'true' })
  const [allowed] = planProviders({ provider: { preset: 'oidc' } }, settings)
  assert.equal(mapUser(said, allowed).userInfo.username, MAIL)
  const [one] = planProviders({ providers: { one: { preset: 'google' } } }, settings)
  assert.equal(mapUser(said, one).userInfo.username, MAIL)
})

test('an address that is unverified in one response is removed from all of them, in every spelling and field', () => {
  const rows: [name: string, said: ProviderClaims, fields?: object][] = [
    [
      'the verdict in the other answer',
      { userinfo: { email: MAIL, preferred_username: MAIL }, id_token: { email_verified: false } },
    ],
    [
      'the address in the other answer',
      { userinfo: { email_verified: false, preferred_username: MAIL }, id_token: { email: MAIL } },
    ],
    ['null', { userinfo: { email: MAIL, email_verified: null, preferred_username: MAIL } }],
    ['absent', { userinfo: { email: MAIL, preferred_username: MAIL } }],
    ['absent, in the other answer', { userinfo: { email: MAIL }, id_token: { preferred_username: MAIL } }],
    ['a space', { userinfo: { email: `${MAIL} `, email_verified: false, preferred_username: MAIL } }],
    ['another space', { userinfo: { email: MAIL, email_verified: false, preferred_username: `\u00a0${MAIL}` } }],
    ['fullwidth', { userinfo: { email: MAIL, email_verified: false, preferred_username: 'ＢＯＳＳ@corp.example' } }],
    ['invisible', { userinfo: { email: MAIL, email_verified: false, preferred_username: 'bo\u200bss@corp.example' } }],
    ['a list', { userinfo: { email: [MAIL], email_verified: false, preferred_username: MAIL } }],
    [
      'another name',
      { userinfo: { primary_email: MAIL, email_verified: false } },
      { username: ['primary_email', 'sub'] },
    ],
    ['upn', { userinfo: { upn: MAIL, email_verified: false } }, { username: ['upn', 'sub'] }],
    [
      'two ways to one place',
      { userinfo: { 'user.email': 'x@y.example', user: { email: MAIL }, email_verified: false } },
      { email: ['user.email'], username: ['user.email', 'sub'] },
    ],
  ]
  for (const [name, said, fields = {}] of rows) {
    const whole = Object.fromEntries(
      Object.entries(said).map(([source, answer]) => [source, { sub: 's', ...Object(answer) }]),
    )
    const { userInfo, claims } = facts(whole, { preset: 'oidc', fields })
    assert.deepEqual([userInfo.username, userInfo.email], ['s', ''], name)
    assert.ok(!JSON.stringify(claims).includes(MAIL), `${name}: ${JSON.stringify(claims)}`)
  }
  const oauth2 = {
    preset: 'oauth2',
    userInfoFrom: ['userinfo' as const, 'id_token' as const],
    fields: { username: ['email', 'id'] },
  }
  const split = { userinfo: { id: 's', sub: 's', email: MAIL }, id_token: { sub: 's', email_verified: false } }
  assert.equal(facts(split, oauth2).userInfo.username, 's', 'a provider that is known to verify all denies this one')
})

test('a username that differs from the e-mail address does not depend on email_verified', () => {
  const username = (said: object, fields?: object) =>
    facts({ userinfo: { sub: 's', ...said } }, { preset: 'oidc', ...(fields && { fields }) }).userInfo.username
  for (const email_verified of [false, null, undefined]) {
    assert.equal(username({ preferred_username: 'lisi', email: MAIL, email_verified }), 'lisi')
    assert.equal(
      username({ preferred_username: 'lisi@corp.example', email: MAIL, email_verified }),
      'lisi@corp.example',
    )
    assert.equal(username({ preferred_username: 'lisi@corp.example', email_verified }), 'lisi@corp.example')
    assert.equal(
      username({ upn: 'lisi@corp.example', email: MAIL, email_verified }, { username: ['upn'] }),
      'lisi@corp.example',
    )
  }
  assert.equal(username({ upn: 'lisi@corp.example' }, { username: ['upn'] }), 'lisi@corp.example')
  assert.equal(username({ preferred_username: MAIL, email: MAIL, email_verified: true }), MAIL)
})
