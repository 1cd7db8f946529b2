// `npm version` gives what is unreleased its version, and refuses to release nothing.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { withVersion } from '../../scripts/changelog.ts'

const CHANGELOG = readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8')

test('a release moves the unreleased changes below its version and a new Unreleased heading, and is refused without changes', () => {
  const before = '# Changelog\n\n## Unreleased\n\n### Sign-in\n- News.\n\n## 0.1.0\n- Old.\n'
  const after = '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-03-01)\n\n### Sign-in\n- News.\n\n## 0.1.0\n- Old.\n'
  assert.equal(withVersion(before, '0.2.0', '2026-03-01'), after)
  assert.throws(() => withVersion(after, '0.3.0', '2026-03-02'), /nothing stands under "## Unreleased"/)
  assert.throws(() => withVersion('# Changelog\n', '0.2.0', '2026-03-01'), /expected one heading/)
})

test('the changelog starts with the heading Unreleased, followed by the heading of this version', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const headings = [...CHANGELOG.matchAll(/^## (\S+)/gm)].map(([, name]) => name)
  assert.deepEqual(headings.slice(0, 2), ['Unreleased', version])
})
