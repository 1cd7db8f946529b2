// Part of `npm version`: the entries under "Unreleased" in CHANGELOG.md become the new version's.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const CHANGELOG = new URL('../CHANGELOG.md', import.meta.url)
const UNRELEASED = '## Unreleased\n'

/** `date` is a day, for example 2026-03-01. Throws if there is nothing to tell users. */
export function withVersion(changelog: string, version: string, date: string): string {
  const [before, after, ...more] = changelog.split(UNRELEASED)
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error('CHANGELOG.md: expected one heading "## Unreleased".')
  const news = after.split(/^## /m)[0] ?? ''
  if (news.trim() === '') throw new Error('CHANGELOG.md: nothing stands under "## Unreleased"; say what is new.')
  if (changelog.includes(`\n## ${version} `)) throw new Error(`CHANGELOG.md: ${version} is there already.`)
  return `${before}${UNRELEASED}\n## ${version} (${date})\n${after}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const version = process.env.npm_package_version ?? ''
  const today = new Date().toISOString().slice(0, 10)
  writeFileSync(CHANGELOG, withVersion(readFileSync(CHANGELOG, 'utf8'), version, today))
}
