// The console's page of health: findings, times, versions, certificates, processes.
import assert from 'node:assert/strict'
import test from 'node:test'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

const PATH = '/_menshen/console/health'

test('the page shows how long provider and store take, the versions, and the processes that are alive', async t => {
  const scene = await setUp(t)
  const { status, text } = await (await scene.user('admin')).get(PATH)
  assert.equal(status, 200)
  const times = [...text.matchAll(/<th scope="row"[^>]*>(请求|身份认证平台|存储)<\/th>.*?<span>([^<]+)<\/span>/g)]
  assert.deepEqual(
    times.map(([, what]) => what),
    ['请求', '身份认证平台', '存储'],
  )
  for (const [, what, p50] of times) if (what !== '请求') assert.match(`${what} ${p50}`, / \d+(\.\d)? ms$/)
  assert.match(text, new RegExp(`Node ${process.versions.node.replaceAll('.', '\\.')}，存储为 memory`))
  assert.match(text, new RegExp(`本进程[\\s\\S]*<span>${process.pid}</span>`))
})

test('how long our own certificate is good for is among the findings', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'gate', makeAuthority(folder))
  const scene = await setUp(t, { env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } })
  const { text } = await (await scene.user('admin')).get(PATH)
  assert.match(text, /title="certificate">证书<[\s\S]{0,200}CN=gate，还有 \d+ 天到期/)
})
