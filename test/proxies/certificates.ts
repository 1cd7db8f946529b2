// Certificates for a test: an authority, and whatever it has signed.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requireProgram } from '../kit/requirements.ts'

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

interface Certificate {
  certFile: string
  keyFile: string
}

export function makeAuthority(folder: string, days = 2): Certificate {
  return selfSigned(folder, 'ca', days, ['-addext', 'basicConstraints=critical,CA:TRUE'])
}

/** For localhost and 127.0.0.1 unless another name is given. */
export function makeCertificate(folder: string, name: string, ca: Certificate, host?: string, days = 2): Certificate {
  const [certFile, keyFile, request] = ['crt', 'key', 'csr'].map(end => join(folder, `${name}.${end}`)) as [
    string,
    string,
    string,
  ]
  const extensions = join(folder, `${name}.ext`)
  writeFileSync(extensions, `subjectAltName=${host ? `DNS:${host}` : 'DNS:localhost,IP:127.0.0.1'}\n`)
  openssl('req', ...KEY, '-keyout', keyFile, '-out', request, '-subj', `/CN=${name}`)
  const signer = ['-CA', ca.certFile, '-CAkey', ca.keyFile, '-CAcreateserial']
  openssl('x509', '-req', '-in', request, '-out', certFile, '-days', String(days), ...signer, '-extfile', extensions)
  return { certFile, keyFile }
}

export function filesOf({ certFile, keyFile }: Certificate) {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile) }
}

function selfSigned(folder: string, name: string, days: number, more: string[]): Certificate {
  const [certFile, keyFile] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
  const subject = ['-days', String(days), '-subj', `/CN=${name}`, ...more]
  openssl('req', '-x509', ...KEY, '-keyout', keyFile, '-out', certFile, ...subject)
  return { certFile, keyFile }
}

function openssl(...args: string[]): void {
  execFileSync(requireProgram('openssl'), args, { stdio: 'pipe' })
}
