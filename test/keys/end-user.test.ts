// Ending a user: what was done is reported, even if the store fails in between.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Report } from '../../src/events.ts'
import { endUser } from '../../src/keys/end-user.ts'
import type { ListedSession } from '../../src/session/listing.ts'

const session = (provider?: string): ListedSession => ({
  key: 'k',
  expiresAt: 1,
  summary: {
    username: 'zhangsan',
    nickname: '',
    userRole: 'common',
    signedInAt: 0,
    seenAt: 0,
    ...(provider && { provider }),
  },
})

function listing(sessions: readonly ListedSession[], error?: Error) {
  return {
    async *endNamed() {
      yield* sessions
      if (error) throw error
    },
  }
}

test('endUser reports what it ended before the store failed, and rejects with the store’s error', async () => {
  const reported: object[] = []
  const report: Report = (event, fields) => void reported.push({ event, ...fields })
  const sessions = [listing([session('staff'), session('partners'), session('staff')], new Error('gone'))]
  let revoked = 2
  const keys = { revokeOf: async () => revoked-- }
  await assert.rejects(endUser({ sessions, keys, report }, 'zhangsan', { by: 'machine' }), /gone/)
  assert.deepEqual(reported, [
    { event: 'key_revoked', by: 'machine', user: 'zhangsan', revoked: 2 },
    { event: 'session_ended', by: 'machine', user: 'zhangsan', provider: 'staff', ended: 2 },
    { event: 'session_ended', by: 'machine', user: 'zhangsan', provider: 'partners', ended: 1 },
  ])
})

test('endUser also revokes a key created before the sessions ended, and reports nothing if nothing was ended', async () => {
  const reported: string[] = []
  const report: Report = event => void reported.push(event)
  const counts = [1, 1, 0, 0]
  const keys = { revokeOf: async () => counts.shift() ?? 0 }
  const parts = { sessions: [listing([session()])], keys, report }
  assert.deepEqual(await endUser(parts, 'zhangsan', { by: 'command' }), { ended: 1, keys: 2 })
  assert.deepEqual(reported, ['key_revoked', 'session_ended'])
  assert.deepEqual(await endUser({ ...parts, sessions: [listing([])] }, 'lisi', { by: 'command' }), {
    ended: 0,
    keys: 0,
  })
  assert.equal(reported.length, 2)
})
