// The version of an entry: no other content of its key has ever had the same one.

import assert from 'node:assert/strict'
import test from 'node:test'
import { nextVersion } from '../../src/stores/store.ts'

test('replacements of the same version, as after a failover that lost a write, get different versions', () => {
  const old = { version: 1000 }
  const versions = new Set(Array.from({ length: 100 }, () => nextVersion(old)))
  assert.ok(versions.size > 98, 'equal ones are as rare as one in a billion')
  assert.ok(!versions.has(old.version))
})

test('every version is a safe integer, however many versions there were before', () => {
  let entry = { version: Number.MAX_SAFE_INTEGER - 1 }
  for (let n = 0; n < 1000; n++) {
    const version = nextVersion(entry)
    assert.ok(Number.isSafeInteger(version) && version >= 0 && version !== entry.version)
    entry = { version }
  }
})
