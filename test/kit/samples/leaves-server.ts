// A test file that leaves a server open. shared-process.test.ts runs it in a shared process.
import { once } from 'node:events'
import { createServer } from 'node:net'
import test from 'node:test'

test('this test leaves a server open', async () => {
  await once(createServer().listen(0, '127.0.0.1'), 'listening')
})
