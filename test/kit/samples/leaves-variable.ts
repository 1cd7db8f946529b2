// A test file that changes the process. shared-process.test.ts runs it beside one with nothing wrong.
import test from 'node:test'

test('this test sets a variable', () => {
  process.env.LEFT_BEHIND = 'yes'
})
