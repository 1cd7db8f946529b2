// The keys of a provider: found when they are new, asked for a few times only, and never too many of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exportJWK, type FlattenedJWSInput } from 'jose'
import { MenshenError } from '../../src/errors.ts'
import { createProviderKeys } from '../../src/provider/jwks.ts'
import { takeRs256Pair } from '../kit/rsa-keys.ts'

const { publicKey } = takeRs256Pair()
const JWK = { ...(await exportJWK(publicKey)), alg: 'RS256' }
const TOKEN: FlattenedJWSInput = { payload: '', signature: '' }
const HOUR = 3_600_000

function scene(kids: string[]) {
  const state = { now: HOUR, fetches: 0, kids, answer: undefined as Response | Error | undefined }
  const keys = createProviderKeys({
    url: async () => 'https://idp.example.com/keys',
    now: () => state.now,
    async fetch() {
      state.fetches++
      if (state.answer instanceof Error) throw state.answer
      return state.answer?.clone() ?? Response.json({ keys: state.kids.map(kid => ({ ...JWK, kid })) })
    },
  })
  const find = async (kid?: string) => keys(kid === undefined ? { alg: 'RS256' } : { alg: 'RS256', kid }, TOKEN)
  return { state, find }
}

test('provider keys are fetched once for parallel requests, and again immediately for an unknown kid', async () => {
  const { state, find } = scene(['k1'])
  await Promise.all([find('k1'), find('k1'), find('k1')])
  assert.equal(state.fetches, 1)
  state.kids.push('k2')
  await find('k2')
  await find('k2')
  assert.equal(state.fetches, 2)
})

test('thirty made-up key IDs cause at most ten fetches, and the right key is found in between', async () => {
  const { state, find } = scene(['k1'])
  for (let n = 0; n < 30; n++) {
    await assert.rejects(find(`made-up-${n}`))
    await find('k1')
  }
  assert.ok(state.fetches <= 10, String(state.fetches))
  state.kids.push('k2')
  await assert.rejects(find('k2'))
  state.now += 60_000
  await find('k2')
})

test('a new key is found a minute after the clock was set back, also if made-up key IDs had used up all fetches', async () => {
  const { state, find } = scene(['k1'])
  state.now = 10 * HOUR
  for (let n = 0; n < 30; n++) await assert.rejects(find(`made-up-${n}`))
  state.now -= 5 * HOUR
  await assert.rejects(find('k2'))
  state.kids.push('k2')
  state.now += 60_000
  await find('k2')
})

test('old keys stay valid while fetching fails, at most ten fetches are made, and withdrawn keys are later rejected', async () => {
  const { state, find } = scene(['k1'])
  await find('k1')
  state.now += 2 * HOUR
  state.answer = new MenshenError('provider_unreachable', 'no connection')
  for (let n = 0; n < 30; n++) await find('k1')
  assert.ok(state.fetches <= 10, String(state.fetches))
  state.now += HOUR
  state.answer = undefined
  state.kids = ['k9']
  await assert.rejects(find('k1'))
})

test('unusable key sets fail with provider_answer, cause at most ten fetches, and are fetched again later', async () => {
  const { state, find } = scene(['k1'])
  const many = Array.from({ length: 10_000 }, (_, n) => ({ ...JWK, kid: `k${n}` }))
  for (const answer of [
    Response.json({ keys: many }),
    Response.json({ keys: 'k1' }),
    Response.json({ keys: [null] }),
    Response.json([]),
    new Response('<html>'),
    new Response('{}', { status: 500 }),
  ]) {
    state.answer = answer
    state.now += 1000
    await assert.rejects(find('k1'), { code: 'provider_answer' })
  }
  const asked = state.fetches
  for (let n = 0; n < 30; n++) await assert.rejects(find('k1'), { code: 'provider_answer' })
  assert.ok(state.fetches - asked <= 10, String(state.fetches - asked))
  state.answer = undefined
  state.now += 1000
  await find('k1')
})

test('without a kid the only matching key is used, and several matching keys are an error', async () => {
  await scene(['k1']).find()
  await assert.rejects(scene(['k1', 'k2']).find())
})
