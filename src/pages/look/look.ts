// What the pages look like: ours, or the organisation's own mark, colour, and words under the button.
import { hash } from 'node:crypto'
import { OWN_PATHS } from '../../own-paths.ts'
import type { Config } from '../../settings/config/config-file.ts'
import type { LoginPageConfig } from '../../settings/config/login-page-config.ts'
import { readImage } from '../../settings/look/image-file.ts'
import { type Scheme, shadesOf } from '../../settings/look/shades.ts'
import type { Settings } from '../../settings/read.ts'
import { type Asset, assetUrl } from '../asset-files.ts'

export interface Look {
  /** At the top of a page, and in the browser's tab. */
  readonly icon: { readonly url: string; readonly type: string }
  /** Addresses of styles that come after ours. */
  readonly styles: readonly string[]
  readonly loginPage: LoginPageConfig
  /** By the name in their address. */
  readonly assets: ReadonlyMap<string, Asset>
}

export const OUR_LOOK: Look = {
  icon: { url: assetUrl('icon.svg'), type: 'image/svg+xml' },
  styles: [],
  loginPage: {},
  assets: new Map(),
}

export function createLook(settings: Pick<Settings, 'LOGO_FILE' | 'ACCENT_COLOR'>, config: Config): Look {
  const { LOGO_FILE: logoFile, ACCENT_COLOR: accentColor } = settings
  const logo = logoFile === undefined ? undefined : readImage(logoFile)
  const assets = new Map<string, Asset>()
  const add = (name: string, type: string, body: Buffer<ArrayBuffer>): string => {
    const version = hash('sha256', body, 'base64url').slice(0, 12)
    assets.set(name, { type, body, version })
    return `${OWN_PATHS.assets}${name}?v=${version}`
  }
  return {
    icon: logo ? { url: add(`logo.${logo.extension}`, logo.type, logo.body), type: logo.type } : OUR_LOOK.icon,
    styles:
      accentColor === undefined
        ? []
        : [add('accent.css', 'text/css; charset=utf-8', Buffer.from(accentStyle(accentColor)))],
    loginPage: config.loginPage ?? {},
    assets,
  }
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
