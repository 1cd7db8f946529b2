// A test file whose process does not end after its test. watchdog.test.ts runs it.
import { createServer } from 'node:net'
import test from 'node:test'

test('this test leaves a server open', () => {
  createServer().listen(0)
})
