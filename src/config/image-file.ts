// LOGO_FILE and the icons of the portal: an image that browsers show, small enough for every page, and without active content.
import { z } from 'zod'
import { readSmallFile } from '../util/small-file.ts'
import type { Kind } from './kinds.ts'

export interface Image {
  readonly type: string
  /** The extension of its file name. */
  readonly extension: string
  readonly body: Buffer<ArrayBuffer>
}

const MAX_IMAGE_BYTES = 256 * 1024

/** Recognized by their first bytes: a file name can be wrong. */
const SIGNATURES = [
  { type: 'image/png', extension: 'png', at: 0, bytes: '\x89PNG\r\n\x1a\n' },
  { type: 'image/jpeg', extension: 'jpg', at: 0, bytes: '\xff\xd8\xff' },
  { type: 'image/webp', extension: 'webp', at: 8, bytes: 'WEBP' },
] as const

/**
 * What makes an SVG more than a drawing: scripts, handlers, embedded pages, entities, and anything fetched from elsewhere. Browsers
 * run none of it in an `<img>`, but anyone can open the file by its own address.
 */
const ACTIVE = [
  /<\s*(?:[^\s<>/:]+:)?(?:script|foreignObject|iframe|object|embed|handler|listener|set|animate\w*|a)\b/i,
  /\son\w+\s*=/i,
  /<!(?:DOCTYPE|ENTITY)/i,
  /<\?xml-stylesheet/i,
  /(?:javascript|vbscript)\s*:/i,
  /\bhref\s*=\s*["']?\s*(?!["'#]|data:image\/(?:png|jpeg|webp);)/i,
  /@import|url\(\s*["']?\s*(?!["'#]|data:)/i,
  // Character references or another encoding would make any of them look harmless.
  /&#/,
  /^\s*<\?xml[^>]*\sencoding\s*=\s*["'](?!utf-8["'])/i,
]

/** `undefined` if the file is not such an image. */
export function readImage(path: string, maxBytes = MAX_IMAGE_BYTES): Image | undefined {
  try {
    return imageOf(readSmallFile(path, maxBytes))
  } catch {
    return undefined
  }
}

function imageOf(body: Buffer<ArrayBuffer>): Image | undefined {
  const found = SIGNATURES.find(({ at, bytes }) => body.toString('latin1', at, at + bytes.length) === bytes)
  if (found) return { type: found.type, extension: found.extension, body }
  return isDrawing(body) ? { type: 'image/svg+xml', extension: 'svg', body } : undefined
}

function isDrawing(body: Buffer): boolean {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  return (
    /^\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--[^>]*-->\s*)*<svg[\s>]/.test(text) && !ACTIVE.some(pattern => pattern.test(text))
  )
}

export const imageFile: Kind<string> = {
  type: 'string',
  file: 'read',
  check: z.string().refine(path => readImage(path) !== undefined),
  expected:
    'the path of an image of at most 256 KB: PNG, JPEG, WebP, or SVG with drawings only (no scripts, links, animations or references)',
  example: '/etc/menshen/logo.svg',
}
