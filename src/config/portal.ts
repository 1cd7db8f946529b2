// How the portal shows an application: the keys of an entry of `upstreams` or `hosts`, and the files of the icons.

import { z } from 'zod'
import type { Problem } from '../errors.ts'
import { isOwnPath } from '../paths.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { type Image, readImage } from './image-file.ts'
import { problemAt } from './issue-text.ts'

export interface PortalKeys {
  /** Its name in the portal; by default the host name or the prefix. */
  readonly title?: string | undefined
  /** A sentence below the title. */
  readonly description?: string | undefined
  /** A PNG or SVG file of at most 64 KB. */
  readonly icon?: string | undefined
  /** The page that the portal opens; by default `/` or the prefix. Its rules decide who sees the application in the portal. */
  readonly start?: string | undefined
  /** `false` hides it from the portal. */
  readonly portal?: boolean | undefined
}

const MAX_TITLE_LENGTH = 100
const MAX_DESCRIPTION_LENGTH = 300
const MAX_START_LENGTH = 1000

const line = (longest: number) =>
  z.string().regex(/\S/, 'expected text').max(longest, `expected at most ${longest} characters`)

export const portalShape = {
  title: line(MAX_TITLE_LENGTH).optional(),
  description: line(MAX_DESCRIPTION_LENGTH).optional(),
  icon: z.string().min(1).optional(),
  start: z
    .string()
    .max(MAX_START_LENGTH, `expected at most ${MAX_START_LENGTH} characters`)
    .refine(isStart, 'expected a path of the application that begins with /, for example "/dashboard"')
    .meta({ pattern: '^/' })
    .optional(),
  portal: z.boolean().optional(),
}

/** The path of a page, with its query and its fragment if it has them. */
function isStart(start: string): boolean {
  if (!/^\/(?![/\\])[^\\\s\p{Cc}]*$/u.test(start)) return false
  const path = decoded(start.replace(/[?#].*$/s, ''))
  if (path === undefined || /\/\/|\/\.{1,2}(?:\/|$)|[\\%]|\p{Cc}/u.test(path)) return false
  return !isOwnPath(`${path}/`, [])
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}

// The applications of a configuration, as far as the portal needs them.

interface WithApplications {
  readonly upstreams?: Readonly<Record<string, string | PortalKeys>> | undefined
  readonly hosts?: Readonly<Record<string, PortalKeys>> | undefined
}

export interface PortalEntry {
  /** Where it is in the configuration. */
  readonly path: readonly string[]
  /** `undefined` for an application of BASE_URL. */
  readonly host: string | undefined
  /** Its default start and title. */
  readonly prefix: string
  readonly keys: PortalKeys
}

/** All applications, including hidden ones, in the order of the portal: `upstreams` without `/`, then `hosts`. */
export function portalEntries({ upstreams = {}, hosts = {} }: WithApplications): PortalEntry[] {
  const ofPrefixes = Object.entries(upstreams).flatMap(([prefix, option]) =>
    prefix === '/'
      ? []
      : [{ path: ['upstreams', prefix], host: undefined, prefix, keys: typeof option === 'string' ? {} : option }],
  )
  const ofHosts = Object.entries(hosts).map(([host, keys]) => ({ path: ['hosts', host], host, prefix: '/', keys }))
  return [...ofPrefixes, ...ofHosts]
}

/** A start outside of the prefix would open another application. */
export function refuseForeignStarts(
  config: WithApplications,
  refuse: (path: PropertyKey[], given: Phrase) => void,
): void {
  for (const { path, prefix, keys } of portalEntries(config)) {
    const start = decoded(keys.start?.replace(/[?#].*$/s, '') ?? prefix) ?? ''
    if (prefix !== '/' && start !== prefix && !start.startsWith(`${prefix}/`))
      refuse([...path, 'start'], phrase('config.start_below', { prefix, example: `"${prefix}${keys.start}"` }))
  }
}

// The files of the icons.

const MAX_ICON_BYTES = 64 * 1024
const ICON_TYPES: readonly string[] = ['image/png', 'image/svg+xml']

/** `undefined` for anything that is not an icon. */
export function readIcon(file: string): Image | undefined {
  const image = readImage(file, MAX_ICON_BYTES)
  return image && ICON_TYPES.includes(image.type) ? image : undefined
}

/** Keyed by the path in the configuration that names the file. */
export function filesOfIcons(config: WithApplications): Map<string, string> {
  const files = new Map<string, string>()
  for (const { path, keys } of portalEntries(config))
    if (keys.icon !== undefined) files.set(`${path.join('.')}.icon`, keys.icon)
  return files
}

export function iconProblems(config: WithApplications, source?: string): Problem[] {
  return [...filesOfIcons(config)].flatMap(([path, file]) =>
    readIcon(file) ? [] : [problemAt(source, path, phrase('config.icon', { file }))],
  )
}

/** The other keys of an application, so that a changed title leaves its connections as they are. */
export function withoutPortalKeys(keys: object): object {
  return Object.fromEntries(Object.entries(keys).filter(([name]) => !Object.hasOwn(portalShape, name)))
}
