// Whether the certificate that this server itself shows can be read, and for how long it is good.
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { phrase } from '../../phrases.ts'
import { printable } from '../../settings/json-place.ts'
import type { Settings } from '../../settings/read.ts'
import { type Finding, failure, good, type Probe, reasonOf, warning } from './finding.ts'
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
    const until = new Date(validTo).toISOString()
    const seen =
      days < 0
        ? phrase('certificate_expired', { subject: name, days: -days, until })
        : phrase('certificate_valid', { subject: name, days, until })
    const remedy = phrase('renew_own_certificate')
    if (days < 0) return failure('certificate', seen, remedy)
    return days < RENEW_DAYS ? warning('certificate', seen, remedy) : good('certificate', seen)
  } catch (error) {
    const seen = phrase('certificate_unreadable', { code: reasonOf(error) })
    return failure('certificate', seen, phrase('make_certificate_readable'))
  }
}
