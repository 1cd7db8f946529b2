// A test file whose main thread never comes back. watchdog.test.ts runs it.
import test from 'node:test'

test('this test blocks its main thread', () => {
  blockForEver()
})

function blockForEver(): never {
  for (;;);
}
