// The code of docs/library.md, run as it is: its applications with users of menshen/testing, and its tests as tests of this file.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { get, Server, type ServerResponse } from 'node:http'
import { registerHooks } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
// An application of the page imports it. It replaces Request and Response, so this file needs its own process.
import '@hono/node-server'
import { WebSocket, WebSocketServer } from 'ws'
import type { Session } from '../../src/index.ts'
import { createTestMenshen, type TestMenshen } from '../../src/testing.ts'
import { takeThePlaceOfNext } from '../adapters/next-double.ts'
import { readPage, type Snippet, snippetsIn } from '../kit/snippets.ts'

const ROOT = new URL('../../', import.meta.url)
const PAGE = 'docs/library.md'
const SNIPPETS = snippetsIn(PAGE, readPage(PAGE)).filter(({ language }) => language === 'ts')

const folder = mkdtempSync(join(tmpdir(), 'menshen-library-page-'))
after(() => rmSync(folder, { recursive: true }))

/** `createMenshen` of the page is `createTestMenshen`: no provider, and users without a sign-in. */
const SHIM = join(folder, 'menshen.ts')
const SECRET = join(folder, 'secret')
writeFileSync(SECRET, 'of the client')
writeFileSync(
  SHIM,
  `export * from '${new URL('src/index.ts', ROOT)}'
import { createTestMenshen } from '${new URL('src/testing.ts', ROOT)}'
export const instances = []
export async function createMenshen({ clientSecretFile, ...options }) {
  if (options.provider?.clientSecretFile) options.provider = { ...options.provider, clientSecretFile: '${SECRET}' }
  const auth = await createTestMenshen(options)
  instances.push(auth)
  return auth
}
`,
)
takeThePlaceOfNext()
const hooks = registerHooks({
  resolve(specifier, context, next) {
    const [, name] = /^menshen(?:\/(\w+))?$/.exec(specifier) ?? []
    if (specifier === 'menshen') return { url: pathToFileURL(SHIM).href, shortCircuit: true }
    // The frameworks are found from here.
    if (name === undefined)
      return next(
        specifier,
        context.parentURL?.includes(basename(folder)) ? { ...context, parentURL: import.meta.url } : context,
      )
    const file = name === 'testing' ? 'src/testing.ts' : `src/adapters/${name}.ts`
    return { url: new URL(file, ROOT).href, shortCircuit: true }
  },
})
after(() => hooks.deregister())
const { instances }: { instances: TestMenshen[] } = await import(pathToFileURL(SHIM).href)

async function load({ line, text }: Snippet): Promise<Record<string, unknown>> {
  const file = join(folder, `line-${line}.ts`)
  writeFileSync(file, text)
  return import(pathToFileURL(file).href)
}

function snippetWith(part: string): Snippet {
  return SNIPPETS.find(({ text }) => text.includes(part)) ?? assert.fail(`no snippet has ${part}`)
}

/** Runs an application of the page on a free port. It ends with the test. */
async function start(t: TestContext, snippet: Snippet) {
  const listen = Server.prototype.listen
  const servers: Server[] = []
  const { mock } = t.mock.method(Server.prototype, 'listen', function (this: Server, ...args: unknown[]) {
    servers.push(this)
    const callback = args.findLast(arg => typeof arg === 'function')
    return Reflect.apply(listen, this, callback ? [0, '127.0.0.1', callback] : [0, '127.0.0.1'])
  })
  await load(snippet)
  mock.restore()
  const auth = instances.at(-1) ?? assert.fail('no instance')
  const [server] = servers
  t.after(async () => {
    server?.closeAllConnections()
    server?.close()
    await auth.close()
  })
  if (server && !server.listening) await once(server, 'listening')
  const { port } = (server?.address() ?? {}) as AddressInfo
  const ask = async (path: string, cookie = '', headers: Record<string, string> = {}) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { cookie, ...headers },
      redirect: 'manual',
    })
    return [answer.status, answer.headers.get('location') ?? (await answer.text())]
  }
  return { auth, ask }
}

for (const framework of ['menshen/express', 'menshen/fastify', 'menshen/hono'])
  test(`the application of docs/library.md with ${framework} knows its users and their roles`, async t => {
    const { auth, ask } = await start(t, snippetWith(`} from '${framework}'\n\nconst auth`))
    const ann = await auth.signIn({ username: 'ann' })
    const developer = await auth.signIn({ username: 'bob', role: 'developer' })
    assert.deepEqual(await ask('/', '', { accept: 'text/html' }), [302, '/login'])
    assert.deepEqual(await ask('/', ann.cookie), [200, 'Hello ann'])
    assert.equal((await ask('/reports', ann.cookie))[0], 403)
    assert.deepEqual(await ask('/reports', developer.cookie), [200, 'for developers'])
  })

test('the instances of docs/library.md with a provider, hooks and types start, and origin: own refuses foreign writes', async t => {
  for (const part of ["preset: 'oidc', issuer:", 'onSignOut:', 'interface Register']) await start(t, snippetWith(part))
  const { auth } = await start(t, snippetWith("origin: 'own'"))
  const { cookie } = await auth.signIn({ username: 'ann' })
  const post = async (headers: Record<string, string>) => {
    const request = new Request('http://localhost:3000/', { method: 'POST', headers: { cookie, ...headers } })
    return (await auth.admit(request)).answer?.status
  }
  assert.equal(await post({ 'sec-fetch-site': 'same-origin' }), undefined)
  assert.equal(await post({ origin: 'http://localhost:3000' }), undefined)
  assert.equal(await post({ 'sec-fetch-site': 'same-site', origin: 'http://blog.localhost:3000' }), 403)
  assert.equal(await post({}), 403)
})

test('setTheme of docs/library.md changes one field of the session data and keeps the others', async t => {
  const auth = await createTestMenshen()
  t.after(() => auth.close())
  const { cookie } = await auth.signIn({ username: 'ann', data: { tenant: 7 } })
  const { setTheme } = (await load(snippetWith('interface Data'))) as {
    setTheme: (auth: TestMenshen, request: object, theme: string) => Promise<void>
  }
  const request = { headers: { cookie } }
  await setTheme(auth as TestMenshen, request, 'dark')
  await setTheme(auth as TestMenshen, request, 'light')
  assert.deepEqual((await auth.session(request))?.data, { tenant: 7, theme: 'light' })
})

test('the script of docs/library.md sends a visitor to the login page with the current path as return path', async t => {
  const auth = await createTestMenshen()
  t.after(() => auth.close())
  const { cookie } = await auth.signIn({ username: 'ann' })
  const headers = { cookie: '', 'sec-fetch-dest': 'empty' }
  t.mock.method(globalThis, 'fetch', async (url: string) => {
    const { answer } = await auth.admit(new Request(`http://localhost${url}`, { headers }))
    return answer ?? new Response('data')
  })
  const assigned: string[] = []
  Object.assign(globalThis, { location: { pathname: '/page', assign: (url: string) => assigned.push(url) } })
  t.after(() => Reflect.deleteProperty(globalThis, 'location'))
  const { load: loadData } = (await load(snippetWith('location.assign'))) as {
    load: (url: string) => Promise<Response | undefined>
  }
  assert.equal(await loadData('/data'), undefined)
  assert.deepEqual(assigned, ['/login?return=%2Fpage'])
  headers.cookie = cookie
  assert.equal(await (await loadData('/data'))?.text(), 'data')
})

interface Streams {
  closeSocket(user: Session | undefined, client: WebSocket): void
  closeEvents(user: Session | undefined, response: ServerResponse): void
  onSessionEnd(user: Session | undefined, close: () => void): () => void
}

test('the functions of docs/library.md close an event stream and a socket when the session ends, and later ones at once', async t => {
  const { closeEvents, closeSocket, onSessionEnd } = (await load(snippetWith('closeEvents'))) as unknown as Streams
  const auth = await createTestMenshen()
  t.after(() => auth.close())
  const { cookie, session } = await auth.signIn({ username: 'ann' })
  const sockets = new WebSocketServer({ noServer: true })
  const server = new Server((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    closeEvents(session, response)
  })
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, client => closeSocket(session, client)),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  const [[events]] = await Promise.all([once(get({ port, agent: false }), 'response'), once(client, 'open')])
  const ends = Promise.all([once(events.resume(), 'end'), once(client, 'close')])
  await auth.signOut(cookie)
  const [, [code]] = await ends
  assert.equal(code, 4401)
  // A stream that begins too late is closed at once.
  let closed = 0
  onSessionEnd(session, () => closed++)()
  assert.equal(closed, 1)
})

const tests = SNIPPETS.filter(({ text }) => text.includes("from 'node:test'"))
assert.equal(tests.length, 1)
for (const snippet of tests) await load(snippet)
