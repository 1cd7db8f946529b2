import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Commands } from '../../../src/stores/redis/commands.ts'
import { createRedisTrail } from '../../../src/stores/redis/trail.ts'

test('each step of a page of the trail has its own deadline, so that a distant Redis can answer a long page', async () => {
  const deadlines: number[] = []
  const commands = {
    async eventsBackwards(_stream: string, start: string, count: number) {
      deadlines.push((deadlines.pop() ?? 0) + 1)
      const last = start === '+' ? 5000 : Number(/^\((\d+)-0$/.exec(start)?.[1])
      return Array.from({ length: Math.min(count, last - 1) }, (_, n) => ({
        id: Buffer.from(`${last - 1 - n}-0`),
        message: {},
      }))
    },
  } as unknown as Commands
  const trail = createRedisTrail(async work => {
    deadlines.push(0)
    return work({ commands })
  })
  assert.deepEqual(await trail.read({ tag: 'user zhangsan', limit: 50, scan: 10_000 }), { events: [] })
  assert.deepEqual(deadlines, [1, 1, 1, 1, 1])
})
