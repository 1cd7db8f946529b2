// Which e-mail addresses are trusted, by the truth table at the top of email-trust.ts.

import assert from 'node:assert/strict'
import test from 'node:test'
import { trustEmails } from '../../src/provider/email-trust.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'

const ADDRESS = 'boss@corp.example'
const { fields } = planNamedProvider('p', { preset: 'oidc', clientId: 'c', clientSecret: 's' })

test('an e-mail address is trusted if its own response verifies it; without a statement, only if no response denies it', () => {
  const wordRequired = { email_verified: [true] }
  const noWordAccepted = { email_verified: [true, null] }
  const denying = { email_verified: false }
  for (const [word, emailVerified, isTrusted, isTrustedBesideDenial] of [
    [true, wordRequired, true, true],
    [null, noWordAccepted, true, false],
    [null, wordRequired, false, false],
    [false, noWordAccepted, false, false],
    ['true', noWordAccepted, false, false],
  ] as const) {
    const answer = { sub: 'u', email: ADDRESS, ...(word !== null && { email_verified: word }) }
    for (const [answers, expected] of [
      [[answer], isTrusted],
      [[answer, denying], isTrustedBesideDenial],
    ] as const) {
      const { answers: trusted, hasUnverified } = trustEmails(answers, { fields, emailVerified: { ...emailVerified } })
      const label = JSON.stringify({ word, emailVerified, answers: answers.length })
      assert.equal(Object(trusted[0]).email, expected ? ADDRESS : undefined, label)
      assert.equal(hasUnverified, !expected, label)
    }
  }
})

test('a denied e-mail address is removed from every field of every response except the subject', () => {
  const { answers, isDenied } = trustEmails(
    [
      { sub: ADDRESS, email: ADDRESS, email_verified: false, nickname: ' Boss@Corp.example' },
      { preferred_username: ADDRESS, level: 7 },
    ],
    { fields, emailVerified: { email_verified: [true] } },
  )
  assert.deepEqual(answers, [{ sub: ADDRESS, email_verified: false }, { level: 7 }])
  assert.ok(isDenied('BOSS@corp.example'))
  assert.ok(!isDenied('other@corp.example'))
})

test('a denied e-mail address is removed from thousands of names in lists and objects in one pass', () => {
  const count = 4000
  const names = Array.from({ length: count }, (_, n) => `name${n}`)
  const within = Object.fromEntries(names.map(name => [name, { mail: 'another way' }]))
  const answer = {
    ...{ sub: ADDRESS, email: ADDRESS, email_verified: false, list: Array(count).fill({ a: ADDRESS, b: 1 }) },
    ...within,
    ...Object.fromEntries(names.map(name => [`${name}.mail`, ADDRESS])),
    ...Object.fromEntries(names.map(name => [`other-${name}`, ADDRESS])),
    'list.a': ADDRESS,
  }
  const { answers } = trustEmails([answer], { fields, emailVerified: { email_verified: [true] } })
  // A name with dots is another way to the same path.
  assert.deepEqual(answers, [
    {
      ...{ sub: ADDRESS, email_verified: false, list: Array(count).fill({ b: 1 }) },
      ...Object.fromEntries(names.map(name => [name, {}])),
    },
  ])
})
