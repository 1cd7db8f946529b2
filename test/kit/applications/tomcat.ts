// Tomcat's examples, with sessions in the address (`;jsessionid=`), as servlet containers write it without cookies.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../free-port.ts'
import { type Application, answers, run, startProgram } from './application.ts'

const SESSION = '/examples/servlets/servlet/SessionExample'

export const tomcat: Application = {
  debian: ['tomcat10-user', 'tomcat10-examples', 'default-jre-headless'],

  async start(t, folder) {
    const port = await freePort()
    const base = join(folder, 'instance')
    await run(folder, ['tomcat10-instance-create', '-p', String(port), '-c', String(await freePort()), base])
    const contexts = join(base, 'conf/Catalina/localhost')
    mkdirSync(contexts, { recursive: true })
    writeFileSync(
      join(contexts, 'examples.xml'),
      '<Context docBase="/usr/share/tomcat10-examples/examples" cookies="false"/>\n',
    )
    const env = {
      CATALINA_BASE: base,
      CATALINA_HOME: '/usr/share/tomcat10',
      CATALINA_OPTS: '-Xmx256m -XX:TieredStopAtLevel=1',
    }
    const program = startProgram(t, folder, ['/usr/share/tomcat10/bin/catalina.sh', 'run'], env)
    const url = new URL(`http://127.0.0.1:${port}`)
    await answers(program, new URL(SESSION, url))
    return url
  },

  async task({ name, url, page }) {
    await page.goto(url + SESSION)
    const form = page.locator('form').first()
    await form.locator('input[name=dataname]').fill('entrance')
    await form.locator('input[name=datavalue]').fill(name)
    await form.locator('input[type=submit]').click()
    await page.getByText(`entrance = ${name}`).waitFor()
    assert.match(page.url(), /;jsessionid=[0-9A-F]+/)
    // With the second form by GET, and with its link.
    const second = page.locator('form').nth(1)
    await second.locator('input[name=dataname]').fill('second')
    await second.locator('input[name=datavalue]').fill('2')
    await second.locator('input[type=submit]').click()
    await page.getByText('second = 2').waitFor()
    await page.getByText(`entrance = ${name}`).waitFor()
    await page.getByRole('link', { name: 'URL encoded' }).click()
    await page.getByText('exampleName = exampleValue').waitFor()
    await page.getByText(`entrance = ${name}`).waitFor()

    await page.goto(`${url}/examples/websocket/echo.xhtml`)
    await page.locator('input[type=radio]').first().click()
    await page.locator('#connect').click()
    await page.getByText('Info: WebSocket connection opened.').waitFor()
    await page.locator('#echo').click()
    await page.getByText('Received: Here is a message!').waitFor()
  },
}
