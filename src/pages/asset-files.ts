// The scripts and styles of browser/ and of the plotting library, read once, each at an address that changes with its content.

import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { OWN_PATHS } from '../own-paths.ts'

export interface Asset {
  readonly type: string
  readonly body: Buffer<ArrayBuffer>
  readonly version: string
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const FOLDER = new URL('../../browser/', import.meta.url)

/** Of others, by the names under which our own scripts and pages know them. */
const OF_OTHERS = {
  'uplot.js': 'uplot/dist/uPlot.esm.js',
  'uplot.css': 'uplot/dist/uPlot.min.css',
} as const

const FILES = [
  ...readdirSync(FOLDER).map(name => [name, new URL(name, FOLDER)] as const),
  ...Object.entries(OF_OTHERS).map(([name, file]) => [name, new URL(import.meta.resolve(file))] as const),
]

export const ASSETS: ReadonlyMap<string, Asset> = new Map(
  FILES.flatMap(([name, file]) => {
    const type = TYPES[extname(name)]
    if (!type) return []
    const body = readFileSync(file)
    return [[name, { type, body, version: hash('sha256', body, 'base64url').slice(0, 12) }] as const]
  }),
)

export function assetUrl(name: string): string {
  const asset = ASSETS.get(name)
  if (!asset) throw new Error(`browser/${name} is missing`)
  return `${OWN_PATHS.assets}${name}?v=${asset.version}`
}
