// The fuzzer of HTTP/2 frames for minutes, and the floods again and again: nothing ends the process, and no memory is left behind.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { cookieOf } from '../kit/client.ts'
import { ask, openHttp2 } from '../kit/http2-client.ts'
import { FRAME, frame, number, openFrames, requestFrame } from '../kit/http2-frames.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { fuzzHttp2 } from '../security/fuzz-http2.ts'
import { createRandom } from '../security/random.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
const CONNECTIONS = 2000
const MEMORY_LIMIT_MB = 20

test('20,000 connections with damaged HTTP/2 frames and floods of resets break nothing and leak no memory', {
  timeout: 1_800_000,
}, async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  const strange: unknown[] = []
  const scene = await setUp(t, {
    env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile },
    answer(request, response) {
      if (request.headers['x-injected'] || !request.url?.startsWith('/')) strange.push([request.url, request.headers])
      response.end('hello')
    },
  })
  const cookie = ['cookie', cookieOf(await scene.user())] as const
  const cleanups: (() => unknown)[] = []
  const own = { after: (cleanup: () => unknown) => void cleanups.push(cleanup) }
  const finish = async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup()
  }
  let before = 0
  for (const seed of SEEDS) {
    await fuzzHttp2(own, scene.url, createRandom(seed), CONNECTIONS, seed % 2 === 0 ? [cookie] : [])
    for (let n = 0; n < 8; n++) {
      const connection = await openFrames(own, scene.url)
      for (let stream = 1; stream < 40_000; stream += 200) {
        const pair = (id: number) => [requestFrame(id, '/', [cookie]), frame(FRAME.reset, 0, id, number(8))]
        const frames = Array.from({ length: 100 }, (_, n) => pair(stream + 2 * n)).flat()
        if (!(await connection.write(Buffer.concat(frames)))) break
      }
      await until(() => connection.isClosed)
    }
    const session = await openHttp2(own, scene.url)
    assert.equal((await ask(session, { ':path': '/', cookie: cookie[1] })).text, 'hello')
    await finish()
    t.diagnostic(`seed ${seed}: ${keptMb().toFixed(1)} MB`)
    // The first one warms up.
    before ||= keptMb()
  }
  assert.deepEqual(strange, [])
  // What the latest connections have left goes within seconds.
  await until(() => keptMb() - before < MEMORY_LIMIT_MB).catch(() =>
    assert.fail(`${(keptMb() - before).toFixed(1)} MB more`),
  )
})

/** Without garbage: a busy machine collects it later. */
function keptMb(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}
