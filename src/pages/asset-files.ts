// The scripts and styles of browser/, read once, each at an address that changes with its content.

import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { OWN_PATHS } from '../own-paths.ts'

interface Asset {
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

export const ASSETS: ReadonlyMap<string, Asset> = new Map(
  readdirSync(FOLDER).flatMap(name => {
    const type = TYPES[extname(name)]
    if (!type) return []
    const body = readFileSync(new URL(name, FOLDER))
    return [[name, { type, body, version: hash('sha256', body, 'base64url').slice(0, 12) }] as const]
  }),
)

export function assetUrl(name: string): string {
  const asset = ASSETS.get(name)
  if (!asset) throw new Error(`browser/${name} is missing`)
  return `${OWN_PATHS.assets}${name}?v=${asset.version}`
}
