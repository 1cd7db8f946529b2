// The console's page of health: findings, times, versions, certificates, processes.
import assert from 'node:assert/strict'
import test from 'node:test'
import { healthPage } from '../../src/console/health-tab.ts'
import { failure, good, warning } from '../../src/doctor/finding.ts'
import { createLanguages } from '../../src/pages/words.ts'
import { quoted } from '../../src/text/text.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { healthSample } from '../pages/console-samples.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

const PATH = '/_menshen/console/health'

test('the health page shows the response times of provider and store, the versions and the running process', async t => {
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

test('the health page shows in how many days Menshen’s certificate expires', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'gate', makeAuthority(folder))
  const scene = await setUp(t, { env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } })
  const { text } = await (await scene.user('admin')).get(PATH)
  assert.match(text, /title="certificate">证书<[\s\S]{0,500}CN=gate，还有 \d+ 天到期/)
})

test('the health page folds passed checks and shows warnings and failures, failures first', () => {
  const words = createLanguages({ PAGE_LANGUAGE: 'en', APP_NAME: 'Portal' }, {}).get('en') ?? assert.fail()
  const seen = quoted('seen')
  const findings = [
    good('store', seen),
    warning('settings', seen, quoted('change it')),
    good('cookies', seen),
    failure('provider client', seen, quoted('mend it')),
  ]
  const page = healthPage(words, { ...healthSample, findings })
  const [open = '', folded = ''] = page.split('<details id="passed">')
  const namesIn = (html: string) => [...html.matchAll(/<span title="([^"]+)">/g)].map(([, name]) => name)
  assert.deepEqual(namesIn(open), ['provider client', 'settings'])
  assert.match(open, /data-state="down".*Failures: 1\. Warnings: 1\./s)
  assert.match(folded, /^<summary>2 checks passed<\/summary>/)
  assert.deepEqual(namesIn(folded), ['store', 'cookies'])
  const passed = healthPage(words, { ...healthSample, findings: findings.slice(0, 1) })
  assert.match(passed, /data-state="good".*All checks passed\..*<summary>1 check passed<\/summary>/s)
  assert.match(healthPage(words, { ...healthSample, findings: findings.slice(0, 2) }), /data-state="degraded"/)
})
