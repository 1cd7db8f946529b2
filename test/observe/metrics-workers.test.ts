// Any of several workers answers for all of them, also when one hangs or has died.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { cpSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createClient } from '../kit/client.ts'
import { isAlive, setUpInstances, signedIn } from '../kit/instance.ts'
import { scrape } from '../kit/scrape.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

const VISITORS = 'menshen_requests_total{outcome="visitor"}'
const SIGN_INS = 'menshen_sign_ins_total{result="ok"}'
const BURST = 40

test('with two workers a scrape returns the metrics of both', async t => {
  const { provider, start } = await setUpInstances(t, { WORKERS: '2' })
  const menshen = await start()
  const { url } = menshen
  await until(async () => (await scrape(url)).value('menshen_workers') === 2)

  const visit = () => Promise.all(Array.from({ length: BURST }, () => createClient(url).get('/')))

  await t.test('the sum of the metrics is the same from each worker', async () => {
    await visit()
    await signedIn(menshen, provider)
    for (const scraped of await Promise.all(Array.from({ length: 8 }, () => scrape(url)))) {
      assert.equal(scraped.value(VISITORS), BURST)
      assert.equal(scraped.value(SIGN_INS), 1)
      assert.equal(scraped.value('menshen_workers'), 2)
      assert.equal(scraped.sum('menshen_build_info'), 1)
    }
  })

  await t.test('warnings of all workers are summed', async () => {
    const refused = 'menshen_events_total{event="path_refused",level="warn"}'
    const before = (await scrape(url)).value(refused)
    await Promise.all(Array.from({ length: BURST }, () => createClient(url).get('/%00')))
    assert.equal((await scrape(url)).value(refused), before + BURST)
  })

  await t.test('a hanging worker is left out after a short wait, and no sum decreases', async () => {
    const [hanging = 0] = menshen.workers()
    process.kill(hanging, 'SIGSTOP')
    const scraped = await scrape(url)
    assert.equal(scraped.value('menshen_workers'), 1)
    assert.equal(scraped.value(VISITORS), BURST)
    assert.equal(scraped.value(SIGN_INS), 1)
    process.kill(hanging, 'SIGCONT')
    await until(async () => (await scrape(url)).value('menshen_workers') === 2)
  })

  await t.test('a scrape does not wait for a dead worker, and the counts that it had reported are kept', async () => {
    for (const worker of menshen.workers()) {
      process.kill(worker, 'SIGKILL')
      await until(() => !isAlive(worker))
      assert.equal((await scrape(url)).value(VISITORS), BURST)
      await until(async () => (await scrape(url)).value('menshen_workers') === 2)
    }
    await visit()
    const scraped = await scrape(url)
    // The first process reports it, which serves no metrics itself.
    assert.equal(scraped.value('menshen_events_total{event="worker_died",level="error"}'), 2)
    assert.equal(scraped.value(VISITORS), 2 * BURST)
    assert.equal(scraped.value(SIGN_INS), 1)
  })
})

test('the expiry of the certificate in use is not summed over workers and follows a reload', async t => {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const first = makeCertificate(folder, 'first', ca)
  const second = makeCertificate(folder, 'second', ca, undefined, 30)
  const { start } = await setUpInstances(t, {
    WORKERS: '2',
    TLS_CERT_FILE: first.certFile,
    TLS_KEY_FILE: first.keyFile,
  })
  const { url, lines } = await start()
  await until(async () => (await scrape(url)).value('menshen_workers') === 2)
  const shown = async () => (await scrape(url)).value('menshen_certificate_expiry_timestamp_seconds') * 1000
  const endOf = ({ certFile }: typeof first) => new X509Certificate(readFileSync(certFile)).validToDate.getTime()
  assert.equal(await shown(), endOf(first))
  cpSync(second.keyFile, first.keyFile)
  cpSync(second.certFile, first.certFile)
  await until(async () => (await shown()) === endOf(second))
  assert.deepEqual(
    lines.filter(({ level }) => level === 'error'),
    [],
  )
})
