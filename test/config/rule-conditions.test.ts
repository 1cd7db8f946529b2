// Conditions that cannot be meant like this are refused with one sentence each, wherever a configuration is read.

import assert from 'node:assert/strict'
import test from 'node:test'
import { checkConfig } from '../../src/config/file.ts'
import type { RuleConditions } from '../../src/config/rule-conditions.ts'
import { createMenshen, readSettings } from '../../src/index.ts'
import { createTestLog } from '../kit/test-log.ts'

const HOURS = { days: ['mon'], from: '08:00', to: '20:00', zone: 'Asia/Shanghai' }

function problems(condition: object, who: object = { roles: ['*'] }): string[] {
  try {
    checkConfig({ rules: [{ path: '/x', ...who, ...condition }] }, 'f', 'whole')
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

const REFUSED: [condition: object, sentence: RegExp][] = [
  [{ networks: [] }, /rules\.0\.networks: expected at least one network\./],
  [{ networks: '10.0.0.0/8' }, /rules\.0\.networks: expected a list/],
  [{ networks: ['10.0.0.1/8'] }, /rules\.0\.networks\.0: "10\.0\.0\.1\/8" has host bits.* expected "10\.0\.0\.0\/8"/],
  [{ networks: ['192.168.1.0/22'] }, /expected "192\.168\.0\.0\/22"/],
  [{ networks: ['2001:db8::1/32'] }, /expected "2001:db8::\/32"/],
  [{ networks: ['10.0.0.0/33'] }, /expected an address or a network/],
  [{ networks: ['10.0.0.0/255.0.0.0'] }, /expected an address or a network/],
  [{ networks: ['10.*'] }, /expected an address or a network/],
  [{ networks: ['localhost'] }, /expected an address or a network/],
  [{ networks: ['fe80::1%eth0'] }, /expected an address or a network/],
  [{ networks: ['::ffff:10.0.0.1'] }, /this is an IPv4 address in IPv6 notation; expected IPv4 notation/],
  [{ hours: { ...HOURS, zone: 'Mars/Olympus' } }, /rules\.0\.hours\.zone: unknown time zone/],
  [{ hours: { ...HOURS, zone: 'Asia/Shangai' } }, /did you mean "Asia\/Shanghai"\?/],
  [{ hours: { ...HOURS, zone: '' } }, /unknown time zone/],
  [{ hours: { ...HOURS, zone: 'CST' } }, /rules\.0\.hours\.zone: an abbreviation can mean several time zones/],
  [{ hours: { ...HOURS, zone: 'bst' } }, /an abbreviation can mean several time zones/],
  [{ hours: { from: '08:00', to: '20:00' } }, /rules\.0\.hours\.zone: /],
  [{ hours: { ...HOURS, to: '08:00' } }, /rules\.0\.hours\.to: is the same as from/],
  [{ hours: { ...HOURS, from: '8:00' } }, /rules\.0\.hours\.from: expected a time as HH:MM/],
  [{ hours: { ...HOURS, from: '24:00' } }, /rules\.0\.hours\.from: expected a time as HH:MM/],
  [{ hours: { ...HOURS, to: '25:00' } }, /rules\.0\.hours\.to: expected a time as HH:MM/],
  [{ hours: { ...HOURS, days: [] } }, /rules\.0\.hours\.days: expected at least one day/],
  [{ hours: { ...HOURS, days: ['Monday'] } }, /rules\.0\.hours\.days\.0: .*did you mean "mon"\?/],
  [{ hours: { ...HOURS, timezone: 'UTC' } }, /rules\.0\.hours/],
  [{ hours: '08:00-20:00' }, /rules\.0\.hours: expected an object/],
  [{ origin: 'https://app.example' }, /rules\.0\.origin: expected "own"/],
  [{ maxAge: 0 }, /rules\.0\.maxAge: expected whole seconds, 1 or more/],
  [{ maxAge: -5 }, /rules\.0\.maxAge: expected whole seconds/],
  [{ maxAge: 1.5 }, /rules\.0\.maxAge: expected whole seconds/],
  [{ maxAge: '5m' }, /rules\.0\.maxAge: expected whole seconds/],
  [{ acr: [] }, /rules\.0\.acr: expected at least one value/],
  [{ acr: ['two words'] }, /rules\.0\.acr\.0: expected a value as it appears in the id_token/],
  [{ amr: [''] }, /rules\.0\.amr\.0: expected a value/],
  [{ amr: 'mfa' }, /rules\.0\.amr: expected a list/],
  [{ maxage: 300 }, /maxAge/],
]

for (const [condition, sentence] of REFUSED)
  test(`the rule condition ${JSON.stringify(condition)} is refused with one sentence`, () => {
    const found = problems(condition)
    assert.equal(found.length, 1, found.join('\n'))
    assert.match(found[0] ?? '', sentence)
    assert.match(found[0] ?? '', /[.?]$/)
  })

test('valid rule conditions are accepted', () => {
  for (const condition of [
    { networks: ['10.0.0.0/8', '::1', '0.0.0.0/0', '192.0.2.7/32', '2001:db8::/32', '::/0', '192.0.2.7'] },
    { hours: HOURS },
    { hours: { from: '22:00', to: '06:00', zone: 'UTC' } },
    { hours: { from: '22:00', to: '06:00', zone: '+08:00' } },
    { hours: { from: '00:00', to: '24:00', days: ['sat', 'sun'], zone: 'Europe/Berlin' } },
    { origin: 'own' },
    { maxAge: 1 },
    { acr: ['urn:mace:incommon:iap:silver', '0'], amr: ['mfa'] },
  ])
    assert.deepEqual(problems(condition), [], JSON.stringify(condition))
})

test('a public rule can have networks and hours, but no condition that needs a user', () => {
  assert.deepEqual(problems({ networks: ['::1'], hours: HOURS }, { public: true }), [])
  for (const condition of [{ origin: 'own' }, { maxAge: 5 }, { acr: ['a'] }, { amr: ['a'] }]) {
    const [sentence = '', ...more] = problems(condition, { public: true })
    assert.match(
      sentence,
      new RegExp(`rules\\.0: a visitor to a public page cannot meet ${Object.keys(condition)[0]}; `),
    )
    assert.deepEqual(more, [])
  }
})

test('a rule with conditions but without roles, groups, users or public is refused', () => {
  const [sentence = '', ...more] = problems({ networks: ['::1'] }, {})
  assert.match(sentence, /expected either roles, groups or users, or public: true/)
  assert.deepEqual(more, [])
})

test('acr and amr are refused if no provider issues an id_token, but maxAge is accepted', async () => {
  const { log } = createTestLog()
  const start = async (rule: RuleConditions, env: Record<string, string>) => {
    const settings = readSettings({
      STORE: 'memory:',
      CLIENT_ID: 'c',
      CLIENT_SECRET: 's'.repeat(40),
      AUTH_URL: 'https://idp.example.com',
      ...env,
    })
    const menshen = await createMenshen({ settings, config: { rules: [{ path: '/x', roles: ['*'], ...rule }] }, log })
    await menshen.close()
  }
  await assert.rejects(
    start({ acr: ['gold'] }, { PROVIDER: 'idaas' }),
    /rules\.0\.acr checks the id_token, but the provider idaas does not issue one; expected/,
  )
  await assert.rejects(start({ amr: ['mfa'] }, { PROVIDER: 'idaas' }), /rules\.0\.amr checks the id_token/)
  await start({ maxAge: 300 }, { PROVIDER: 'idaas' })
  await start({ acr: ['gold'], amr: ['mfa'] }, { PROVIDER: 'oidc' })
})
