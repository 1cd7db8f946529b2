// The examples hold what the code says, and each is run by a test of its own or says that it was not.
import assert from 'node:assert/strict'
import test from 'node:test'
import { EXAMPLES, exampleWithClaims, readExample } from '../../examples/claims.ts'

for (const example of Object.keys(EXAMPLES))
  test(`examples/${example} drops the claims that the gateway drops, as \`npm run docs\` writes them`, () => {
    assert.equal(readExample(example), exampleWithClaims(example, readExample(example)))
  })
