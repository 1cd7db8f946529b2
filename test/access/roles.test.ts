// Roles of the operator's choice, rules by role, group and user, and what of it the application is told.
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { decodeJwt, type JWTPayload } from 'jose'
import { checkConfig } from '../../src/config/file.ts'
import { type Config, MenshenError } from '../../src/index.ts'
import type { Client } from '../kit/client.ts'
import { setUpOidc } from '../kit/set-up.ts'

/** A gateway with these roles; `told` is what the application learns of a user. */
async function setUpRoles(t: TestContext, config: Config = {}, env: Record<string, string> = {}) {
  const scene = await setUpOidc(t, { config, env })
  return {
    ...scene,
    user: (claims: JWTPayload) => scene.user({ sub: 'sub-1', preferred_username: 'zhangsan', ...claims }),
    /** What the application is told of them. */
    async told(client: Client) {
      assert.equal((await client.get('/')).status, 200)
      const { headers } = scene.upstream.last()
      const { role, groups } = decodeJwt(String(headers['x-menshen-assertion']))
      assert.equal(headers['x-forwarded-role'], role)
      return { header: String(headers['x-forwarded-groups'] ?? ''), role, groups }
    },
  }
}

const ROLES: Config['roles'] = [
  { role: 'developer', username: ['admin'] },
  { role: 'auditor', groups: ['audit', '/finance/audit'] },
  { role: 'finance', claim: { 'dept.name': ['财务部'] } },
  { role: 'seven', claim: { level: [7], 'dept.id': ['7', 7] } },
  { role: 'ops', claim: { 'realm_access.roles': ['ops'] } },
]

test('the first matching row of roles gives the role, by username, group or any claim', async t => {
  const stage = await setUpRoles(t, { roles: ROLES })
  const rows: [claims: JWTPayload, role: string][] = [
    [{ preferred_username: 'admin', groups: ['audit'] }, 'developer'],
    [{ groups: ['x', 'audit'], dept: { name: '财务部' } }, 'auditor'],
    [{ groups: ['/finance/audit'] }, 'auditor'],
    [{ groups: 'audit' }, 'auditor'],
    [{ dept: { name: '财务部' } }, 'finance'],
    [{ dept: [{ name: '人事部' }, { name: '财务部' }] }, 'finance'],
    [{ level: 7, dept: { id: 7 } }, 'seven'],
    [{ level: 7 }, 'common'],
    [{ level: '7', dept: { id: 7 } }, 'common'],
    [{ realm_access: { roles: ['user', 'ops'] } }, 'ops'],
    [{ groups: ['Audit', 'audit ', 'finance/audit', '/finance/audit/x', '/finance'] }, 'common'],
    [{ groups: { audit: true } }, 'auditor'],
    [{ groups: [['audit']] }, 'common'],
    [{ dept: '财务部' }, 'common'],
    [{}, 'common'],
  ]
  for (const [claims, role] of rows) {
    const client = await stage.user(claims)
    const { userRole } = (await client.get('/_menshen/me')).json<{ userRole: string }>()
    assert.equal(userRole, role, JSON.stringify(claims))
    assert.equal((await client.get('/_menshen/console')).status, role === 'developer' ? 200 : 403)
  }
})

test('without configured roles, only the exact username admin is a developer, and no group or claim makes one', async t => {
  const stage = await setUpRoles(t)
  for (const claims of [
    { groups: ['developer'] },
    { groups: ['admin', 'developer'], role: 'developer', userRole: 'developer', roles: ['developer'] },
    { preferred_username: 'developer' },
    { preferred_username: 'Admin', groups: ['admin'] },
    { realm_access: { roles: ['developer'] } },
  ]) {
    const client = await stage.user(claims)
    assert.equal((await client.get('/_menshen/console')).status, 403, JSON.stringify(claims))
    assert.equal((await stage.told(client)).role, 'common')
  }
  const admin = await stage.user({ preferred_username: 'admin' })
  assert.equal((await admin.get('/_menshen/console')).status, 200)
})

test('a rule admits a user by role, group or username, and the role * matches every user', async t => {
  const rules: Config['rules'] = [
    { path: '/finance', roles: ['auditor'], groups: ['cfo', '/a/b'], users: ['lisi'] },
    { path: '/group', groups: ['cfo'] },
    { path: '/user', users: ['lisi'] },
    { path: '/all', roles: ['*'] },
    { path: '/', roles: ['developer'] },
  ]
  const stage = await setUpRoles(t, { roles: ROLES, rules })
  const rows: [claims: JWTPayload, admitted: string[]][] = [
    [{ groups: ['audit'] }, ['/finance', '/all']],
    [{ groups: ['cfo'] }, ['/finance', '/group', '/all']],
    [{ groups: ['/a/b'] }, ['/finance', '/all']],
    [{ groups: ['a/b', '/a', '/a/b/c', 'lisi', 'CFO'] }, ['/all']],
    [{ preferred_username: 'lisi' }, ['/finance', '/user', '/all']],
    [{ preferred_username: 'cfo' }, ['/all']],
    [{ preferred_username: 'auditor', groups: ['auditor'] }, ['/all']],
    [{ preferred_username: 'admin' }, ['/all', '/']],
    [{ preferred_username: '*', groups: ['*'] }, ['/all']],
  ]
  for (const [claims, admitted] of rows) {
    const client = await stage.user(claims)
    for (const path of ['/finance', '/group', '/user', '/all', '/']) {
      const { status } = await client.get(path)
      assert.equal(status, admitted.includes(path) ? 200 : 403, `${path} for ${JSON.stringify(claims)}`)
    }
  }
  assert.equal((await (await stage.user({ groups: ['cfo'] })).get('/Finance/..;/finance')).status, 400)
})

test('the application receives role and groups separately, and /_menshen/me has groups only if the user has any', async t => {
  const stage = await setUpRoles(t, { roles: ROLES })
  const auditor = await stage.user({ groups: ['audit', '/a/b', '财务'] })
  assert.deepEqual(await stage.told(auditor), {
    header: `audit,/a/b,${encodeURIComponent('财务')}`,
    role: 'auditor',
    groups: ['audit', '/a/b', '财务'],
  })
  assert.deepEqual((await auditor.get('/_menshen/me')).json<{ groups: string[] }>().groups, ['audit', '/a/b', '财务'])
  const nobody = await stage.user({})
  assert.deepEqual(await stage.told(nobody), { header: '', role: 'common', groups: [] })
  assert.ok(!('groups' in (await nobody.get('/_menshen/me')).json<object>()))
})

test('group names are encoded so that none can be read as two groups, as another group or as a header', async t => {
  const stage = await setUpRoles(t)
  const hostile = [
    'a,developer',
    'b\r\nx-forwarded-user: admin',
    '%61dmin',
    '50%',
    'x%2Cy',
    ' ',
    '\ud800',
    '\u0000',
    '"',
  ]
  const client = await stage.user({ groups: hostile })
  const { header, groups } = await stage.told(client)
  const names = header.split(',')
  assert.deepEqual(
    names.map(decodeURIComponent),
    hostile.map(name => name.toWellFormed()),
  )
  assert.match(header, /^[\x21-\x7e]+$/)
  assert.equal(stage.upstream.last().headers['x-forwarded-user'], 'zhangsan')
  assert.equal(Array.isArray(groups) && groups.length, hostile.length)
})

test('a list of 1000 groups is cut between two names, the cut is logged, and rules still see all groups', async t => {
  const stage = await setUpRoles(t, { rules: [{ path: '/last', groups: ['group-1000'] }] })
  const all = Array.from({ length: 1000 }, (_, n) => `group-${n + 1}`)
  const client = await stage.user({ groups: all })
  const { header, groups } = await stage.told(client)
  const told = header.split(',')
  assert.ok(header.length <= 2048 && header.length > 1990, `${header.length}`)
  assert.deepEqual(told, all.slice(0, told.length))
  assert.ok(Array.isArray(groups) && groups.length > 50)
  assert.deepEqual(groups, all.slice(0, groups.length))
  const cuts = stage.lines
    .filter(({ event }) => event === 'identity_cut')
    .map(({ fields }) => fields as { user?: string; header?: string; claim?: string })
    .map(({ user, header, claim }) => [user, header, claim])
  assert.deepEqual(cuts, [
    ['zhangsan', 'x-menshen-assertion', 'groups'],
    ['zhangsan', 'x-forwarded-groups', undefined],
  ])
  assert.equal((await client.get('/last')).status, 200)
  const long = await stage.user({ groups: ['x'.repeat(5000), 'y'] })
  assert.equal((await stage.told(long)).header, '')
})

test('roles and groups are read from configured paths inside the access token', async t => {
  const stage = await setUpRoles(
    t,
    {
      provider: {
        userInfoFrom: ['userinfo', 'id_token', 'access_token'],
        fields: { groups: ['groups', 'realm_access.roles', 'resource_access.{client_id}.roles'] },
      },
      roles: [{ role: 'ops', claim: { 'realm_access.roles': ['ops'] } }],
      rules: [{ path: '/wiki', groups: ['wiki-editor'] }],
    },
    {},
  )
  const { clientId } = stage.provider
  stage.provider.accessClaims = {
    realm_access: { roles: ['ops', 'user'] },
    resource_access: { [clientId]: { roles: ['wiki-editor'] }, other: { roles: ['owner'] } },
  }
  const client = await stage.user({ groups: ['/staff/it'] })
  assert.deepEqual(await stage.told(client), {
    header: '/staff/it,ops,user,wiki-editor',
    role: 'ops',
    groups: ['/staff/it', 'ops', 'user', 'wiki-editor'],
  })
  assert.equal((await client.get('/wiki')).status, 200)
})

test('invalid roles and rules are refused with an error that names the field', () => {
  const rows: [config: object, expected: RegExp][] = [
    [{ roles: [{ role: 'a b', username: ['x'] }] }, /roles\.0\.role: expected a role of letters/],
    [{ roles: [{ role: 'a' }] }, /roles\.0: expected username, groups or claim, to say who gets the role/],
    [{ roles: [{ role: 'a', groups: [] }] }, /roles\.0\.groups: expected at least one name/],
    [{ roles: [{ role: '*', groups: ['x'] }] }, /roles\.0\.role: /],
    [
      { rules: [{ path: '/a', roles: ['auditor'] }] },
      /rules\.0\.roles\.0: no row in roles grants this role; expected one of "developer", "common", "\*"/,
    ],
    [
      { rules: [{ path: '/a', groups: ['a'], public: true }] },
      /rules\.0: has both .*; expected either roles, groups or users, or public/,
    ],
    [{ rules: [{ path: '/a', users: [''] }] }, /rules\.0\.users\.0: /],
    [
      { roles: [{ role: 'a', username: ['x'], provider: ['staff'] }] },
      /roles\.0\.provider\.0: expected a name from providers/,
    ],
  ]
  for (const [config, expected] of rows) {
    const check = () => checkConfig(config, 'test', 'config')
    assert.throws(
      check,
      (error: unknown) => error instanceof MenshenError && expected.test(error.message),
      JSON.stringify(config),
    )
  }
})
