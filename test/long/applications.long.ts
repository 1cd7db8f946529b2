// Real applications behind the gateway, unchanged: the same task at the application and through the gateway.
// One at a time: each is a heavy process.
import { after, before, type TestContext, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { git, webdav } from '../kit/applications/apache.ts'
import { type Application, tryApplication } from '../kit/applications/application.ts'
import { cockpit } from '../kit/applications/cockpit.ts'
import { jupyter } from '../kit/applications/jupyter.ts'
import { nodeRed, redisCommander, verdaccio } from '../kit/applications/npm.ts'
import { dokuwiki, mediawiki, wordpress } from '../kit/applications/php.ts'
import { prometheus } from '../kit/applications/prometheus.ts'
import { rabbitmq } from '../kit/applications/rabbitmq.ts'
import { tomcat } from '../kit/applications/tomcat.ts'
import { startBrowser } from '../kit/browser.ts'

let browser: Browser

before(async () => {
  browser = await startBrowser()
})

after(() => browser?.close())

const works = (sentence: string, application: Application) =>
  test(sentence, { timeout: 900_000 }, (t: TestContext) => tryApplication(t, browser, application))

works('WebDAV creates, moves, locks and downloads files with Chinese names, and accepts 100 MB', webdav)
works('git clones and pushes with a session and with an access token', git)
works('Prometheus answers queries through its API and its pages', prometheus)
works('Jupyter Notebook accepts a sign-in at its own /login and runs a cell over the WebSocket of its kernel', jupyter)
works('RabbitMQ creates, shows and reads a queue with a slash in its name, in the virtual host /', rabbitmq)
works('Tomcat keeps a session in the URL and echoes over a WebSocket', tomcat)
works('Verdaccio publishes, installs and shows a scoped package', verdaccio)
works('Redis Commander saves and shows a key with a slash and a semicolon', redisCommander)
works('Node-RED shows a flow, serves its HTTP endpoint and shows its messages in the editor', nodeRed)
works('Cockpit runs a command in its terminal', cockpit)
works('DokuWiki saves a page and a file with colons and Chinese in their names', dokuwiki)
works('MediaWiki saves a page with slashes, a semicolon and Chinese in its title', mediawiki)
works('WordPress signs a user in, publishes a post and accepts a comment and a file with a Chinese name', wordpress)
