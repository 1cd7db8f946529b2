// The look of the pages: our own files for the browser, and the mark and the colour of the organisation.

import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type Scheme, shadesOf } from '../config/accent-color.ts'
import type { Config, LoginPageConfig } from '../config/file.ts'
import { readImage } from '../config/image-file.ts'
import type { Settings } from '../config/settings.ts'
import { OWN_PATHS } from '../paths.ts'

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

/** Third-party files, by the names under which our own scripts and pages use them. */
const THIRD_PARTY_FILES = {
  'uplot.js': 'uplot/dist/uPlot.esm.js',
  'uplot.css': 'uplot/dist/uPlot.min.css',
} as const

const FILES = [
  ...readdirSync(FOLDER).map(name => [name, new URL(name, FOLDER)] as const),
  ...Object.entries(THIRD_PARTY_FILES).map(([name, file]) => [name, new URL(import.meta.resolve(file))] as const),
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

// What the pages look like: ours, or the organisation's own mark, colour, and words under the button.

export interface Branding {
  /** At the top of a page, and in the browser's tab. */
  readonly icon: { readonly url: string; readonly type: string }
  /** Addresses of styles that are loaded after ours. */
  readonly styles: readonly string[]
  /** For dialogs on pages of the application, where our styles are not; absent without ACCENT_COLOR. */
  readonly dialogColors?: DialogColors | undefined
  readonly loginPage: LoginPageConfig
  /** Keyed by the name in their address. */
  readonly assets: ReadonlyMap<string, Asset>
}

/** Each for light and dark pages, as CSS writes it. */
export type DialogColors = Readonly<Record<'accent' | 'onAccent' | 'link', string>>

export const DEFAULT_BRANDING: Branding = {
  icon: { url: assetUrl('icon.svg'), type: 'image/svg+xml' },
  styles: [],
  loginPage: {},
  assets: new Map(),
}

export function createBranding(settings: Pick<Settings, 'LOGO_FILE' | 'ACCENT_COLOR'>, config: Config): Branding {
  const { LOGO_FILE: logoFile, ACCENT_COLOR: accentColor } = settings
  const logo = logoFile === undefined ? undefined : readImage(logoFile)
  const assets = new Map<string, Asset>()
  const add = (name: string, type: string, body: Buffer<ArrayBuffer>): string => {
    const version = hash('sha256', body, 'base64url').slice(0, 12)
    assets.set(name, { type, body, version })
    return `${OWN_PATHS.assets}${name}?v=${version}`
  }
  return {
    icon: logo ? { url: add(`logo.${logo.extension}`, logo.type, logo.body), type: logo.type } : DEFAULT_BRANDING.icon,
    styles:
      accentColor === undefined
        ? []
        : [add('accent.css', 'text/css; charset=utf-8', Buffer.from(accentStyle(accentColor)))],
    dialogColors: accentColor === undefined ? undefined : dialogColors(accentColor),
    loginPage: config.loginPage ?? {},
    assets,
  }
}

function dialogColors(color: string): DialogColors {
  const [light, dark] = [shadesOf(color, 'light'), shadesOf(color, 'dark')]
  const both = (name: keyof DialogColors) => `light-dark(${light[name]}, ${dark[name]})`
  return { accent: both('accent'), onAccent: both('onAccent'), link: both('link') }
}

function accentStyle(color: string): string {
  return `:root{${variables(color, 'light')}}
@media (prefers-color-scheme: dark){:root{${variables(color, 'dark')}}}
`
}

function variables(color: string, scheme: Scheme): string {
  const { accent, accentStrong, onAccent, link } = shadesOf(color, scheme)
  return `--accent:${accent};--accent-strong:${accentStrong};--on-accent:${onAccent};--link:${link}`
}
