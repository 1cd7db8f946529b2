// A test file whose main thread never comes back. watchdog.test.ts runs it.
import test from 'node:test'

test('this test blocks its main thread', () => {
  blockForEver()
})

function blockForEver(): never {
  for (let turns = 0; ; turns = (turns + 1) % 1000) Math.sqrt(turns)
}
