// A real browser: chromium without a window, driven by playwright-core.

import assert from 'node:assert/strict'
import { hash, X509Certificate } from 'node:crypto'
import type { TestContext } from 'node:test'
import { type Browser, type BrowserContextOptions, type CDPSession, chromium, type Page } from 'playwright-core'
import { findBrowser } from './packages.ts'
import { requireProgram } from './requirements.ts'

/** Where every name that ends in `.test` leads: to this machine, but not to an address that browsers take for secure. */
const OWN_NAMES = '--host-resolver-rules=MAP *.test 127.0.0.1'

/** One for a test file: start it in `before`, close it in `after`. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = findBrowser()
  if (!executablePath) return missingBrowser()
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', OWN_NAMES] })
}

/**
 * A browser that binds sessions to its device, with keys that are not in hardware, for a server with this certificate. It does
 * so without the network of the page, so that only a switch of the command line lets it accept the certificate.
 */
export async function startBindingBrowser(certificate: string): Promise<Browser> {
  const { publicKey } = new X509Certificate(certificate)
  const pin = hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'base64')
  const features = 'DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting'
  return chromium.launch({
    executablePath: requireProgram('chromium'),
    args: [
      ...['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic'],
      ...[`--enable-features=${features}`, `--ignore-certificate-errors-spki-list=${pin}`],
    ],
  })
}

/** Stands for the browser of a file. Each test that opens a page is skipped; the others run. */
function missingBrowser(): Browser {
  const missing = { newContext: () => requireProgram('chromium'), close: async () => {} }
  return missing as unknown as Browser
}

/**
 * A page of a fresh visitor, without cookies or storage. `problems` fills with what a developer would see in red:
 * console errors, violations of the content security policy, uncaught exceptions, resources that did not load.
 */
export async function openPage(
  t: TestContext,
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<{ page: Page; problems: string[] }> {
  const context = await browser.newContext(options)
  t.after(() => context.close())
  const problems: string[] = []
  const pages = new Set<string>()
  context.on('request', request => request.isNavigationRequest() && pages.add(request.url()))
  context.on('console', message => {
    const { url } = message.location()
    // A page that is itself a refusal is what its test asked for, not a resource that it lacks.
    const isStatusOfPage = message.text().startsWith('Failed to load resource') && pages.has(url.replace(/#.*$/, ''))
    if (message.type() === 'error' && !isStatusOfPage) problems.push(`${message.text()} (${url})`)
  })
  context.on('weberror', error => problems.push(String(error.error())))
  return { page: await context.newPage(), problems }
}

/** Turns a page that is open into one on another device. A context sets its device once, before the page is loaded. */
export async function changeDevice(
  page: Page,
  { viewport, isMobile = false, hasTouch = false }: Device,
): Promise<void> {
  const { width, height } = viewport
  const session = await sessionOf(page)
  await page.setViewportSize(viewport)
  await session.send('Emulation.setDeviceMetricsOverride', { width, height, mobile: isMobile, deviceScaleFactor: 1 })
  await session.send('Emulation.setTouchEmulationEnabled', { enabled: hasTouch })
  const seen = await page.evaluate(() => ({ width: innerWidth, hasTouch: matchMedia('(any-pointer: coarse)').matches }))
  assert.deepEqual(seen, { width, hasTouch })
}

interface Device {
  readonly viewport: { readonly width: number; readonly height: number }
  readonly isMobile?: boolean
  readonly hasTouch?: boolean
}

const sessions = new WeakMap<Page, Promise<CDPSession>>()

/** The browser emulates the device until the session ends. */
function sessionOf(page: Page): Promise<CDPSession> {
  const session = sessions.get(page) ?? page.context().newCDPSession(page)
  sessions.set(page, session)
  return session
}
