// Whoever reads the log at night finds who it was, from where, through which provider and why, in every line about a request.

import assert from 'node:assert/strict'
import test from 'node:test'
import { EVENTS, type EventCode } from '../../src/events.ts'
import type { Options } from '../kit/client.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { undocumentedFields } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'

const ADDRESS = '10.0.0.7'
const PROVIDER = 'default'
/** What every line has that is about a request of this browser. */
const BROWSER = { address: ADDRESS, userAgent: 'a browser' }
const USER = { user: 'zhangsan', sub: 'sub-zhangsan', provider: PROVIDER }
const SHORT_KEY = /^[\w-]{10}$/

const from = (requestId: string, scene?: Pick<Scene, 'baseUrl'>): Options => ({
  headers: {
    'x-request-id': requestId,
    'x-forwarded-for': ADDRESS,
    'user-agent': BROWSER.userAgent,
    ...(scene && { origin: scene.baseUrl }),
  },
})

interface Case {
  readonly env?: Record<string, string>
  /** Makes it happen, in a request of this name. */
  happen(scene: Scene, name: string): Promise<unknown>
  readonly fields: Readonly<Record<string, unknown>>
  /** The short key of a session. */
  readonly hasSession?: true
}

const rules = [
  { path: '/secret', roles: ['developer' as const] },
  { path: '/recent', roles: ['*' as const], maxAge: 300 },
  { path: '/keys', roles: ['*' as const], keys: 'personal' as const },
]

const KEYS = '/_menshen/account/keys'
const KEY_FORM = { name: 'laptop', days: '30' }

/** One for each audited event at least. */
const CASES: readonly (readonly [EventCode, Case])[] = [
  [
    'sign_in',
    {
      happen: async (scene, name) => scene.visitor().get(await callback(scene), from(name)),
      fields: { ...USER, role: 'common' },
      hasSession: true,
    },
  ],
  [
    'step_up',
    {
      async happen(scene, name) {
        const user = await scene.user()
        scene.passSeconds(400)
        const { searchParams } = new URL(String((await user.get('/recent')).headers.location))
        const code = scene.provider.codeFor({ username: 'zhangsan' })
        await user.get(`/callback?code=${code}&state=${searchParams.get('state')}`, from(name))
      },
      fields: { ...USER, role: 'common' },
      hasSession: true,
    },
  ],
  [
    'sign_in_failed',
    {
      happen: (scene, name) => scene.visitor().get('/callback?error=access_denied', from(name)),
      fields: { provider: PROVIDER, reason: 'access_denied' },
    },
  ],
  [
    'sign_in_failed',
    {
      happen: (scene, name) => scene.visitor().get('/callback?code=wrong&state=a_idp', from(name)),
      fields: { provider: PROVIDER, reason: 'token_error', error: 'provider_refused' },
    },
  ],
  [
    'sign_out',
    {
      happen: async (scene, name) => (await scene.user()).post('/logout', '', from(name, scene)),
      fields: USER,
      hasSession: true,
    },
  ],
  [
    'session_ended',
    {
      async happen(scene, name) {
        const developer = await scene.user('admin')
        await scene.user()
        const { text } = await developer.get('/_menshen/console/sessions?username=zhangsan')
        const [, session = ''] = /name="session" value="([\w-]+)"/.exec(text) ?? []
        await developer.post('/_menshen/console/end', { session }, from(name, scene))
      },
      fields: { user: 'zhangsan', provider: PROVIDER, by: 'developer', byUser: 'admin', ended: 1 },
      hasSession: true,
    },
  ],
  [
    'session_refresh_failed',
    {
      async happen(scene, name) {
        const user = await scene.user()
        scene.passSeconds(7000)
        scene.provider.answer('refresh', { kind: 'json', status: 500, body: {} })
        await user.get('/', from(name))
      },
      fields: { ...USER, reason: 'provider_answer', outcome: 'ended' },
      hasSession: true,
    },
  ],
  [
    'identity_changed',
    {
      env: { IDENTITY_REFRESH: 'always' },
      async happen(scene, name) {
        const user = await scene.user()
        scene.passSeconds(7000)
        const data = { sub: 'sub-zhangsan', username: 'zhangsan', nickname: '张三丰' }
        scene.provider.answer('userinfo', { kind: 'json', body: { success: true, code: '200', data } })
        await user.get('/', from(name))
      },
      fields: { ...USER, changed: 'ou_id, nickname, phone_number, ou_name, email' },
      hasSession: true,
    },
  ],
  [
    'refused',
    {
      happen: async (scene, name) => (await scene.user()).get('/secret', from(name)),
      fields: { ...USER, role: 'common', method: 'GET', path: '/secret' },
      hasSession: true,
    },
  ],
  [
    'rate_limited',
    {
      env: { RATE_LIMIT_PER_MINUTE: '1' },
      async happen(scene, name) {
        await scene.visitor().get('/callback?error=access_denied', from('the-first-one'))
        await scene.visitor().get('/callback?error=access_denied', from(name))
      },
      fields: { kind: 'sign-in' },
    },
  ],
  [
    'identity_cut',
    {
      async happen(scene, name) {
        const user = await scene.user('zhangsan', { nickname: '长'.repeat(1000) })
        await user.get('/', from(name))
      },
      fields: { ...USER, header: 'x-menshen-assertion', claim: 'nickname' },
      hasSession: true,
    },
  ],
  [
    'key_created',
    {
      happen: async (scene, name) => (await scene.user()).post(KEYS, KEY_FORM, from(name, scene)),
      fields: { ...USER, name: 'laptop' },
      hasSession: true,
    },
  ],
  [
    'key_used',
    {
      async happen(scene, name) {
        const { text } = await (await scene.user()).post(KEYS, KEY_FORM, from('before', scene))
        const key = /mk_[\w-]{43}/.exec(text)?.[0] ?? assert.fail(text)
        const { headers } = from(name)
        await scene.visitor().get('/keys', { headers: { ...headers, authorization: `Bearer ${key}` } })
        await until(() => scene.lines.some(({ event }) => event === 'key_used'))
      },
      fields: { ...USER, key: 'personal', name: 'laptop' },
    },
  ],
  [
    'key_revoked',
    {
      async happen(scene, name) {
        const user = await scene.user()
        await user.post(KEYS, KEY_FORM, from('before', scene))
        await user.post('/_menshen/sign-out-everywhere', '', from(name, scene))
      },
      fields: { ...USER, by: 'user', revoked: 1 },
      hasSession: true,
    },
  ],
  [
    'provider_not_told',
    {
      async happen(scene, name) {
        const user = await scene.user()
        scene.provider.answer('logout', { kind: 'cut', when: 'at once' })
        await user.post('/logout', '', from(name, scene))
      },
      fields: { ...USER, error: 'provider_unreachable' },
      hasSession: true,
    },
  ],
]

async function callback({ provider }: Scene): Promise<string> {
  return `/callback?code=${provider.codeFor({ username: 'zhangsan' })}&state=any_idp`
}

for (const [n, [code, { env, happen, fields, hasSession }]] of CASES.entries())
  test(`${code} is logged with the request id, address and user agent of its request and its other fields (${n + 1})`, async t => {
    const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1', ...env }, config: { rules } })
    const name = `request-of-${code}`
    await happen(scene, name)
    const told = () => scene.lines.map(({ event, fields }) => ({ event, ...fields }) as Record<string, unknown>)
    const find = () => told().find(line => line.event === code && line.requestId === name)
    await until(() => find() !== undefined)
    const line = find() ?? {}
    const expected = { ...BROWSER, requestId: name, ...fields }
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map(field => [field, line[field]])), expected)
    if (hasSession) assert.match(String(line.session), SHORT_KEY)
    assert.deepEqual(undocumentedFields(scene.lines), [])
  })

/**
 * Of the command; of an id_token, which this provider does not give (step-up.test.ts); of `hosts` (several-hosts.test.ts); of
 * browsers on https (device-bound-sessions.test.ts); of a store that fails (late-store.test.ts).
 */
const OF_OTHERS = new Set([
  ...['config_reloaded', 'step_up_failed', 'host_entered'],
  ...['device_bound', 'device_refused', 'device_missing'],
  'session_end_unconfirmed',
])

test('there is a case for every audited event', () => {
  const audited = Object.entries(EVENTS).filter(([code, row]) => 'audited' in row && !OF_OTHERS.has(code))
  const covered = new Set<string>(CASES.map(([code]) => code))
  assert.deepEqual(
    audited.map(([code]) => code).filter(code => !covered.has(code)),
    [],
  )
})
