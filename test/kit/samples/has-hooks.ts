// A test file with hooks. shared-process.test.ts runs it beside another, whose tests they must not reach.
import { afterEach, beforeEach, test } from 'node:test'

beforeEach(t => void process.stdout.write(`before: ${t.name}\n`))
afterEach(t => void process.stdout.write(`after: ${t.name}\n`))

test('this test has hooks', () => {})
