// Large uploads, large downloads and early hints through a proxy, the same through each.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as http from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import test, { type TestContext } from 'node:test'
import { type Client, cookieOf } from '../kit/client.ts'
import { openWire, request } from '../proxy/raw.ts'
import { type FrontProxy, openBehind } from './proxies.ts'

const MEGABYTE = 1024 * 1024
/** More than a proxy keeps in its buffers and the system in its sockets. */
const SIZE = 32 * MEGABYTE
const LINK = '</style.css>; rel=preload; as=style'

/** The application. */
async function answer(incoming: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  switch (incoming.url) {
    case '/upload':
      // The browser may leave before the end.
      return void response.end(await digestOf(incoming).catch(String))
    case '/download':
      return pipeline(chunks(), response)
    case '/download/endless':
      return void response.write('begun')
    case '/hints':
      response.writeEarlyHints({ link: LINK })
      return void setTimeout(() => response.setHeader('x-page', '1').end('page'), 50)
    default:
      return void response.end()
  }
}

export function testTransfers(proxy: FrontProxy): void {
  const { program, name = program, earlyHints = 'pass' } = proxy
  const open = (t: TestContext) => openBehind(t, proxy, { answer })

  for (const [framing, headers] of [
    ['a length', { 'content-length': SIZE }],
    ['chunks', {}],
  ] as const)
    test(`behind ${name} an upload of 32 MB with ${framing} reaches the application unchanged`, async t => {
      const { url, user } = await open(t)
      const sent = ask(url, await user(), '/upload', { method: 'POST', headers })
      const [[response]] = await Promise.all([responseTo(sent), pipeline(chunks(), sent)])
      assert.equal((await response.toArray()).join(''), await digestOf(chunks()))
    })

  test(`behind ${name} the application reads an upload while the browser sends it`, async t => {
    const { scene, url, user } = await open(t)
    const headers = { 'content-length': 2 * MEGABYTE }
    const sent = ask(url, await user(), '/upload', { method: 'POST', headers })
    const received = once(scene.upstream.server, 'request') as Promise<[http.IncomingMessage]>
    sent.write(Buffer.alloc(MEGABYTE))
    // An answer means that the upload does not reach the application.
    const [incoming] = await Promise.race([received, responseTo(sent)])
    assert.equal(incoming.statusCode, null)
    await once(incoming, 'data')
    assert.equal(incoming.complete, false)
    incoming.on('error', () => {})
    sent.destroy()
  })

  test(`behind ${name} a visitor’s upload does not reach the application`, async t => {
    const { scene, url, client } = await open(t)
    const headers = { 'content-length': 2 * MEGABYTE }
    const sent = ask(url, client(), '/upload', { method: 'POST', headers }).end(Buffer.alloc(2 * MEGABYTE))
    const [response] = await responseTo(sent)
    assert.equal(response.statusCode, 401)
    assert.deepEqual(scene.upstream.received, [])
  })

  test(`behind ${name} a download of 32 MB arrives unchanged, and the browser reads it while it is sent`, async t => {
    const { url, user } = await open(t)
    const client = await user()
    const [response] = await responseTo(ask(url, client, '/download').end())
    assert.equal(await digestOf(response), await digestOf(chunks()))
    const [endless] = await responseTo(ask(url, client, '/download/endless').end())
    assert.equal((await once(endless, 'data')).join(''), 'begun')
    endless.destroy()
  })

  test(`behind ${name} ${EARLY_HINTS[earlyHints]}`, async t => {
    const { url, user } = await open(t)
    const wire = await openWire(url)
    const hints = request('GET /hints HTTP/1.1', `cookie: ${cookieOf(await user())}`)
    wire.socket.write(hints.replace('app.test', new URL(url).host))
    const [interim = '', page = ''] = (await wire.sees('\r\n\r\npage')).split('\r\n\r\n')
    assert.match(interim, /^HTTP\/1\.1 103 /)
    assert.match(interim, new RegExp(`^link: ${LINK}$`, 'im'))
    assert.match(page, /^HTTP\/1\.1 200 /)
    // nginx adds its own name to the head of an answer, and closes an HTTP/1.1 connection that was to be closed.
    if (earlyHints === 'taken for the answer') assert.match(interim, /^connection: close$/im)
    else assert.doesNotMatch(interim, /^connection:/im)
    wire.socket.destroy()
  })
}

const EARLY_HINTS = {
  pass: 'early hints reach the browser before the page',
  'taken for the answer': 'early hints are sent as the head of the response, and the page as its body',
}

function ask(url: string, client: Client, path: string, options: http.RequestOptions = {}): http.ClientRequest {
  const headers = { ...options.headers, cookie: cookieOf(client) }
  // A test that has seen enough ends its request.
  return http.request(url + path, { ...options, headers, agent: false }).on('error', () => {})
}

function responseTo(sent: http.ClientRequest): Promise<[http.IncomingMessage]> {
  return once(sent, 'response') as Promise<[http.IncomingMessage]>
}

function chunks(): Readable {
  const chunk = Buffer.alloc(MEGABYTE)
  return Readable.from(
    (function* () {
      for (let n = 0; n < SIZE / MEGABYTE; n++) {
        chunk.fill(n)
        yield Buffer.from(chunk)
      }
    })(),
  )
}

/** Of all bytes, and how many there are. */
async function digestOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    hash.update(chunk)
  }
  return `${bytes} bytes, ${hash.digest('hex')}`
}
