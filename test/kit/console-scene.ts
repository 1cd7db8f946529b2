// The console of a gateway where much has happened, for a browser to look at.

import type { TestContext } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { openPage } from './browser.ts'
import type { Client } from './client.ts'
import { type GatewayAndProvider, setUp } from './set-up.ts'
import { until } from './until.ts'

export const CONSOLE = '/_menshen/console'
export const DESK = { viewport: { width: 1280, height: 800 } }
export const PHONE = { viewport: { width: 390, height: 720 }, isMobile: true, hasTouch: true }
const WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'
const PHONE_AGENT =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1'

export interface ConsoleScene {
  readonly scene: GatewayAndProvider
  readonly admin: Client
  /** The addresses of all pages, with something on each. */
  readonly paths: Readonly<Record<string, string>>
}

/** Users with several sessions, a failure, a refusal, and a provider that has stopped. */
export async function openConsole(t: TestContext): Promise<ConsoleScene> {
  const rules = [
    { path: '/', roles: ['developer', 'common'] },
    { path: '/finance', roles: ['developer'], networks: ['10.0.0.0/8'] },
    { path: '/beta', roles: ['developer'], shadow: true },
  ]
  const env = { PAGE_LANGUAGE: 'auto', PROVIDER_NAME: 'Staff login', TRUSTED_PROXIES: '127.0.0.1' }
  const scene = await setUp(t, { env, config: { rules }, now: Date.now() })
  const { provider } = scene
  const signInAs = async (username: string, nickname: string, address: string, agent = WINDOWS) => {
    const client = scene.visitor()
    const headers = { 'user-agent': agent, 'x-forwarded-for': address }
    await client.get(`/callback?code=${provider.codeFor({ username, nickname })}&state=abc_idp`, { headers })
    scene.passSeconds(1)
    return client
  }
  await signInAs('lisi', '李四', '10.0.0.7')
  await signInAs('lisi', '李四', '2001:db8:85a3:8d3:1319:8a2e:370:7348', PHONE_AGENT)
  const maria = await signInAs('maria.garcia@subsidiary.example.com', 'María García', '10.0.0.8')
  await maria.get('/finance/2026/quarterly-report-of-the-whole-group')
  await maria.get('/beta')
  const admin = await signInAs('admin', 'Ann', '10.0.0.1')
  provider.answer('token', { kind: 'json', status: 503, body: {} })
  await signInAs('wangwu', '', '10.0.0.9')
  await admin.get(`${CONSOLE}/health`)
  await until(async () => (await admin.get(`${CONSOLE}/audit.jsonl?event=sign_in_failed`)).text !== '')
  scene.passSeconds(10)
  const list = (await admin.get(`${CONSOLE}/sessions`)).text
  const keys = [...list.matchAll(/<input type="checkbox" name="(\w+)" value="([\w-]{43})"/g)]
  const [, , user, first, second] = keys.map(([, name, key]) => `${name}=${key}`)
  const paths = {
    overview: CONSOLE,
    sessions: `${CONSOLE}/sessions`,
    search: `${CONSOLE}/sessions?username=LISI`,
    confirmation: `${CONSOLE}/sessions/end?${user}&${first}&${second}`,
    session: `${CONSOLE}/session?key=${keys[1]?.[2]}`,
    audit: `${CONSOLE}/audit?range=1d`,
    rules: `${CONSOLE}/rules?path=/finance&role=common`,
    health: `${CONSOLE}/health`,
    settings: `${CONSOLE}/settings?changed=yes`,
  }
  return { scene, admin, paths }
}

/** A page of the developer. */
export async function openAsDeveloper(
  t: TestContext,
  browser: Browser,
  { scene, admin }: ConsoleScene,
  options: BrowserContextOptions,
): Promise<{ page: Page; problems: string[] }> {
  const opened = await openPage(t, browser, options)
  const value = admin.cookies.get('menshen_session') ?? ''
  await opened.page.context().addCookies([{ name: 'menshen_session', value, url: scene.url }])
  return opened
}
