// The icon of an application: the file that the configuration names, or a tile with the first letter of the title.
//
// An icon has its own address, which cannot be guessed, so that it reveals nothing about the applications of other users:
//
//   /_menshen/portal/icons/<HMAC of its bytes>.svg
//
// A plain hash of the bytes would not do: the logos of well-known products are public, and anyone could ask for them one by one.

import { createHmac } from 'node:crypto'
import { readIcon } from '../config/portal.ts'
import { MenshenError } from '../errors.ts'
import { OWN_PATHS } from '../paths.ts'
import type { DerivedKeys } from '../session/derived-keys.ts'

export interface Icon {
  readonly path: string
  readonly type: string
  readonly body: Buffer<ArrayBuffer>
  /** The drawing of a tile, which is part of the page and needs no request. */
  readonly tile: string | undefined
}

/** Characters of the 256-bit HMAC: enough that no name can be guessed. */
const NAME_LENGTH = 22

/** Throws if the file has become unreadable since it was checked. */
export function createIcon(file: string | undefined, title: string, { icons: [key] }: DerivedKeys): Icon {
  const image = file === undefined ? undefined : readIcon(file)
  if (file !== undefined && !image) throw new MenshenError('bad_settings', `${file} is not a PNG or SVG any more.`)
  const tile = image ? undefined : letterTile(title)
  const { type, extension, body } = image ?? {
    type: 'image/svg+xml',
    extension: 'svg',
    body: Buffer.from(tile ?? ''),
  }
  const name = createHmac('sha256', key).update(body).digest('base64url').slice(0, NAME_LENGTH)
  return { path: `${OWN_PATHS.portal}/icons/${name}.${extension}`, type, body, tile }
}

/** White letters reach a contrast of 4.5 on each of them (WCAG 1.4.3). */
export const TILE_COLORS: readonly string[] = [
  ...['#b3403a', '#a8501f', '#8a6100', '#5d7019', '#2f7a41', '#14786a'],
  ...['#17748c', '#2569ad', '#4c5fc0', '#7350b5', '#95459c', '#ad3d72'],
]

/** Attributes, because the pages allow no inline styles. */
function letterTile(title: string): string {
  const color = TILE_COLORS[hashOf(title) % TILE_COLORS.length]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48" width="48" height="48" aria-hidden="true"><rect width="48" height="48" rx="11" fill="${color}"/><text x="24" y="24" dy=".36em" fill="#fff" font-family="system-ui, sans-serif" font-size="23" font-weight="600" text-anchor="middle">${escaped(letterOf(title))}</text></svg>`
}

/** Titles that differ little have different colours. */
function hashOf(text: string): number {
  let hash = 5381
  for (const character of text) hash = (hash * 33 + (character.codePointAt(0) ?? 0)) % 4_294_967_291
  return hash
}

/** The first letter or digit, or the first character of a title without any. */
function letterOf(title: string): string {
  const characters = Array.from(new Intl.Segmenter().segment(title.trim()), ({ segment }) => segment)
  return (characters.find(character => /[\p{L}\p{N}]/u.test(character)) ?? characters[0] ?? '').toUpperCase()
}

function escaped(text: string): string {
  return text.replace(/[<>&"']/g, character => `&#${character.charCodeAt(0)};`)
}
