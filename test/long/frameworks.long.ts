// The packed package in a fresh project for each framework, with the functions of docs/library.md: pages, roles, session data,
// event streams, WebSockets, sign-out. TypeScript 5.9 and 7 compile each project with `skipLibCheck: false`. Then the tests of
// the page, with Vitest and with Jest. test/long/next.long.ts has the built application of Next.

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { WebSocket } from 'ws'
import { readPage, snippetsIn } from '../kit/snippets.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
const ENVIRONMENT = { ...process.env, PATH, npm_config_update_notifier: 'false' }
const run = promisify(execFile)

const folder = mkdtempSync(join(tmpdir(), 'menshen-frameworks-'))
let tarball: string

before(async () => {
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT, env: ENVIRONMENT })
  tarball = join(folder, readdirSync(folder)[0] ?? '')
})
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }))

function snippetWith(part: string): string {
  const found = snippetsIn('docs/library.md', readPage('docs/library.md')).find(({ text }) => text.includes(part))
  return found?.text ?? assert.fail(`no snippet has ${part}`)
}

type Files = Readonly<Record<string, string>>

/** An empty project with the package, others, and files. */
async function createProject(name: string, packages: readonly string[], files: Files): Promise<string> {
  const place = join(folder, name)
  mkdirSync(place)
  writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--silent']
  await run('npm', ['install', ...options, tarball, 'typescript@5.9', '@types/node', ...packages], {
    cwd: place,
    env: ENVIRONMENT,
  })
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, file)), { recursive: true })
    writeFileSync(join(place, file), text)
  }
  return place
}

const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  experimentalDecorators: true,
  target: 'es2023',
  lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'],
  types: ['node'],
  outDir: 'out',
}

/** By ours with a bundler's resolution, and by the project's own TypeScript 5.9, which also writes the program. */
async function compile(place: string): Promise<void> {
  for (const [tsc, module, moduleResolution] of [
    [join(ROOT, 'node_modules/.bin/tsc'), 'esnext', 'bundler'],
    [join(place, 'node_modules/typescript/bin/tsc'), 'nodenext', 'nodenext'],
  ] as const) {
    const compilerOptions = { ...STRICT, module, moduleResolution }
    writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
    const { stdout } = await run(process.execPath, [tsc, '-p', place]).catch((error: { stdout: string }) => error)
    assert.equal(stdout, '', `${tsc} ${moduleResolution}`)
  }
}

/** Ends every program: it tells its port and two cookies, and ends with its input. */
const TELL = `import type { TestMenshen } from 'menshen/testing'
import type { AddressInfo } from 'node:net'
import type { Server } from 'node:http'

export async function tell(server: Server, auth: Pick<TestMenshen<'developer' | 'common', never>, 'signIn'>) {
  const ann = await auth.signIn({ username: 'ann' })
  const bob = await auth.signIn({ username: 'bob', role: 'developer' })
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port, cookies: [ann.cookie, bob.cookie] }))
  process.stdin.resume().on('end', () => process.exit())
}
`

/** As the page shows it, with the closing of sockets. */
const SOCKETS = `import type { Server } from 'node:http'
import { type Menshen, sendAnswer } from 'menshen'
import { WebSocketServer } from 'ws'
import { closeSocket } from './streams.js'

export function addSockets(server: Server, auth: Pick<Menshen, 'admit'>) {
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', async (request, socket, head) => {
    const { user, answer } = await auth.admit(request)
    if (answer) return sendAnswer(socket, answer)
    sockets.handleUpgrade(request, socket, head, client => {
      closeSocket(user, client)
      client.send(\`Hello \${user?.userInfo.username}\`)
    })
  })
}
`

const HTTP = `import { createServer } from 'node:http'
import { addCookies, sendAnswer } from 'menshen'
import { createTestMenshen } from 'menshen/testing'
import { addSockets } from './sockets.js'
import { closeEvents } from './streams.js'
import { tell } from './tell.js'

const auth = await createTestMenshen()
const server = createServer(async (request, response) => {
  const { user, answer, cookies, require } = await auth.admit(request)
  if (answer) return sendAnswer(response, answer)
  addCookies(response, cookies)
  if (request.url === '/reports') {
    const refused = require(['developer'])
    return refused ? sendAnswer(response, refused) : response.end('for developers')
  }
  if (request.url === '/data') {
    await auth.updateData(request, { tenant: 8 })
    return response.end()
  }
  if (request.url === '/mine') return response.end(JSON.stringify(user?.data))
  if (request.url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: hello\\n\\n')
    return closeEvents(user, response)
  }
  response.end(\`Hello \${user?.userInfo.username}\`)
})
addSockets(server, auth)
server.listen(0, '127.0.0.1', () => void tell(server, auth))
`

const EXPRESS = `import { createServer } from 'node:http'
import express from 'express'
import { menshen, requireRole } from 'menshen/express'
import { createTestMenshen } from 'menshen/testing'
import { addSockets } from './sockets.js'
import { closeEvents } from './streams.js'
import { tell } from './tell.js'

const auth = await createTestMenshen()
const app = express()
app.use(menshen(auth))
app.get('/', (req, res) => void res.send(\`Hello \${req.user?.userInfo.username}\`))
app.get('/reports', requireRole('developer'), (_req, res) => void res.send('for developers'))
app.get('/data', async (req, res) => {
  await auth.updateData(req, { tenant: 8 })
  res.end()
})
app.get('/mine', (req, res) => void res.json(req.user?.data))
app.get('/events', (req, res) => {
  res.type('text/event-stream').write('data: hello\\n\\n')
  closeEvents(req.user, res)
})
const server = createServer(app)
addSockets(server, auth)
server.listen(0, '127.0.0.1', () => void tell(server, auth))
`

const FASTIFY = `import websocket from '@fastify/websocket'
import fastify from 'fastify'
import { menshen, requireRole } from 'menshen/fastify'
import { createTestMenshen } from 'menshen/testing'
import { closeEvents, closeSocket } from './streams.js'
import { tell } from './tell.js'

const auth = await createTestMenshen()
const app = fastify()
app.register(websocket)
app.register(menshen, { auth })
app.register(async scope => {
  scope.get('/socket', { websocket: true }, (socket, request) => {
    closeSocket(request.user, socket)
    socket.send(\`Hello \${request.user?.userInfo.username}\`)
  })
})
app.get('/', async request => \`Hello \${request.user?.userInfo.username}\`)
app.get('/reports', { preHandler: requireRole('developer') }, async () => 'for developers')
app.get('/data', async request => {
  await auth.updateData(request.raw, { tenant: 8 })
  return ''
})
app.get('/mine', async request => request.user?.data)
app.get('/events', async (request, reply) => {
  reply.hijack()
  reply.raw.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: hello\\n\\n')
  closeEvents(request.user, reply.raw)
})
await app.listen({ port: 0, host: '127.0.0.1' })
await tell(app.server, auth)
`

const HONO = `import type { Server } from 'node:http'
import { serve, upgradeWebSocket } from '@hono/node-server'
import { Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import { menshen, requireRole } from 'menshen/hono'
import { createTestMenshen } from 'menshen/testing'
import { WebSocketServer } from 'ws'
import { onSessionEnd } from './streams.js'
import { tell } from './tell.js'

const auth = await createTestMenshen()
const app = new Hono()
  .use(menshen(auth))
  .get('/', c => c.text(\`Hello \${c.get('user')?.userInfo.username}\`))
  .get('/reports', requireRole('developer'), c => c.text('for developers'))
  .get('/data', async c => {
    await auth.updateData(c.req.raw, { tenant: 8 })
    return c.text('')
  })
  .get('/mine', c => c.json(c.get('user')?.data))
  .get('/events', c =>
    streamSSE(c, async stream => {
      await stream.writeSSE({ data: 'hello' })
      const user = c.get('user')
      await new Promise<void>(resolve => stream.onAbort(onSessionEnd(user, () => resolve())))
    }),
  )
  .get(
    '/socket',
    upgradeWebSocket(c => {
      const user = c.get('user')
      let stop = () => {}
      return {
        onOpen: (_event, ws) => {
          stop = onSessionEnd(user, () => ws.close(4401))
          ws.send(\`Hello \${user?.userInfo.username}\`)
        },
        onClose: () => stop(),
      }
    }),
  )
// The types of @hono/node-server do not know \`exactOptionalPropertyTypes\`.
const websocket = { server: new WebSocketServer({ noServer: true }) as never }
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', websocket }, () => void tell(server as Server, auth))
`

const NEST = `import 'reflect-metadata'
import type { IncomingMessage } from 'node:http'
import { Controller, Get, Inject, Module, Req, Sse } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { WsAdapter } from '@nestjs/platform-ws'
import { type OnGatewayConnection, WebSocketGateway } from '@nestjs/websockets'
import type { Request } from 'express'
import type { Menshen } from 'menshen'
import { menshen, requireRole } from 'menshen/express'
import { createTestMenshen } from 'menshen/testing'
import { Observable } from 'rxjs'
import type { WebSocket } from 'ws'
import { closeSocket, onSessionEnd } from './streams.js'
import { tell } from './tell.js'

const auth = await createTestMenshen()

@Controller()
class Pages {
  constructor(@Inject('auth') private readonly auth: Menshen) {}
  @Get() home(@Req() req: Request) {
    return \`Hello \${req.user?.userInfo.username}\`
  }
  @Get('reports') reports() {
    return 'for developers'
  }
  @Get('data') async data(@Req() req: Request) {
    await this.auth.updateData(req, { tenant: 8 })
  }
  @Get('mine') mine(@Req() req: Request) {
    return req.user?.data
  }
  @Sse('events') events(@Req() req: Request) {
    return new Observable<{ data: string }>(events => {
      events.next({ data: 'hello' })
      return onSessionEnd(req.user, () => events.complete())
    })
  }
}

@WebSocketGateway({ path: '/socket' })
class Sockets implements OnGatewayConnection {
  constructor(@Inject('auth') private readonly auth: Menshen) {}
  async handleConnection(client: WebSocket, request: IncomingMessage) {
    const { user, answer } = await this.auth.admit(request)
    if (answer) return client.close(4401)
    closeSocket(user, client)
    client.send(\`Hello \${user?.userInfo.username}\`)
  }
}

@Module({ controllers: [Pages], providers: [{ provide: 'auth', useValue: auth }, Sockets] })
class Application {}

const app = await NestFactory.create(Application, { logger: ['error'] })
app.use(menshen(auth))
app.use('/reports', requireRole('developer'))
app.useWebSocketAdapter(new WsAdapter(app))
await app.listen(0, '127.0.0.1')
await tell(app.getHttpServer(), auth)
`

const COMMON = { 'streams.ts': snippetWith('closeEvents'), 'tell.ts': TELL }
const WS = ['ws', '@types/ws']
const EXPRESS_PACKAGES = ['express@5', '@types/express']
const NEST_PACKAGES = ['common', 'core', 'platform-express', 'platform-ws', 'websockets'].map(name => `@nestjs/${name}`)

const PROJECTS: Readonly<Record<string, { packages: readonly string[]; files: Files }>> = {
  http: { packages: WS, files: { 'app.ts': HTTP, 'sockets.ts': SOCKETS } },
  express: { packages: [...WS, ...EXPRESS_PACKAGES], files: { 'app.ts': EXPRESS, 'sockets.ts': SOCKETS } },
  fastify: { packages: [...WS, 'fastify@5', '@fastify/websocket'], files: { 'app.ts': FASTIFY } },
  hono: { packages: [...WS, 'hono@4', '@hono/node-server'], files: { 'app.ts': HONO } },
  nest: {
    packages: [...WS, ...EXPRESS_PACKAGES, ...NEST_PACKAGES, 'reflect-metadata', 'rxjs'],
    // The one of the page is compiled only: it waits for users of the development provider.
    files: { 'app.ts': NEST, 'page.ts': snippetWith("from '@nestjs/core'") },
  },
}

const ask = (url: string, cookie = '', init: RequestInit = {}) =>
  fetch(url, { redirect: 'manual', ...init, headers: { accept: 'text/html', cookie, ...init.headers } })

interface Running {
  readonly url: string
  /** As the application knows itself. */
  readonly origin: string
  readonly ann: string
  readonly developer: string
}

/** What every application does, whatever it is made with. */
async function checkApplication({ url, origin, ann, developer }: Running): Promise<void> {
  assert.match((await ask(url)).headers.get('location') ?? '', /\/login$/)
  assert.equal((await ask(url, '', { headers: { accept: 'application/json' } })).status, 401)
  assert.match(await (await ask(url, ann)).text(), /^Hello ann$/)
  assert.equal((await ask(`${url}/reports`, ann)).status, 403)
  assert.match(await (await ask(`${url}/reports`, developer)).text(), /for developers/)
  assert.equal((await ask(`${url}/data`, ann)).status, 200)
  assert.deepEqual(await (await ask(`${url}/mine`, ann)).json(), { tenant: 8 })
  const events = await ask(`${url}/events`, ann)
  assert.match(events.headers.get('content-type') ?? '', /^text\/event-stream/)
  const ended = events.text()
  const out = await ask(`${url}/logout`, ann, { method: 'POST', headers: { origin } })
  assert.equal(out.status, 303)
  assert.match(await ended, /data: ?hello/)
  assert.match((await ask(url, ann)).headers.get('location') ?? '', /\/login$/)
}

/** A user's socket is open until the session ends; a visitor and a page of another site have none. */
async function openSocket({ url, origin, ann }: Running): Promise<() => Promise<void>> {
  const address = `${url.replace('http', 'ws')}/socket`
  for (const headers of [{}, { cookie: ann, origin: 'https://evil.example' }]) {
    const refused = new WebSocket(address, { headers }).on('error', () => {})
    const code = await new Promise<number>(resolve => refused.on('close', resolve))
    // A gateway of NestJS closes what it has accepted.
    assert.ok(code === 1006 || code === 4401, `${code}`)
  }
  const socket = new WebSocket(address, { headers: { cookie: ann, origin } })
  const [message] = await once(socket, 'message')
  assert.equal(String(message), 'Hello ann')
  const closed = once(socket, 'close')
  return async () => assert.equal((await closed)[0], 4401)
}

for (const [name, { packages, files }] of Object.entries(PROJECTS))
  test(`a fresh project with ${name} compiles in strict mode, checks users and roles, and closes streams with the session`, async t => {
    const place = await createProject(name, packages, { ...COMMON, ...files })
    await compile(place)
    const child = spawn(process.execPath, ['out/app.js'], {
      cwd: place,
      env: ENVIRONMENT,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.after(() => child.kill())
    const [line] = await once(createInterface(child.stdout), 'line')
    const { port, cookies } = JSON.parse(line)
    const running = {
      url: `http://127.0.0.1:${port}`,
      origin: 'http://localhost',
      ann: cookies[0],
      developer: cookies[1],
    }
    const assertClosed = await openSocket(running)
    await checkApplication(running)
    await assertClosed()
  })

const FRAMEWORK_PACKAGES = ['express@5', 'fastify@5', 'hono@4', 'next@16', 'react', 'react-dom']

test('the tests of docs/library.md pass with node:test, Vitest and Jest, and Jest can require the package', async () => {
  const page = snippetWith("from 'node:test'")
  const place = await createProject('tests', [...FRAMEWORK_PACKAGES, 'vitest', 'jest'], {
    'node/page.test.ts': page,
    'vitest/page.test.ts': page.replace(
      "import { after, test } from 'node:test'",
      "import { afterAll as after, test } from 'vitest'",
    ),
    'jest/page.test.js': jestTest(page),
    'jest/required.test.cjs': `const { createTestMenshen } = require('menshen/testing')
test('required', async () => {
  const auth = await createTestMenshen()
  expect((await auth.signIn({ username: 'ann' })).session.userRole).toBe('common')
  await auth.close()
})
`,
    'jest.config.js': `export default { testMatch: ['**/jest/*.test.{js,cjs}'], transform: {} }\n`,
  })
  const node = (...args: string[]) =>
    run(process.execPath, args, { cwd: place, env: { ...ENVIRONMENT, NODE_ENV: 'test' } })
  await node('--test', 'node/page.test.ts')
  await node('node_modules/vitest/vitest.mjs', 'run', '--dir', 'vitest')
  await node('--experimental-vm-modules', 'node_modules/jest/bin/jest.js')
})

/** In JavaScript, with the names that Jest defines. */
function jestTest(page: string): string {
  return page
    .replace("import { after, test } from 'node:test'\n", 'const after = afterAll\n')
    .replace(/^import type .*\n/m, '')
    .replaceAll(/: string\)| as AddressInfo/g, found => (found.startsWith(':') ? ')' : ''))
}
