// The SBOM of what is installed with Menshen, filtered from npm's SBOM of everything: with `--omit=dev`, npm would leave out a
// package that we need if a development dependency needs it, too. Fields that would differ the next time are removed.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { productionDependencies } from './dependencies.ts'

const sbomShape = z.looseObject({
  metadata: z.looseObject({ component: z.looseObject({ 'bom-ref': z.string() }) }),
  components: z.array(z.looseObject({ 'bom-ref': z.string() })),
  dependencies: z.array(z.looseObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
})

/** `text` is npm's SBOM; `committedAt` is in seconds since 1970, or 0 if unknown. */
export function productionSbom(text: string, committedAt: number): object {
  const { serialNumber: _serial, ...sbom } = sbomShape.parse(JSON.parse(text))
  const { timestamp: _now, ...metadata } = sbom.metadata
  const { name } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const wanted = new Set(productionDependencies().map(({ name, version }) => `${name}@${version}`))
  const isWanted = (ref: string) => wanted.has(ref)
  const isOurs = (ref: string) => ref === metadata.component['bom-ref']
  const lasting = {
    ...sbom,
    metadata: {
      ...(committedAt > 0 ? { timestamp: new Date(committedAt * 1000).toISOString() } : {}),
      ...metadata,
      // npm uses the name of the folder.
      component: { ...metadata.component, name },
    },
    components: sbom.components.filter(component => isWanted(component['bom-ref'])),
    dependencies: sbom.dependencies
      .filter(({ ref }) => isOurs(ref) || isWanted(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isWanted) })),
  }
  return { ...lasting, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(lasting))}` }
}

/** A UUID of version 8: the first bits of a hash. */
function uuidOf(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex')
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`, `8${hash.slice(17, 20)}`]
  return [...parts, hash.slice(20, 32)].join('-')
}
