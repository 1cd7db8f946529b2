// The files that the configuration of upstreams names: certificates, keys, the values of headers, and icons.

import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { type Problem, refuseIf } from '../errors.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { readSmallText, SmallFileError } from '../util/small-file.ts'
import { problemAt } from './issue-text.ts'
import { filesOfIcons, iconProblems } from './portal.ts'
import { revealReference } from './secret-references.ts'
import {
  HEADER_TEXT,
  listUpstreams,
  MAX_HEADER_VALUE_LENGTH,
  type UpstreamConfig,
  type UpstreamsConfig,
} from './upstreams.ts'

/** The contents of the files. */
export interface UpstreamFiles {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  /** Keyed by the name of the header. */
  readonly headers: Readonly<Record<string, string>>
}

const MAX_FILE_BYTES = 1024 * 1024
const TLS_FILES = ['caFile', 'certFile', 'keyFile'] as const

/** All files, keyed by the path in the configuration that names them. */
export function filesOfUpstreams(config: UpstreamsConfig): Map<string, string> {
  const files = filesOfIcons(config)
  for (const { path, option } of listUpstreams(config)) {
    if (typeof option === 'string') continue
    const optionPath = path.join('.')
    for (const name of TLS_FILES) {
      const file = option[name]
      if (file !== undefined) files.set(`${optionPath}.${name}`, file)
    }
    for (const [name, value] of Object.entries(option.headers ?? {}))
      if (typeof value === 'object' && value.file !== undefined) files.set(`${optionPath}.headers.${name}`, value.file)
  }
  return files
}

/** Refuses the files with all of their problems. No message contains any of their content. */
export function assertUpstreamFiles(config: UpstreamsConfig, source?: string): void {
  const problems = iconProblems(config, source)
  for (const { path, option } of listUpstreams(config))
    if (typeof option === 'object') readChecked(path.join('.'), option, source, problems)
  refuseIf(problems)
}

/** Throws if one of them cannot be used. */
export function readUpstreamFiles(prefix: string, option: UpstreamConfig): UpstreamFiles {
  const problems: Problem[] = []
  const files = readChecked(`upstreams.${prefix}`, option, undefined, problems)
  refuseIf(problems)
  return files
}

/** `below` is the path of the upstream in the configuration. */
function readChecked(
  below: string,
  option: UpstreamConfig,
  source: string | undefined,
  problems: Problem[],
): UpstreamFiles {
  const refuse = (field: string, given: Phrase) => void problems.push(problemAt(source, `${below}.${field}`, given))
  const read = (field: string, file: string | undefined): string | undefined => {
    if (file === undefined) return undefined
    try {
      return readSmallText(file, MAX_FILE_BYTES)
    } catch (error) {
      if (!(error instanceof SmallFileError)) throw error
      refuse(field, phrase('config.file_unreadable', { file, code: error.reason }))
      return undefined
    }
  }
  const { caFile, certFile, keyFile, headers = {} } = option
  const [ca, cert, key] = [read('caFile', caFile), read('certFile', certFile), read('keyFile', keyFile)]
  if (ca !== undefined && !holdsCertificate(ca))
    refuse('caFile', phrase('config.no_certificate', { file: String(caFile) }))
  if (cert !== undefined && key !== undefined) {
    const code = pairProblem(cert, key)
    if (code !== undefined)
      refuse('certFile', phrase('config.pair_unusable', { cert: String(certFile), key: String(keyFile), code }))
  }
  const values: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') continue
    const { file } = value
    const text = file === undefined ? revealReference(value) : read(`headers.${name}`, file)?.replace(/\r?\n$/, '')
    if (text === undefined) continue
    values[name] = text
    if (!HEADER_TEXT.test(text) || text.length > MAX_HEADER_VALUE_LENGTH)
      refuse(
        `headers.${name}`,
        phrase('config.header_file', { file: file ?? value.env ?? '', limit: MAX_HEADER_VALUE_LENGTH }),
      )
  }
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), headers: values }
}

function holdsCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}

/** Why a certificate and a key cannot be used together. */
function pairProblem(cert: string, key: string): string | undefined {
  try {
    createSecureContext({ cert, key })
    return undefined
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code)
  }
}
