// In production nothing of a provider is reached over plain http, wherever its address comes from.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, createMenshen, MenshenError, readSettings } from '../../src/index.ts'
import { createProvider } from '../../src/provider/provider.ts'
import { planProviders } from '../../src/provider/providers.ts'
import type { Environment } from '../kit/instance.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { createTestLog } from '../kit/test-log.ts'

const PRODUCTION = { NODE_ENV: 'production', BASE_URL: 'https://app.example.com' }
const CLIENT = { clientId: 'a', clientSecret: 'b' }
const CLIENT_ENV = { CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
const ENDPOINTS = {
  authorizationUrl: 'https://idp.example.com/a',
  tokenUrl: 'https://idp.example.com/t',
  userInfoUrl: 'https://idp.example.com/u',
}

function refusalOf(config: Config, env: Environment = {}): string {
  try {
    planProviders(config, readSettings({ ...PRODUCTION, ...env }))
  } catch (error) {
    assert.ok(error instanceof MenshenError && error.code === 'bad_settings')
    return error.message
  }
  return ''
}

test('a plain http provider address is refused at startup in production, and the error names it', () => {
  const plain = 'http://10.0.0.2'
  const cases: [config: Config, env: Environment, named: RegExp][] = [
    [{}, { ...CLIENT_ENV, PROVIDER: 'oidc', PROVIDER_VARS: `auth_url=${plain}` }, /provider\.issuer leads to "http:/],
    [{}, { ...CLIENT_ENV, PROVIDER: 'oidc', ISSUER: plain }, /provider\.issuer leads to "http:/],
    [
      {},
      { ...CLIENT_ENV, PROVIDER: 'dingtalk', PROVIDER_VARS: `auth_url=https://a,api_url=${plain}` },
      /provider\.tokenUrl/,
    ],
    [{ provider: { preset: 'oidc', vars: { auth_url: 'HTTP://10.0.0.2' }, ...CLIENT } }, {}, /provider\.issuer/],
    [{ provider: { preset: 'oidc', issuer: plain, ...CLIENT } }, {}, /provider\.issuer/],
    [{ providers: { one: { preset: 'idaas', vars: { auth_url: plain }, ...CLIENT } } }, {}, /providers\.one\.tokenUrl/],
    ...[
      'authorizationUrl',
      'tokenUrl',
      'userInfoUrl',
      'jwksUrl',
      'logoutUrl',
      'revocationUrl',
      'introspectionUrl',
      'refreshUrl',
    ].map((name): [Config, Environment, RegExp] => [
      { providers: { one: { preset: 'oauth2', ...CLIENT, ...ENDPOINTS, [name]: `${plain}/x` } } },
      {},
      new RegExp(
        `^providers\\.one\\.${name} leads to "http://10\\.0\\.0\\.2/x"; expected an https address in production`,
      ),
    ]),
    [
      { provider: { preset: 'github', ...CLIENT, emailStep: { url: `${plain}/e`, where: { a: [1] }, take: 'b' } } },
      {},
      /provider\.emailStep\.url/,
    ],
  ]
  for (const [config, env, named] of cases) {
    assert.match(refusalOf(config, env), named)
    assert.equal(refusalOf(config, { ...env, ALLOW_PLAIN_HTTP: 'true' }), '')
    assert.equal(refusalOf(config, { ...env, NODE_ENV: 'development' }), '')
  }
  const local = { preset: 'oauth2', ...CLIENT, ...ENDPOINTS, tokenUrl: 'http://127.0.0.1:8080/token' }
  assert.equal(refusalOf({ provider: local }), '', 'this machine may be reached without https')
})

test('an invalid provider address is refused in production and in development', () => {
  const config = { provider: { preset: 'idaas', vars: { auth_url: 'idp.example.com' }, ...CLIENT } }
  const expected = /provider\.tokenUrl is "idp\.example\.com\/oauth\/token"; expected an http or https address/
  assert.match(refusalOf(config), expected)
  assert.match(refusalOf(config, { NODE_ENV: 'development' }), expected)
})

test('the library refuses a plain http provider address in production too', async () => {
  const options = { ...CLIENT, preset: 'oidc', issuer: 'http://10.0.0.2' }
  const { log } = createTestLog()
  const made = createMenshen({ baseUrl: 'https://app.example.com', nodeEnv: 'production', provider: options, log })
  await assert.rejects(made, { code: 'bad_settings', message: /provider\.issuer leads to "http:/ })
})

test('in production, discovery on this machine must not lead to plain http elsewhere unless ALLOW_PLAIN_HTTP is set', async t => {
  const oidc = await startOidcServer(t, { metadata: { token_endpoint: 'http://10.0.0.2/token' } })
  const settingsOf = (env: Environment) => readSettings({ ...PRODUCTION, ...oidc.settings, ...env })
  const address = (env: Environment) => {
    const settings = settingsOf(env)
    const [plan] = planProviders({}, settings)
    const provider = createProvider(plan, { settings, now: oidc.now, report: () => {} })
    t.after(() => provider.close())
    return provider.authorizationUrl({ state: 's' })
  }
  await assert.rejects(address({}), { code: 'provider_answer', message: /plain http/ })
  assert.match(await address({ ALLOW_PLAIN_HTTP: 'true' }), /^http:\/\/127\.0\.0\.1/)
})
