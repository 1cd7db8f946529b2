// A real proxy with Menshen and an application: started from its example file, with the ports of a test in place of the
// example's.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import type { Rule } from '../../src/index.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { requireProgram } from '../kit/requirements.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

export interface FrontProxy {
  program: string
  /** In the titles of the tests, if not the program's. */
  name?: string
  /** Whether it asks Menshen and serves the application itself, or sends everything through Menshen. */
  mode: 'forward-auth' | 'gateway'
  /** Where it connects to Menshen from. */
  address?: string
  /** Drop headers by a pattern of their names, or by one that has exceptions; take single cookies out of an answer. */
  cannot?: readonly ('patterns' | 'exceptions' | 'set-cookie')[]
  /** nginx before 1.29 knows no interim answers: to a browser with HTTP/2 it sends a broken page. Otherwise they pass. */
  earlyHints?: 'taken for the answer'
  /** As the example or the documentation has it. */
  config: string
  /** The folder of the example: its other files stand beside the configuration. */
  beside?: string
  /** What takes the place of what, in it. */
  replace(ports: Ports): [from: string, to: string][]
  /** Writes whatever else it needs, and gives its arguments. */
  prepare(folder: string, config: string): string[]
}

interface Ports {
  proxy: number
  menshen: number
  application: number
}

/** A machine for the path /machines. */
export const MACHINE = { key: newKey() }
const RULES: Rule[] = [
  { path: '/machines', roles: ['*'], keys: true },
  { path: '/internal', roles: ['developer'] },
  { path: '/public', public: true },
  { path: '/own', roles: ['*'], origin: 'own' },
]

/** What the application sets at /hostile: somebody else's session, besides a cookie of its own. */
const HOSTILE_COOKIES = [
  ...[
    'menshen_session=evil',
    '__Host-menshen_session=evil; Path=/; Secure',
    'Menshen_Return=evil',
    '=menshen_session=evil',
  ],
  'app=1; Path=/',
]

/** What the application lets everybody keep, at /cached. */
const CACHED: [name: string, value: string | string[]][] = [
  ['cache-control', ['public', 'max-age=600']],
  ['expires', 'Thu, 01 Jan 2099 00:00:00 GMT'],
  ['cdn-cache-control', 'max-age=600'],
  ['surrogate-control', 'max-age=600'],
]

export type Behind = Awaited<ReturnType<typeof openBehind>>

interface BehindOptions {
  /** The port where the proxy looks for Menshen, if not where it is. */
  menshenAt?: number
  /** How the application answers, if not as `answerPage` does. */
  answer?: RequestListener
  /** Further settings of Menshen. */
  env?: Record<string, string>
}

export async function openBehind(t: TestContext, proxy: FrontProxy, options: BehindOptions = {}) {
  const { menshenAt, answer = answerPage, env: more } = options
  const port = await freePort()
  const env = {
    TRUSTED_PROXIES: proxy.address ?? '127.0.0.1',
    // The Host that the application sees through Menshen is not the proxy's doing.
    UPSTREAM_HOST_HEADER: 'upstream',
    BASE_URL: `http://127.0.0.1:${port}`,
    PORT: String(await freePort()),
    // Whatever reaches the application then went there by the proxy's own way.
    ...(proxy.mode === 'forward-auth' && { UPSTREAM: '' }),
    ...more,
  }
  const scene = await setUp(t, {
    env,
    config: { rules: RULES, machines: [{ name: 'backup', keySha256: keySha256(MACHINE.key) }] },
    answer,
  })
  const ports = {
    proxy: port,
    menshen: menshenAt ?? Number(env.PORT),
    application: Number(new URL(scene.upstream.url).port),
  }
  await startProxy(t, proxy, ports)
  const client = () => createClient(env.BASE_URL, scene.now)
  return {
    scene,
    url: env.BASE_URL,
    /** Menshen itself, past the proxy. */
    directUrl: `http://127.0.0.1:${env.PORT}`,
    client,
    async user(username = 'zhangsan', more = {}) {
      const user = client()
      await signIn(user, scene.provider, { username, ...more })
      return user
    },
  }
}

async function answerPage(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request)
  if (request.url === '/hostile') response.setHeader('clear-site-data', '"cookies"')
  if (request.url?.startsWith('/cached')) for (const [name, value] of CACHED) response.setHeader(name, value)
  if (request.url === '/cached/missing') response.statusCode = 404
  response.setHeader('set-cookie', request.url === '/hostile' ? HOSTILE_COOKIES : 'app=1; Path=/')
  response.end(`page ${request.url}${body}`)
}

export async function startProxy(
  t: TestContext,
  { program, config, beside, replace, prepare }: FrontProxy,
  ports: Ports,
): Promise<void> {
  const path = requireProgram(program)
  const folder = mkdtempSync(join(tmpdir(), 'menshen-'))
  if (beside) cpSync(new URL(`../../examples/${beside}`, import.meta.url), folder, { recursive: true })
  writeFileSync(join(folder, 'example'), withReplaced(config, replace(ports)))
  const args = prepare(folder, join(folder, 'example'))
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const child = spawn(path, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', text => (said += text))
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  await until(() => {
    assert.equal(child.exitCode, null, said)
    return listens(ports.proxy)
  })
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return once(socket, 'connect')
    .then(
      () => true,
      () => false,
    )
    .finally(() => socket.destroy())
}

function withReplaced(config: string, replacements: readonly (readonly [from: string, to: string])[]): string {
  return replacements.reduce((replaced, [from, to]) => {
    assert.ok(replaced.includes(from), `the example has no ${from}`)
    return replaced.replaceAll(from, to)
  }, config)
}
