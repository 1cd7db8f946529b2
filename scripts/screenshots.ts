// `npm run screenshots` makes the pictures of docs/images from the pages. The console shows an hour in which the provider fails.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { startBrowser } from '../test/kit/browser.ts'
import { createClient } from '../test/kit/client.ts'
import { freePort } from '../test/kit/free-port.ts'
import { startScriptedProvider } from '../test/kit/scripted-provider.ts'
import { openGateway } from '../test/kit/set-up.ts'
import { tempFolder } from '../test/kit/temp.ts'
import { startUpstream } from '../test/kit/upstream.ts'

interface Size {
  readonly width: number
  readonly height: number
}

const FOLDER = new URL('../docs/images/', import.meta.url)
const MINUTES = 60
const STOPS_AT = 42
const PEOPLE = [
  { username: 'zhangsan', nickname: '张三' },
  { username: 'lisi', nickname: '李四' },
  { username: 'wangwu', nickname: '王五' },
  { username: 'zhaoliu', nickname: '赵六' },
]
const AGENTS = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1',
  'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/130.0 Mobile Safari/537.36 MicroMessenger/8.0.60',
]
const MARK = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40"><rect x="2" y="4" width="32" height="32" rx="8" fill="#1f5fbf"/>
<path d="M10 26l8-12 8 12z" fill="#fff"/><text x="42" y="27" font-size="18" font-family="sans-serif" font-weight="700" fill="#1f5fbf">远山科技</text></svg>`
const PAGES = {
  'console-overview': '/_menshen/console',
  'console-sessions': '/_menshen/console/sessions',
  'console-audit': '/_menshen/console/audit',
  'console-rules': '/_menshen/console/rules?path=/finance/2026&role=common',
  'console-health': '/_menshen/console/health',
  'console-settings': '/_menshen/console/settings',
  account: '/_menshen/account',
}
/** A time zone in which it is three in the morning now. Etc/GMT+5 is five hours behind. */
const behind = (new Date().getUTCHours() + 21) % 24
const TIME_ZONE = behind <= 12 ? `Etc/GMT+${behind}` : `Etc/GMT-${24 - behind}`

await using opened = new AsyncDisposableStack()
const atTheEnd = { after: (close: () => void) => opened.defer(async () => close()) } as unknown as TestContext

const provider = await startScriptedProvider()
opened.defer(() => provider.close())
const upstream = await startUpstream(atTheEnd)
const proxyPort = await freePort()
const env = {
  ...provider.settings,
  UPSTREAM: upstream.url,
  BASE_URL: `http://localhost:${proxyPort}`,
  PROVIDER_NAME: '统一认证平台',
  TRUSTED_PROXIES: '127.0.0.1',
}
const rules = [
  { path: '/', roles: ['developer' as const, 'common' as const] },
  { path: '/finance', roles: ['developer' as const] },
  { path: '/beta', roles: ['developer' as const], shadow: true },
]
const gateway = await openGateway(atTheEnd, env, { config: { rules } })
await startProxy()
// The provider uses the clock of this machine: at the end of the hour the gateway's clock shows the same time.
gateway.passSeconds(Math.round((Date.now() - gateway.now()) / 1000) - MINUTES * 60)
const developer = createClient(gateway.url, gateway.now)
const admin = { username: 'admin', nickname: '管理员' }
for (const client of [createClient(gateway.url, gateway.now), developer])
  await client.get(`/callback?code=${provider.codeFor(admin)}&state=abc_idp`, {
    headers: { 'user-agent': AGENTS[client === developer ? 0 : 1], 'x-forwarded-for': '10.20.1.7' },
  })
await look()
await spendTheHour()

const browser = await startBrowser()
opened.defer(() => browser.close())
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, timezoneId: TIME_ZONE })
const page = await context.newPage()
await take(page, 'login', '/login', { width: 560, height: 640 })
await takeOwnLook()
const ticket = developer.cookies.get('menshen_session') ?? ''
await context.addCookies([{ name: 'menshen_session', value: ticket, url: gateway.url }])
// The overview is cached for a moment; this one shows the last checks.
gateway.passSeconds(10)
for (const [name, path] of Object.entries(PAGES)) await take(page, name, path)

async function spendTheHour(): Promise<void> {
  for (let minute = 0; minute < MINUTES; minute++) {
    gateway.passSeconds(60)
    if (minute === STOPS_AT) provider.answer('token', { kind: 'json', status: 503, body: {} })
    const visitors = 1 + Math.round(2 + 2 * Math.sin(minute / 6))
    for (let n = 0; n < visitors; n++) await comeBy(minute + n)
    await look(minute)
  }
}

/** The overview counts the sessions. It starts the checks every ten minutes; the health page waits until they are done. */
async function look(minute = 9): Promise<void> {
  await developer.get(PAGES['console-overview'])
  if (minute % 10 === 9) await developer.get(PAGES['console-health'])
}

/** In front of the gateway, as the settings say. */
async function startProxy(): Promise<void> {
  const forwarded = ({ headers, socket }: IncomingMessage) => ({
    ...headers,
    'x-forwarded-for': socket.remoteAddress,
    'x-forwarded-host': headers.host,
    'x-forwarded-proto': 'http',
  })
  const ask = (incoming: IncomingMessage) =>
    request(gateway.url + incoming.url, { method: incoming.method, headers: forwarded(incoming) })
  const proxy = createServer((incoming, outgoing) =>
    incoming.pipe(
      ask(incoming).on('response', answer => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      }),
    ),
  )
  proxy.listen(proxyPort, 'localhost')
  opened.defer(() => void proxy.close())
  await once(proxy, 'listening')
}

async function comeBy(n: number): Promise<void> {
  const person = PEOPLE[n % PEOPLE.length] ?? {}
  const headers = { 'user-agent': AGENTS[n % AGENTS.length], 'x-forwarded-for': `10.20.${n % 4}.${10 + (n % 50)}` }
  const client = createClient(gateway.url, gateway.now)
  await client.get(`/callback?code=${provider.codeFor(person)}&state=abc_idp`, { headers })
  for (const path of ['/', '/reports', ...(n % 7 === 0 ? ['/finance', '/beta'] : [])])
    await client.get(path, { headers })
}

/** As docs/customizing.md has it. */
async function takeOwnLook(): Promise<void> {
  const LOGO_FILE = join(tempFolder(atTheEnd), 'logo.svg')
  await writeFile(LOGO_FILE, MARK)
  const own = { ...provider.settings, APP_NAME: '采购平台', LOGO_FILE, ACCENT_COLOR: '#1f5fbf' }
  const links = ['隐私政策', '使用帮助', 'IT 服务台'].map(text => ({ text, href: '/help' }))
  const note = '仅限远山科技员工使用。登录即表示您同意信息安全守则。'
  const { url } = await openGateway(atTheEnd, own, { config: { loginPage: { note, links } } })
  await take(page, 'look', '/login', { width: 560, height: 640 }, url)
}

async function take(page: Page, name: string, path: string, size?: Size, url = gateway.url): Promise<void> {
  if (size) await page.setViewportSize(size)
  await page.goto(url + path)
  if (name === 'console-overview') await page.locator('#plot-times canvas').waitFor()
  await page.screenshot({
    path: new URL(`${name}.png`, FOLDER).pathname,
    animations: 'disabled',
    fullPage: name === 'console-overview',
  })
  if (size) await page.setViewportSize({ width: 1280, height: 800 })
}
