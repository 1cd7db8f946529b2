// Real applications behind the gateway, unchanged: the same task at the application and through the gateway.
// One at a time: each is a heavy process.
import { after, before, type TestContext, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { git, webdav } from '../kit/applications/apache.ts'
import { type Application, tryApplication } from '../kit/applications/application.ts'
import { prometheus } from '../kit/applications/prometheus.ts'
import { startBrowser } from '../kit/browser.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})

after(() => browser?.close())

const works = (sentence: string, application: Application) =>
  test(sentence, { timeout: 900_000 }, (t: TestContext) => tryApplication(t, browser, application))

works('WebDAV creates, moves, locks and downloads files with Chinese names, and takes 100 MB', webdav)
works('git clones and pushes with a session and with an access token', git)
works('Prometheus answers queries of its API and of its pages', prometheus)
