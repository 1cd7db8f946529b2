// A real application, its program started by the test, and the same task at the application and through the gateway.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import type { Config } from '../../../src/index.ts'
import { openPage } from '../browser.ts'
import { type Environment, startInstance } from '../instance.ts'
import { startOidcServer } from '../oidc-server.ts'
import { installPackages, SYSTEM_PATH } from '../packages.ts'
import { tempFolder } from '../temp.ts'

export interface Application {
  /** Packages of Debian. They are installed if they are missing. */
  readonly debian?: readonly string[]
  /** Starts it, with all of its data in the folder. Returns its address, or why it cannot run here. */
  start(t: TestContext, folder: string): Promise<URL | string>
  /** What an operator sets at the gateway for it; its address is the upstream unless `config` names it. */
  gateway?(upstream: string): { readonly env?: Environment; readonly config?: Config }
  /** Works at both entrances with one application: what it creates has the entrance's name in it. */
  task(entrance: Entrance, t: TestContext): Promise<void>
}

/** A way to the application. */
export interface Entrance {
  readonly name: 'direct' | 'gateway'
  /** Its origin, without a slash at the end. */
  readonly url: string
  /** For programs with a session: empty at the application itself. */
  readonly cookie: string
  /** For programs without a session: the value of `Authorization`. */
  bearer(): Promise<string>
  /** In a browser, signed in. `problems` are what a developer sees in red. */
  readonly page: Page
  readonly problems: string[]
}

const START_DEADLINE_MS = 90_000
const DEADLINE_MS = 30_000

export async function tryApplication(t: TestContext, browser: Browser, application: Application): Promise<void> {
  assert.equal(installPackages(application.debian ?? []), undefined)
  const folder = tempFolder(t)
  const address = await application.start(t, folder)
  if (typeof address === 'string') return t.skip(address)
  await t.test('at the application', async t => {
    const { page, problems } = await openPage(t, browser)
    page.setDefaultTimeout(DEADLINE_MS)
    const bearer = async () => ''
    await perform(t, application, { name: 'direct', url: address.origin, cookie: '', bearer, page, problems })
  })
  await t.test('through the gateway, signed in', async t => {
    const { env, config = {} } = application.gateway?.(address.origin) ?? {}
    await perform(t, application, await openEntrance(t, browser, { UPSTREAM: address.origin, ...env }, config))
  })
}

/** What the browser shows is told with a failure. */
async function perform(t: TestContext, application: Application, entrance: Entrance): Promise<void> {
  try {
    await application.task(entrance, t)
  } catch (error) {
    const text = await entrance.page.innerText('body', { timeout: 1000 }).catch(() => '')
    t.diagnostic(`at ${entrance.page.url()}: ${text.slice(0, 500)}`)
    for (const problem of entrance.problems.slice(0, 5)) t.diagnostic(problem)
    throw error
  }
}

/** A gateway as an operator runs it, with a user who has signed in with a browser. */
async function openEntrance(t: TestContext, browser: Browser, env: Environment, config: Config): Promise<Entrance> {
  const provider = await startOidcServer(t)
  provider.now = Date.now
  const folder = tempFolder(t)
  writeFileSync(join(folder, 'menshen.config.js'), `export default ${JSON.stringify(config)}\n`)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const settings = { STORE: 'memory:', RATE_LIMIT_PER_MINUTE: '0', ...provider.settings, ...env }
  const menshen = await startInstance(settings, { cwd: folder })
  t.after(() => menshen.stop())
  t.after(() => t.passed || t.diagnostic(menshen.output.slice(-20).join('\n')))

  const { page, problems } = await openPage(t, browser)
  page.setDefaultTimeout(DEADLINE_MS)
  await page.goto(`${menshen.url}/_menshen/account`)
  await page.locator('main button').first().click()
  await page.waitForURL(`${menshen.url}/_menshen/account`)
  const cookies = await page.context().cookies()
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  const claims = { sub: 'robot', client_id: 'robot', scope: 'read' }
  const bearer = async () => `Bearer ${await provider.sign(claims, { typ: 'at+jwt' })}`
  problems.length = 0
  return { name: 'gateway', url: menshen.url, cookie, bearer, page, problems }
}

export interface Program {
  readonly pid: number
  readonly output: () => string
  hasEnded(): boolean
}

/** In a process group that ends with the test, with the programs of the system on its PATH. */
export function startProgram(
  t: TestContext,
  folder: string,
  command: readonly [program: string, ...args: string[]],
  env: Environment = {},
): Program {
  const [program, ...args] = command
  const logFile = join(folder, `${program.replaceAll('/', '-')}.log`)
  const log = openSync(logFile, 'a')
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: SYSTEM_PATH, HOME: folder, LANG: 'C.UTF-8', ...env },
    detached: true,
    stdio: ['ignore', log, log],
  })
  const exited = once(child, 'exit')
  exited.catch(() => {})
  const hasEnded = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null
  t.after(async () => {
    if (hasEnded()) return
    process.kill(-Number(child.pid), 'SIGTERM')
    const timer = setTimeout(() => process.kill(-Number(child.pid), 'SIGKILL'), 10_000)
    await exited
    clearTimeout(timer)
  })
  return { pid: Number(child.pid), output: () => readFileSync(logFile, 'utf8'), hasEnded }
}

/** Resolves when the program answers there, with any status below 500. */
export async function answers(program: Program, url: string | URL): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS
  for (;;) {
    const answer = await fetch(url, { redirect: 'manual' }).catch(() => undefined)
    if (answer && answer.status < 500) return
    if (program.hasEnded() || performance.now() > deadline)
      throw new Error(`${url} does not answer:\n${program.output().slice(-4000)}`)
    await pause(100)
  }
}

/** Runs a command to its end and returns what it wrote; fails if its status is not 0. */
export async function run(
  folder: string,
  command: readonly [program: string, ...args: string[]],
  env: Environment = {},
): Promise<string> {
  const [program, ...args] = command
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: SYSTEM_PATH, HOME: folder, LANG: 'C.UTF-8', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', chunk => (output += chunk))
  child.stderr.on('data', chunk => (output += chunk))
  const timer = setTimeout(() => child.kill('SIGKILL'), 4 * DEADLINE_MS)
  const [code] = await once(child, 'close')
  clearTimeout(timer)
  assert.equal(code, 0, `${command.join(' ')}\n${output.slice(-4000)}`)
  return output
}

/** With the entrance's session. */
export function request(entrance: Entrance, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  if (entrance.cookie) headers.set('cookie', [entrance.cookie, headers.get('cookie')].filter(Boolean).join('; '))
  return fetch(entrance.url + path, { redirect: 'manual', ...init, headers })
}
