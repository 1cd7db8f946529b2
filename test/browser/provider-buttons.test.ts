// Several providers on the login page: each button signs in through its own, with and without scripts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPage, startBrowser } from '../kit/browser.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { openGateway } from '../kit/set-up.ts'

test('each button signs in through its own provider, with and without scripts, on a phone and by night', async t => {
  const browser = await startBrowser()
  t.after(() => browser.close())
  const [staff, partners] = [await startOidcServer(t), await startOidcServer(t)]
  const providers = {
    staff: { ...staff.config, name: '企业账号' },
    partners: { ...partners.config, name: '合作伙伴' },
  }
  const gateway = await openGateway(t, {}, { config: { providers } })
  for (const provider of [staff, partners]) provider.now = gateway.now
  for (const javaScriptEnabled of [true, false])
    for (const name of ['企业账号', '合作伙伴']) {
      const options = { javaScriptEnabled, viewport: { width: 360, height: 720 }, colorScheme: 'dark' as const }
      const { page, problems } = await openPage(t, browser, options)
      await page.goto(`${gateway.baseUrl}/login`)
      await page.getByRole('button', { name: `${name}登录` }).click()
      await page.waitForURL(`${gateway.baseUrl}/`)
      assert.match(await page.locator('dl').innerText(), new RegExp(`登录方式\\s+${name}`))
      assert.deepEqual(problems, [])
    }
})
