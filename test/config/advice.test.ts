// What does not fit together is said at the start and in the console, each with its remedy.

import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { adviceFor } from '../../src/config/advice.ts'
import { DEVELOPMENT_CLIENT } from '../../src/config/dev-provider.ts'
import type { Config } from '../../src/config/file.ts'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { readSettings } from '../../src/config/read.ts'
import { EVENTS } from '../../src/events.ts'
import { planNamedProvider, planProvider } from '../../src/provider/plan.ts'
import { phrase, phraseIn } from '../../src/text/text.ts'
import { createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { type Environment, startInstance } from '../kit/instance.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority } from '../proxies/certificates.ts'

const GOOD = { STATE_CHECK: 'bound' }
const PROVIDER = {
  AUTH_URL: 'http://127.0.0.1:9',
  CLIENT_ID: 'menshen-test',
  CLIENT_SECRET: 'secret',
  STORE: 'memory:',
}
/** Any file is readable enough for the settings. */
const TLS = { TLS_CERT_FILE: '/dev/null', TLS_KEY_FILE: '/dev/null' }
const HTTPS = { BASE_URL: 'https://app.example.com' }

/** As the start and the console give it. */
function adviceOf(env: Environment) {
  const settings = readSettings(env)
  return adviceFor(settings, [planProvider(undefined, settings)])
}

suite('advice', () => {
  const ROWS: [env: Environment, codes: string[]][] = [
    [{}, []],
    [{ STATE_CHECK: 'suffix' }, ['weak_state_check']],
    [{ STATE_CHECK: 'suffix', PKCE: 'S256' }, []],
    [{ STATE_CHECK: 'suffix', ...DEVELOPMENT_CLIENT }, []],
    [{ CLIENT_SECRET: 'of-the-provider\n' }, ['secret_with_line_break']],
    [{ CLIENT_SECRET: 'of-the-provider\r\n' }, ['secret_with_line_break']],
    [{ CLIENT_SECRET: 'of-the\nprovider' }, []],
    [HTTPS, ['https_without_tls']],
    [{ ...HTTPS, TRUSTED_PROXIES: '10.0.0.1' }, []],
    [{ ...HTTPS, ...TLS }, []],
    [TLS, []],
    [{ ...TLS, BASE_URL: 'http://app.example.com' }, ['tls_without_https']],
    [{ BASE_URL: 'https://localhost:8443' }, ['https_without_tls']],
    [{ BASE_URL: 'https://localhost:8443', PORT: '8443' }, ['https_without_tls', 'port_of_proxy']],
    [{ BASE_URL: 'https://localhost:8443', PORT: '8443', TRUSTED_PROXIES: '127.0.0.1' }, ['port_of_proxy']],
    [{ BASE_URL: 'https://localhost:8443', TRUSTED_PROXIES: '127.0.0.1', PORT: '3000' }, []],
    [{ BASE_URL: 'https://localhost:8443', ...TLS }, []],
    [{ TRUSTED_PROXIES: '127.0.0.1' }, ['port_of_proxy']],
    [{ BASE_URL: 'http://localhost:8080', TRUSTED_PROXIES: '127.0.0.1', PORT: '3000' }, []],
    ...['0.0.0.0/0', '::/0', '127.0.0.1,0.0.0.0/1', '2000::/3'].map((TRUSTED_PROXIES): [Environment, string[]] => [
      { ...HTTPS, TRUSTED_PROXIES },
      ['trusts_everybody'],
    ]),
    [{ ...HTTPS, TRUSTED_PROXIES: '10.0.0.0/8,fc00::/7,172.16.0.0/12' }, []],
    [{ NODE_ENV: 'production' }, ['local_base_url']],
    [{ NODE_ENV: 'production', BASE_URL: 'http://app.localhost:3000' }, ['local_base_url']],
    [{ ...HTTPS, ...TLS, NODE_ENV: 'production' }, []],
    [{ NODE_ENV: 'dev' }, []],
    [{ NODE_ENV: 'prod' }, ['unknown_node_env', 'local_base_url']],
    [{ NODE_ENV: 'production', ALLOW_PLAIN_HTTP: 'true' }, ['local_base_url', 'plain_http_allowed']],
    [{ ALLOW_PLAIN_HTTP: 'true' }, []],
    [{ AUTO_SIGN_IN: 'on' }, []],
    [{ AUTO_SIGN_IN: 'in-app' }, ['auto_sign_in_without_effect']],
    [{ AUTO_SIGN_IN: 'in-app', PROVIDER: 'wecom' }, []],
    [{ AUTO_SIGN_IN: 'in-app', PROVIDER: 'lark' }, []],
  ]
  for (const [env, codes] of ROWS)
    test(`advice for ${JSON.stringify(env)} is ${codes.join(' and ') || 'not needed'}`, () => {
      const advice = adviceOf({ ...GOOD, ...env })
      assert.deepEqual(
        advice.map(({ code }) => code),
        codes,
      )
      for (const { code, remedy } of advice) {
        assert.equal(EVENTS[code].level, 'warn')
        assert.ok(phraseIn('en', remedy).length > 0)
        assert.equal(phraseIn('en', phrase(`advice.${code}`)), EVENTS[code].message)
        assert.match(phraseIn('zh-CN', remedy), /\p{Script=Han}/u)
      }
    })

  test('roles that grant no user the developer role lead to the advice console_for_nobody', () => {
    const settings = readSettings(GOOD)
    const codes = (roles?: { role: string }[]) => adviceFor(settings, [], roles).map(({ code }) => code)
    assert.deepEqual(codes(), [], 'without roles it is the user admin')
    assert.deepEqual(codes([{ role: 'auditor' }]), ['console_for_nobody'])
    assert.deepEqual(codes([]), ['console_for_nobody'])
    assert.deepEqual(codes([{ role: 'auditor' }, { role: 'developer' }]), [])
  })

  test('the start logs each piece of advice with its remedy', async t => {
    const env = { ...PROVIDER, BASE_URL: 'https://app.example.com', PORT: String(await freePort()), NODE_ENV: 'test' }
    const advised = await warningsOfStart(t, env)
    assert.deepEqual(
      advised.map(({ event }) => event),
      ['weak_state_check', 'https_without_tls'],
    )
    for (const { remedy } of advised) assert.ok(remedy)
    const production = { ...PROVIDER, STATE_CHECK: 'bound', CLIENT_SECRET: 's'.repeat(32), NODE_ENV: 'production' }
    const [forgotten, ...others] = await warningsOfStart(t, {
      ...production,
      AUTH_URL: 'https://127.0.0.1:9',
      STORE: `sqlite:${tempFolder(t)}/menshen.db`,
    })
    assert.deepEqual([forgotten?.event, others], ['local_base_url', []])
    assert.match(String(forgotten?.remedy), /^Set BASE_URL/)
    assert.deepEqual(await warningsOfStart(t, { ...PROVIDER, STATE_CHECK: 'bound' }), [])
  })

  test('the console shows each piece of advice with its remedy in Chinese', async t => {
    const env = { NODE_ENV: 'test', TRUSTED_PROXIES: '10.0.0.1' }
    const { user } = await setUp(t, { env })
    const { text } = await (await user('admin')).get('/_menshen/console')
    assert.ok(adviceOf(env).length > 0)
    for (const { code, remedy } of adviceOf(env))
      assert.ok(text.includes(`${phraseIn('zh-CN', phrase(`advice.${code}`))} → ${phraseIn('zh-CN', remedy)}`), code)
  })
})

suite('the keep-alive timeout', () => {
  test('the keep-alive timeout is above 75 seconds by default, and KEEP_ALIVE_TIMEOUT_MS sets it', async t => {
    const keptFor = async (env: Environment) => {
      const { url, stop } = await startInstance({ ...PROVIDER, ...env })
      t.after(stop)
      const { headers } = await createClient(url).get('/_menshen/health', { headers: { connection: 'keep-alive' } })
      return Number(/^timeout=(\d+)$/.exec(String(headers['keep-alive']))?.[1])
    }
    assert.ok((await keptFor({})) > 75)
    assert.equal(await keptFor({ KEEP_ALIVE_TIMEOUT_MS: '620000' }), 620)
    const tls = makeAuthority(tempFolder(t))
    assert.ok((await keptFor({ TLS_CERT_FILE: tls.certFile, TLS_KEY_FILE: tls.keyFile })) > 75)
  })
})

async function warningsOfStart(t: TestContext, env: Environment): Promise<Record<string, unknown>[]> {
  const { output, stop } = await startInstance(env)
  t.after(stop)
  await stop()
  return output.map(line => JSON.parse(line)).filter(({ level }) => level === 'warn')
}

test('a public provider without require, roles or rules leads to the advice open_to_anyone and admin_is_developer', () => {
  const client = { clientId: 'a', clientSecret: 'b', stateCheck: 'bound' as const }
  const codes = (provider: ProviderConfig, config: Config = {}) => {
    const plans = [planNamedProvider('p', { ...client, ...provider })]
    return adviceFor(readSettings({}), plans, config.roles, [], config).map(({ code }) => code)
  }
  const open = ['open_to_anyone', 'admin_is_developer']
  for (const preset of ['github', 'google', 'gitlab', 'gitee', 'dingtalk'])
    assert.deepEqual(codes({ preset }), open, preset)
  for (const tenant of ['common', 'organizations', 'consumers'])
    assert.deepEqual(codes({ preset: 'entra', vars: { tenant } }), open, tenant)
  const closed: ProviderConfig[] = [
    { preset: 'google', require: { hd: ['example.com'] } },
    { preset: 'entra', vars: { tenant: '2b1f0d3e-0000-4000-8000-000000000000' } },
    { preset: 'gitlab', vars: { auth_url: 'https://git.example.com' } },
    { preset: 'github', vars: { auth_url: 'https://git.example.com' } },
    { preset: 'oidc', vars: { auth_url: 'https://sso.example.com' } },
  ]
  for (const provider of closed) assert.deepEqual(codes(provider), ['admin_is_developer'], JSON.stringify(provider))
  const developers = { roles: [{ role: 'developer', groups: ['ops'] }] }
  assert.deepEqual(codes({ preset: 'github' }, developers), [])
  const rule = { path: '/', users: ['li'] }
  assert.deepEqual(codes({ preset: 'github' }, { rules: [rule] }), ['admin_is_developer'])
  assert.deepEqual(codes({ preset: 'github' }, { hosts: { 'wiki.example.com': { rules: [rule] } } }), [
    'admin_is_developer',
  ])
  assert.deepEqual(codes({ preset: 'idaas', vars: { auth_url: 'https://sso.example.com' } }), [])
})

test('REVOKE=always leads to the advice revoke_without_address if the provider has no revocation URL', () => {
  const codes = (provider: ProviderConfig) =>
    adviceFor(readSettings({}), [planNamedProvider('p', { stateCheck: 'bound', ...provider })]).map(({ code }) => code)
  assert.deepEqual(codes({ preset: 'github', revoke: 'always' }), ['revoke_without_address'])
  assert.deepEqual(codes({ preset: 'github', revoke: 'never' }), [])
  assert.deepEqual(codes({ preset: 'sa-token', revoke: 'always' }), [])
  // Metadata has one, or the doctor says that it does not.
  assert.deepEqual(codes({ preset: 'oidc', revoke: 'always' }), [])
})

test('AUTO_SIGN_IN=on with several providers leads to the advice auto_sign_in_without_effect, and in-app does not', () => {
  const providers = ['oidc', 'feishu'].map(preset => planNamedProvider(preset, { preset }))
  const codes = (AUTO_SIGN_IN: string) => adviceFor(readSettings({ AUTO_SIGN_IN }), providers).map(({ code }) => code)
  assert.deepEqual(codes('on'), ['auto_sign_in_without_effect'])
  assert.deepEqual(codes('in-app'), [])
})
