// The certificate of our own server: read again when its files change, and when everything is.
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import type { Server } from 'node:https'
import type { Report } from '../../events.ts'

export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

const LOOK_EVERY_MS = 2000

export function watchCertificate(server: Server, files: CertificateFiles, report: Report) {
  let inUse = textOf(files)

  function use(): void {
    const text = textOf(files)
    server.setSecureContext(readCertificate(files))
    if (text !== inUse) report('certificate_reloaded', { file: files.certFile })
    inUse = text
  }

  function renew(): void {
    try {
      use()
    } catch (error) {
      report('certificate_refused', { file: files.certFile, err: error })
    }
  }

  const all = [files.certFile, files.keyFile]
  for (const file of all) watchFile(file, { interval: LOOK_EVERY_MS, persistent: false }, renew)
  return {
    renew,
    stop(): void {
      for (const file of all) unwatchFile(file)
    },
  }
}

export function readCertificate({ certFile, keyFile }: CertificateFiles) {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile), minVersion: 'TLSv1.2' as const }
}

function textOf({ certFile, keyFile }: CertificateFiles): string {
  return readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8')
}
