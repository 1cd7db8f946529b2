// Makes docs/licences.md from the lockfile: `npm run docs`. It has the packages of every platform, whichever this one is.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const LICENCES_PAGE = new URL('../docs/licences.md', import.meta.url)

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

export function licencesPage(): string {
  const dependencies = productionDependencies()
  const rows = dependencies.map(({ name, version, licence }) => `| \`${name}\` | ${version} | ${licence} |`)
  return `# Licences

Menshen is under [Apache-2.0](../LICENSE). These ${rows.length} packages come with it, some of them on one platform only. None of their code is
in Menshen's own package: npm installs each with the text of its licence. A test allows ${ALLOWED.join(', ')} and
nothing else. This page is made from the lockfile by \`npm run docs\`; the SBOM of a release has the same packages with their
hashes ([releasing](releasing.md)).

| package | version | licence |
|---|---|---|
${rows.join('\n')}
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(LICENCES_PAGE, licencesPage())
