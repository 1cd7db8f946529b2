// Seven tabs that each hold an event stream: more than a browser opens connections of HTTP/1.1 to one host.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { startBrowser } from '../kit/browser.ts'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})
after(() => browser?.close())

const PAGE = `<title>waiting</title><script>
new EventSource('/events').onmessage = ({ data }) => { document.title = data }
</script>`

test('seven tabs with an event stream each, and another page, work over HTTPS with HTTP/2', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  let open = 0
  const scene = await setUp(t, {
    env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile },
    now: Date.now(),
    answer(request, response) {
      if (request.url !== '/events') {
        response.setHeader('content-type', 'text/html')
        return void response.end(PAGE)
      }
      open++
      response.once('close', () => open--)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: stream ${open}\n\n`)
    },
  })
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  t.after(() => context.close())
  const cookie = cookieOf(await scene.user())
  const [name = '', value = ''] = cookie.split('=', 2)
  await context.addCookies([{ name, value, url: scene.url, secure: true, httpOnly: true }])
  const titles: string[] = []
  for (let n = 1; n <= 7; n++) {
    const page = await context.newPage()
    await page.goto(`${scene.url}/tab`)
    await page.waitForFunction(() => document.title.startsWith('stream'))
    titles.push(await page.title())
  }
  assert.equal(open, 7)
  assert.equal(new Set(titles).size, 7)
  const page = await context.newPage()
  await page.goto(`${scene.url}/_menshen/me`)
  assert.match(await page.content(), /zhangsan/)
  assert.equal(
    await page.evaluate(
      () => (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming).nextHopProtocol,
    ),
    'h2',
  )
  await context.close()
  await until(() => open === 0)
})
