// A worker that dies while the primary waits for its answer.
import assert from 'node:assert/strict'
import cluster, { type Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import test from 'node:test'
import { createWorkerChannel } from '../../src/cli/worker-messages.ts'

const USE = { type: 'use_reload', reload: 1, shouldReport: true } as const
/** Longer than the test may take. */
const DEADLINE_MS = 600_000

const channel = createWorkerChannel()

test('the primary does not wait for a worker that has died before it is asked', async () => {
  const worker = Object.assign(new EventEmitter(), { isDead: () => true, isConnected: () => false, process: {} })
  assert.equal(await channel.ask(worker as unknown as Worker, USE, DEADLINE_MS), undefined)
  assert.deepEqual(worker.eventNames(), [])
})

test('the primary does not wait for a worker that dies while it is asked', async () => {
  const worker = Object.assign(new EventEmitter(), {
    isDead: () => false,
    isConnected: () => true,
    process: {},
    send: () => cluster.emit('disconnect', worker as unknown as Worker),
  })
  assert.equal(await channel.ask(worker as unknown as Worker, USE, DEADLINE_MS), undefined)
  assert.deepEqual(worker.eventNames(), [])
})

test('the primary does not wait longer than the deadline for a worker that hangs', async () => {
  const worker = Object.assign(new EventEmitter(), {
    isDead: () => false,
    isConnected: () => true,
    process: {},
    send: () => true,
  })
  assert.equal(await channel.ask(worker as unknown as Worker, USE, 10), undefined)
})
