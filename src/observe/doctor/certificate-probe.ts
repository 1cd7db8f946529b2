// Whether the certificate that this server itself shows can be read, and for how long it is good.
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { printable } from '../../settings/json-place.ts'
import type { Settings } from '../../settings/read.ts'
import { codeOf, type Finding, failure, good, type Probe, warning } from './finding.ts'
import { DAY_MS, RENEW_DAYS } from './reach.ts'

interface Options {
  readonly settings: Pick<Settings, 'TLS_CERT_FILE'>
  readonly now: () => number
}

export function certificateProbes({ settings, now }: Options): Probe[] {
  const file = settings.TLS_CERT_FILE
  return file === undefined ? [] : [{ name: 'certificate', run: async () => [await probeFile(file, now())] }]
}

async function probeFile(file: string, now: number): Promise<Finding> {
  try {
    // The first of the file is the server's own.
    const { subject, validTo } = new X509Certificate(await readFile(file))
    const days = Math.floor((Date.parse(validTo) - now) / DAY_MS)
    const name = printable(subject.replaceAll('\n', ', '), 200)
    const seen = `${name}, ${days < 0 ? `expired ${-days} days ago` : `valid for ${days} more days`}, until ${validTo}`
    const remedy = 'Put a new certificate into TLS_CERT_FILE: it is read again when it changes.'
    if (days < 0) return failure('certificate', seen, remedy)
    return days < RENEW_DAYS ? warning('certificate', seen, remedy) : good('certificate', seen)
  } catch (error) {
    const remedy = 'Make TLS_CERT_FILE a file in PEM that this user can read.'
    return failure('certificate', `TLS_CERT_FILE cannot be read (${codeOf(error)})`, remedy)
  }
}
