// A test file with nothing wrong. watchdog.test.ts runs it beside one that blocks.
import test from 'node:test'

test('this test passes beside a file that blocks', () => {})
