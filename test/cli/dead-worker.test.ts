// A worker that dies in the midst of a reload.
import assert from 'node:assert/strict'
import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import test from 'node:test'
import { ask } from '../../src/cli/reload-workers.ts'

const USE = { reload: 'use', id: 1, tells: true } as const

test('one that has died since it was ready is not waited for', async () => {
  const worker = Object.assign(new EventEmitter(), { isDead: () => true, isConnected: () => false, process: {} })
  assert.equal(await ask(worker as unknown as Worker, USE), undefined)
  assert.deepEqual(worker.eventNames(), [])
})

test('one that dies while it is asked is not waited for either', async () => {
  const worker = Object.assign(new EventEmitter(), {
    isDead: () => false,
    isConnected: () => true,
    process: {},
    send: () => worker.emit('exit', 1),
  })
  assert.equal(await ask(worker as unknown as Worker, USE), undefined)
  assert.deepEqual(worker.eventNames(), [])
})
