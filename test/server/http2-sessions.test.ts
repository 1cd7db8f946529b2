// What is left in memory of connections of HTTP/2 that have ended: nothing.

import { performServerHandshake } from 'node:http2'
import { PassThrough } from 'node:stream'
import test from 'node:test'
import { queryObjects } from 'node:v8'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { fuzzHttp2 } from '../security/fuzz-http2.ts'
import { createRandom } from '../security/random.ts'

/** Five of them end in an error before they have confirmed our SETTINGS. */
const CONNECTIONS = 100

test('no HTTP/2 session stays in memory after 100 fuzzed connections have ended', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  const { url } = await openGateway(t, { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile })
  const Session = sessionClass()
  const count = () => queryObjects(Session, { format: 'count' })
  const before = count()
  const ends: (() => void)[] = []
  await fuzzHttp2({ after: end => void ends.push(end as () => void) }, url, createRandom(1), CONNECTIONS)
  for (const end of ends) end()
  await until(() => count() <= before)
})

/** Node does not export it. */
function sessionClass() {
  const session = performServerHandshake(new PassThrough())
  session.destroy()
  return session.constructor
}
