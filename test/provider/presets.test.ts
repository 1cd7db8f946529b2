// Every preset against a provider that answers as the real one is known to, and takes nothing else than it does.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { providerObject } from '../../src/config/provider.ts'
import { MenshenError } from '../../src/errors.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { PRESETS } from '../../src/provider/presets/presets.ts'
import type { Provider } from '../../src/provider/provider.ts'
import { type Scripted, startScripted } from './scripted.ts'
import { type Address, CHALLENGE, CODE, NONCE, PLAIN_STATE, type Sheet, STATE, VERIFIER } from './sheet.ts'
import { SHEETS } from './sheets/all-sheets.ts'

const EMPTY = { sub: '', ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '', username: '' }
const HELD = { accessToken: 'at-1', refreshToken: 'rt-1' }

for (const [preset, sheet] of Object.entries(SHEETS)) {
  test(`${preset}: authorization, tokens, user info, refresh and sign-out work as the provider expects`, async t => {
    const scripted = await startScripted(t, preset, sheet)
    const { provider, sent } = scripted
    const { plan } = provider
    assert.equal(plan.state, sheet.state ?? 'suffixed')
    assert.deepEqual(plan.codeNames, sheet.codeNames ?? ['code'])
    assert.equal(plan.stateCheck, preset === 'idaas' ? 'suffix' : 'bound')
    const state = sheet.state ? PLAIN_STATE : STATE
    assertAddress(scripted, await provider.authorizationUrl(attemptOf(provider, state)), sheet.authorize)

    const tokens = await redeem(provider, state)
    assert.deepEqual(sent(), sheet.redeem)
    const { accessToken, refreshToken, expiresIn, idToken } = tokens
    assert.deepEqual({ accessToken, expiresIn, ...(refreshToken ? { refreshToken } : {}) }, sheet.tokens)

    const { userInfo, groups, claims, exclusiveClaims } = await provider.fetchUser(tokens, CODE)
    assert.deepEqual(sent(), sheet.fetchUser)
    assert.deepEqual(userInfo, { ...EMPTY, ...sheet.user })
    assert.deepEqual(groups, sheet.groups ?? [])

    if (sheet.refresh) {
      const renewed = await provider.refresh({ ...HELD, idToken })
      assert.deepEqual(sent(), sheet.refresh)
      assert.equal(renewed.accessToken, accessToken)
      // The user is the same by one call more, whatever the sign-in took.
      const before = { userInfo, groups, idToken, claims, exclusiveClaims, isLost: () => false }
      const again = await provider.refreshUser(renewed, before)
      assert.deepEqual(sent(), sheet.fetchUser.slice(0, 1))
      assert.deepEqual([again.userInfo, again.groups], [userInfo, groups])
    }
    await provider.signOut({ ...HELD, idToken })
    assert.deepEqual(sent(), sheet.signOut ?? [])
    const away = await provider.signOutUrl({ ...HELD, idToken }, STATE)
    if (sheet.signOutUrl) assertAddress(scripted, away ?? '', sheet.signOutUrl, idToken)
    else assert.equal(away, undefined)
  })

  test(`${preset}: each error response is mapped to the right error code`, async t => {
    const { provider, next } = await startScripted(t, preset, sheet)
    const tokens = await redeem(provider, STATE)
    if (provider.plan.kind === 'company_token') await provider.fetchUser(tokens, CODE)
    for (const [step, reply, code] of sheet.errors) {
      next(reply)
      const steps = {
        redeem: () => redeem(provider, STATE),
        fetchUser: () => provider.fetchUser(tokens, CODE),
        refresh: () => provider.refresh({ ...HELD, idToken: tokens.idToken }),
      }
      await assert.rejects(steps[step], (error: unknown) => {
        assert.ok(error instanceof MenshenError, String(error))
        assert.equal(error.code, code, `${step} ${JSON.stringify(reply.body)}: ${error.message}`)
        return true
      })
    }
  })
}

test('every preset has a test sheet and is valid for the provider schema', () => {
  assert.deepEqual(Object.keys(SHEETS).sort(), Object.keys(PRESETS).sort())
  for (const [
    name,
    { kind: _, variables: __, openTenants: ___, isPublic: ____, nameZh: _____, ...data },
  ] of Object.entries(PRESETS)) {
    const result = providerObject.safeParse(data)
    assert.ok(result.success, `${name}: ${result.error?.message}`)
  }
})

test('every placeholder of a preset is a known variable, and every variable is used and described in a sentence', () => {
  for (const [name, { variables = {}, ...data }] of Object.entries(PRESETS)) {
    const { alsoIssuers: _, accessTokenIssuers: __, ...filled } = data
    const holes = [...JSON.stringify(filled).matchAll(/\{(\w+)\}/g)].map(([, hole = '']) => hole)
    const known = ['auth_url', 'user_info_url', 'client_id', 'scope', ...Object.keys(variables)]
    for (const hole of holes) assert.ok(known.includes(hole), `${name}: {${hole}}`)
    for (const [variable, { description }] of Object.entries(variables)) {
      assert.ok(variable === 'auth_url' || holes.includes(variable), `${name}: ${variable} is used nowhere`)
      assert.match(description, /^[A-Z].*\.$/, `${name}: ${variable}`)
    }
  }
})

test('a preset without its variables lists those that are missing', () => {
  const missing = (preset: string) => planNamedProvider('p', { preset, clientId: 'a', clientSecret: 'b' }).missing
  assert.deepEqual(missing('keycloak'), ['providers.p.vars.auth_url', 'providers.p.vars.realm'])
  assert.deepEqual(missing('wecom'), ['providers.p.vars.agent'])
  assert.deepEqual(missing('ruoyi'), ['providers.p.vars.auth_url'])
  assert.deepEqual(missing('github'), [])
})

test('docs/providers.md has a section for each preset, with its variables', () => {
  const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8')
  for (const [name, { variables = {} }] of Object.entries(PRESETS)) {
    const section = page.split(/^## /m).find(text => text.split('\n')[0]?.includes(`\`${name}\``))
    assert.ok(section, `no section for ${name}`)
    for (const variable of Object.keys(variables))
      if (variable !== 'auth_url') assert.ok(section.includes(variable), `${name}: ${variable}`)
  }
})

test('docs/providers.md lists every provider field', () => {
  const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf('## Every knob'))
  for (const knob of Object.keys(providerObject.shape)) assert.ok(table.includes(`\`${knob}\``), knob)
})

function attemptOf({ plan }: Provider, state: string) {
  return { state, ...(plan.pkce ? { challenge: CHALLENGE } : {}), ...(plan.kind === 'oidc' ? { nonce: NONCE } : {}) }
}

function redeem(provider: Provider, state: string) {
  const { plan } = provider
  const verifier = plan.pkce ? VERIFIER : undefined
  return provider.redeem({ code: CODE, state, verifier, nonce: plan.kind === 'oidc' ? NONCE : undefined })
}

function assertAddress({ asWritten }: Scripted, given: string, expected: Address, idToken = ''): void {
  const { origin, pathname, searchParams, hash } = new URL(asWritten(given))
  assert.equal(origin + pathname, expected.at)
  const params = { ...Object.fromEntries(searchParams), ...(hash ? { '#': hash.slice(1) } : {}) }
  const hint: Sheet['authorize']['params'] = 'id_token_hint' in expected.params ? { id_token_hint: idToken } : {}
  assert.deepEqual(params, { ...expected.params, ...hint })
}
