// A proxy's question about a WebSocket: it may carry the browser's own Upgrade headers, and is a question all the same.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { cookieOf, createClient, signIn } from '../kit/client.ts'
import { openLibrary } from '../kit/library.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { raw, statusOf } from '../proxy/raw.ts'

const SOCKET = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: abcd']
const QUESTIONS = [
  ['/_menshen/check', 'x-original-uri'],
  ['/_menshen/forward', 'x-forwarded-uri'],
  // Here the path is behind ours, and the header says nothing.
  ['/_menshen/authz/chat', 'x-forwarded-uri'],
] as const

function ask(url: string, path: string, ...headers: string[]): Promise<string> {
  return raw(url, `${[`GET ${path} HTTP/1.1`, 'host: a', ...SOCKET, ...headers].join('\r\n')}\r\n\r\n`)
}

async function openAsLibrary(t: TestContext) {
  const provider = await openScriptedProvider(t)
  const { url, server } = await openLibrary(t, { ...provider.settings, TRUSTED_PROXIES: '127.0.0.1' })
  const user = createClient(url)
  await signIn(user, provider)
  return { url, baseUrl: url, user, server }
}

async function openCommand(t: TestContext) {
  const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  return { url: scene.url, baseUrl: scene.baseUrl, user: await scene.user() }
}

for (const [name, open] of [
  ['the command', openCommand],
  ['the library', openAsLibrary],
] as const)
  test(`${name} answers an auth check with Upgrade headers with 200 for a user and 401 for a visitor`, async t => {
    const { url, baseUrl, user } = await open(t)
    const cookie = `cookie: ${cookieOf(user)}`
    for (const [path, uri] of QUESTIONS) {
      const close = 'connection: close'
      const admitted = await ask(url, path, `${uri}: /chat`, cookie, close)
      assert.equal(statusOf(admitted), 200, path)
      assert.match(admitted, /x-forwarded-user: zhangsan/i)
      assert.equal(statusOf(await ask(url, path, `${uri}: /chat`, cookie, `origin: ${baseUrl}`, close)), 200)
      assert.equal(statusOf(await ask(url, path, `${uri}: /chat`, 'accept: application/json', close)), 401)
    }
  })

test('an auth check for a WebSocket opened by another site gets 403, with and without Upgrade headers', async t => {
  const { url, user } = await openCommand(t)
  const cookie = `cookie: ${cookieOf(user)}`
  for (const [path, uri] of QUESTIONS)
    for (const origin of ['https://evil.example', 'null', `${url}.evil.example`]) {
      const close = 'connection: close'
      assert.equal(statusOf(await ask(url, path, `${uri}: /chat`, cookie, `origin: ${origin}`, close)), 403, path)
      // nginx does not pass Upgrade on to the one that it asks.
      const bare = `GET ${path} HTTP/1.1\r\nhost: a\r\nsec-websocket-key: abcd\r\n${uri}: /chat\r\n${cookie}\r\n`
      assert.equal(statusOf(await raw(url, `${bare}origin: ${origin}\r\n${close}\r\n\r\n`)), 403, path)
    }
})

test('an auth check with Upgrade headers leaves no open connection in the library', async t => {
  const { url, user, server } = await openAsLibrary(t)
  const connections = () => new Promise<number>(resolve => server.getConnections((_error, count) => resolve(count)))
  await Promise.all(
    Array.from({ length: 20 }, () => ask(url, '/_menshen/forward', 'x-forwarded-uri: /', `cookie: ${cookieOf(user)}`)),
  )
  await until(async () => (await connections()) === 0)
})
