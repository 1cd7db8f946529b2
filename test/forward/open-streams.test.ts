// Streams whose sessions cannot be looked at: they stay, and the log says it once for each outage.
import assert from 'node:assert/strict'
import test from 'node:test'
import { MenshenError } from '../../src/errors.ts'
import { createOpenStreams } from '../../src/gateway/forward/open-streams.ts'

const OBSERVED = {
  requestId: 'a-request',
  startedAt: 0,
  method: 'GET',
  path: '/',
  outcome: 'admitted' as const,
  address: '127.0.0.1',
}

test('100 open streams write one warning for an outage of the store, and one for the next', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let isAway = true
  const reported: string[] = []
  const getFresh = async () => {
    if (isAway) throw new MenshenError('store_unavailable', 'away')
    return undefined
  }
  const streams = createOpenStreams({ getCached: () => undefined, getFresh }, code => reported.push(code))
  t.after(() => streams.stop())
  let closed = 0
  const open = () => streams.add(OBSERVED, 'ticket', () => closed++)
  const second = async () => {
    t.mock.timers.tick(1000)
    await new Promise(setImmediate)
  }
  for (let n = 0; n < 100; n++) open()
  for (let n = 0; n < 5; n++) await second()
  assert.deepEqual(reported, ['streams_unchecked'])
  assert.equal(closed, 0)

  isAway = false
  await second()
  assert.equal(closed, 100)
  isAway = true
  for (let n = 0; n < 5; n++) await second()
  assert.deepEqual(reported, ['streams_unchecked', 'streams_unchecked'])
})
