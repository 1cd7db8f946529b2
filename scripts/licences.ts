// Writes the table of licences into docs/releasing.md, from the lockfile: `npm run docs`. It has the packages of all platforms.
// A test fails when the two differ.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { withTable } from './generated-table.ts'

export const LICENCES_PAGE = new URL('../docs/releasing.md', import.meta.url)

/** Those that ask for no more than that their text stays with the code. Another one is a decision, not an upgrade. */
export const ALLOWED = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']

interface LockedPackage {
  readonly version: string
  readonly license?: string
  readonly dev?: boolean
  /** Wanted by a development dependency and optional for somebody else. */
  readonly devOptional?: boolean
}

export interface Dependency {
  readonly name: string
  readonly version: string
  /** As an SPDX expression; empty if the package does not say. */
  readonly licence: string
  /** Where npm puts it. */
  readonly folder: string
}

/** Whatever `npm install menshen` can bring, anywhere. */
export function productionDependencies(): Dependency[] {
  const lockfile = readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')
  const packages: Record<string, LockedPackage> = JSON.parse(lockfile).packages
  return Object.entries(packages)
    .filter(([folder, { dev, devOptional }]) => folder !== '' && !dev && !devOptional)
    .map(([folder, { version, license: licence = '' }]) => {
      const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return { name, version, licence, folder }
    })
}

export function withLicences(page: string): string {
  const byLicence = Map.groupBy(productionDependencies(), ({ licence }) => licence)
  const rows = [...byLicence]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([licence, packages]) => [licence, packages.map(({ name, version }) => `${name}@${version}`).join(', ')])
  return withTable(page, ['licence', 'packages'], rows)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(LICENCES_PAGE, withLicences(readFileSync(LICENCES_PAGE, 'utf8')))
