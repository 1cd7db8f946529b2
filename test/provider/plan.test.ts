// The preset, the configuration on top of it, and the environment on top of both.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { readSettings } from '../../src/config/read.ts'
import { planNamedProvider, planProvider, receivingAddresses } from '../../src/provider/plan.ts'
import { PRESETS } from '../../src/provider/presets/presets.ts'
import { planProviders } from '../../src/provider/providers.ts'

const CLIENT = { CLIENT_ID: 'app-1', CLIENT_SECRET: 'secret' }

test('nested keys of the configuration are merged with those of the preset at every depth', () => {
  const plan = planNamedProvider('p', {
    preset: 'dingtalk',
    clientId: 'app-1',
    tokenRequest: { names: { code: 'authCode' }, headers: { 'X-One': '1' } },
    tokenAnswer: { lifetimeSeconds: 600 },
    fields: { email: ['orgEmail'] },
  })
  assert.equal(plan.tokenRequest.as, 'json')
  assert.equal(plan.tokenRequest.names.client_id, 'clientId')
  assert.equal(plan.tokenRequest.names.code, 'authCode')
  assert.deepEqual(plan.tokenRequest.headers, { 'x-one': '1' })
  assert.equal(plan.tokenAnswer.names.expires_in, 'expireIn')
  assert.equal(plan.tokenAnswer.lifetimeSeconds, 600)
  assert.deepEqual(plan.fields.email, ['orgEmail'])
  assert.deepEqual(plan.fields.sub, ['unionId'])
})

test('a token configured for the query replaces the preset’s token header', () => {
  const plan = planNamedProvider('p', { preset: 'dingtalk', userInfoRequest: { token: { query: 't' } } })
  assert.deepEqual(plan.userInfoRequest.token, { query: 't' })
})

test('merging a configuration does not change the preset', () => {
  const before = JSON.stringify(PRESETS)
  planNamedProvider('p', { preset: 'keycloak', fields: { sub: ['x'] }, tokenAnswer: { lifetimeSeconds: 60 } })
  assert.equal(JSON.stringify(PRESETS), before)
})

test('the environment wins over the configuration, and the configuration over the preset', () => {
  const settings = readSettings({
    ...CLIENT,
    PROVIDER: 'keycloak',
    AUTH_URL: 'https://sso.example.com',
    PROVIDER_VARS: 'realm=staff',
    SCOPE: 'openid',
  })
  const plan = planProvider({ scope: 'openid email', vars: { realm: 'guests' }, name: '企业账号' }, settings)
  assert.equal(plan.preset, 'keycloak')
  assert.equal(plan.issuer, 'https://sso.example.com/realms/staff')
  assert.equal(plan.authorization.scope, 'openid')
  assert.equal(plan.name, '企业账号')
  assert.deepEqual(plan.missing, [])
})

test('the client ID is inserted into claim paths and parameters that refer to it', () => {
  const plan = planNamedProvider('p', {
    preset: 'keycloak',
    clientId: 'my.client',
    vars: { auth_url: 'https://a', realm: 'r' },
  })
  assert.ok(plan.fields.groups.includes('resource_access.my.client.roles'))
  const glo = planNamedProvider('p', {
    preset: 'bamboocloud',
    clientId: 'app-7',
    clientSecret: 's',
    vars: { auth_url: 'https://a' },
  })
  assert.equal(glo.logout.params.entityId, 'app-7')
})

test('the default of a variable can refer to another variable', () => {
  const config = { preset: 'ruoyi', clientId: 'a', clientSecret: 'b' }
  const together = planNamedProvider('p', { ...config, vars: { auth_url: 'https://front' } })
  assert.equal(together.endpoints.token, 'https://front/admin-api/system/oauth2/token')
  const apart = planNamedProvider('p', { ...config, vars: { auth_url: 'https://front', api_url: 'https://back' } })
  assert.equal(apart.endpoints.token, 'https://back/admin-api/system/oauth2/token')
  assert.equal(apart.endpoints.authorization, 'https://front/sso')
})

test('PKCE is on for presets known to support it, and the state is bound for all presets except idaas', () => {
  const off = [
    'idaas',
    'oauth2',
    'maxkey',
    'gitee',
    'dingtalk',
    'wecom',
    'oneaccess',
    'bamboocloud',
    'sa-token',
    'ruoyi',
  ]
  for (const preset of Object.keys(PRESETS)) {
    const plan = planNamedProvider('p', { preset })
    assert.equal(plan.pkce, !off.includes(preset), preset)
    assert.equal(plan.stateCheck, preset === 'idaas' ? 'suffix' : 'bound', preset)
    assert.equal(plan.refreshLead, preset === 'idaas' ? 'fixed' : 'half', preset)
    assert.equal(plan.kind === 'oidc', PRESETS[preset]?.issuer !== undefined, preset)
  }
})

test('an unknown preset is refused with an error that lists the known presets', () => {
  for (const preset of ['keyclaok', '__proto__', 'constructor', ''])
    assert.throws(() => planNamedProvider('p', { preset }), {
      code: 'bad_settings',
      message: /expected one of idaas, oidc/,
    })
})

test('a client without a secret needs PKCE, and a sign-out at the provider needs an address', () => {
  const one = {
    preset: 'oauth2',
    clientId: 'a',
    authorizationUrl: 'https://a.example/a',
    tokenUrl: 'https://a.example/t',
  }
  const plans =
    (provider: object, env = {}) =>
    () =>
      planProviders({ provider: { ...one, ...provider } }, readSettings(env))
  assert.throws(
    plans({ clientAuth: 'none' }),
    /^MenshenError: provider\.clientAuth is "none" without PKCE, .*PKCE=S256\.$/,
  )
  assert.throws(plans({}, { CLIENT_AUTH: 'none' }), /provider\.clientAuth is "none" without PKCE/)
  plans({ clientAuth: 'none', pkce: true })()
  plans({ clientAuth: 'none' }, { PKCE: 'S256' })()
  plans({ preset: 'oidc', clientAuth: 'none' })()
  for (const style of ['browser', 'server']) {
    const expected = new RegExp(
      `provider\\.logout\\.style is "${style}", but there is no address for it; expected provider\\.logoutUrl`,
    )
    assert.throws(plans({ logout: { style } }), expected)
    assert.throws(plans({}, { LOGOUT_STYLE: style }), expected)
    plans({ logout: { style }, logoutUrl: 'https://a.example/out' })()
  }
  plans({ preset: 'oidc', logout: { style: 'browser' } })()
})

test('tokens are revoked at sign-out only for presets where that is known to end one session, or if configured', () => {
  const revoked = Object.keys(PRESETS).filter(preset => planNamedProvider('p', { preset }).revoke === 'always')
  assert.deepEqual(revoked, ['ruoyi'])
  assert.equal(planNamedProvider('p', { preset: 'google', revoke: 'always' }).revoke, 'always')
  const own = { preset: 'oauth2', revocationUrl: 'https://a.example/revoke' }
  assert.equal(planNamedProvider('p', own).revoke, 'always')
  assert.equal(planNamedProvider('p', { ...own, revoke: 'never' }).revoke, 'never')
  assert.equal(planProvider(own, readSettings({ REVOKE: 'never' })).revoke, 'never')
})

test('with a self-hosted address, the API address is derived or required, and never defaults to the public service', () => {
  const client = { clientId: 'a', clientSecret: 'b' }
  const own = planNamedProvider('p', { preset: 'github', ...client, vars: { auth_url: 'https://ghe.example.com' } })
  assert.deepEqual(own.missing, [])
  assert.equal(own.endpoints.userInfo, 'https://ghe.example.com/api/v3/user')
  assert.equal(own.emailStep?.url, 'https://ghe.example.com/api/v3/user/emails')
  const env = readSettings({ ...CLIENT, PROVIDER: 'github', AUTH_URL: 'https://ghe.example.com' })
  assert.equal(planProvider(undefined, env).endpoints.userInfo, 'https://ghe.example.com/api/v3/user')
  const publicOne = planNamedProvider('p', { preset: 'github', ...client, vars: { auth_url: 'https://github.com/' } })
  assert.equal(publicOne.endpoints.userInfo, 'https://api.github.com/user')
  for (const preset of ['feishu', 'lark', 'dingtalk', 'wecom']) {
    const vars = { auth_url: 'https://own.example.com', agent: '7' }
    assert.deepEqual(planNamedProvider('p', { preset, ...client, vars }).missing, ['providers.p.vars.api_url'], preset)
    const both = planNamedProvider('p', { preset, ...client, vars: { ...vars, api_url: 'https://api.example.com' } })
    assert.deepEqual(both.missing, [])
    assert.ok(!JSON.stringify(both.endpoints).match(/feishu\.cn|larksuite|dingtalk\.com|weixin/), preset)
    assert.deepEqual(planNamedProvider('p', { preset, ...client, vars: { agent: '7' } }).missing, [], preset)
  }
})

test('with any one preset address overridden, codes and tokens of the operator’s server are not sent to the public service', () => {
  const own = 'https://own.example.com'
  const client = {
    clientId: 'a',
    clientSecret: 'b',
    vars: { agent: '7', realm: 'r', app: 'a', instance: 'i', tenant: 't' },
  }
  const issuing = ['authorizationUrl', 'tokenUrl', 'refreshUrl']
  const others = ['userInfoUrl', 'logoutUrl', 'revocationUrl', 'introspectionUrl', 'parUrl', 'jwksUrl', 'issuer']
  for (const [preset, { variables = {}, kind }] of Object.entries(PRESETS)) {
    const defaults = Object.values(variables).map(variable => variable.default ?? '')
    const publicHosts = defaults.filter(text => URL.canParse(text)).map(text => new URL(text).host)
    const hostsWith = (config: ProviderConfig) => {
      const plan = planNamedProvider('p', { preset, ...client, ...config })
      const addresses = receivingAddresses(plan).filter(address => URL.canParse(address))
      return { plan, hosts: addresses.map(address => new URL(address).host) }
    }
    for (const name of issuing) {
      const { plan, hosts } = hostsWith({ [name]: `${own}/x`, revoke: 'always' })
      const leaks = hosts.filter(host => publicHosts.includes(host))
      assert.deepEqual(leaks, [], `${preset} with its own ${name} sends tokens to ${leaks}`)
      if (kind === 'oidc' || publicHosts.length === 0) continue
      const needed = ['tokenUrl', 'userInfoUrl'].filter(key => key !== name).map(key => `providers.p.${key}`)
      assert.deepEqual(plan.missing.toSorted(), needed, `${preset} ${name}`)
    }
    for (const name of others) {
      const { plan, hosts } = hostsWith({ [name]: `${own}/x`, revoke: 'always' })
      const usual = new Set(hostsWith({ revoke: 'always' }).hosts)
      assert.deepEqual(
        hosts.filter(host => host !== 'own.example.com' && !usual.has(host)),
        [],
        `${preset} ${name}`,
      )
      const step = plan.emailStep && new URL(plan.emailStep.url).host
      if (name === 'userInfoUrl') assert.ok(step === undefined || step === 'own.example.com', `${preset}: ${step}`)
      // With OpenID Connect, all that is not here comes from the metadata of the issuer.
      if (kind === 'oidc' && name === 'issuer') assert.equal(plan.issuer, `${own}/x`)
    }
  }
  const enterprise = planNamedProvider('p', {
    preset: 'github',
    ...client,
    authorizationUrl: `${own}/login/oauth/authorize`,
    tokenUrl: `${own}/login/oauth/access_token`,
    userInfoUrl: `${own}/api/v3/user`,
  })
  assert.deepEqual(enterprise.missing, [])
  assert.equal(enterprise.emailStep?.url, `${own}/api/v3/user/emails`)
  const same = { authorizationUrl: 'https://github.com/login/oauth/authorize?allow_signup=false' }
  assert.deepEqual(planNamedProvider('p', { preset: 'github', ...client, ...same }).missing, [])
})

test('a trailing slash is removed from an address in vars, but not from other variables', () => {
  const client = { clientId: 'a', clientSecret: 'b' }
  const vars = { auth_url: 'https://sso.example.com/', realm: 'staff/' }
  assert.equal(
    planNamedProvider('p', { preset: 'idaas', ...client, vars }).endpoints.token,
    'https://sso.example.com/oauth/token',
  )
  assert.equal(
    planNamedProvider('p', { preset: 'keycloak', ...client, vars }).issuer,
    'https://sso.example.com/realms/staff/',
  )
  const env = readSettings({ ...CLIENT, PROVIDER: 'oidc', PROVIDER_VARS: 'auth_url=https://sso.example.com/' })
  assert.equal(planProvider(undefined, env).issuer, 'https://sso.example.com')
})
