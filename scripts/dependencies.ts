// The packages that `npm install menshen` can install, on any platform, from the lockfile.
import { readFileSync } from 'node:fs'

/** Licences that require only that their text stays with the code. Another one is a decision, not an upgrade. */
export const ALLOWED_LICENCES = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']

interface LockedPackage {
  readonly version: string
  readonly license?: string
  readonly dev?: boolean
  /** Required by a development dependency and optional for another package. */
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
