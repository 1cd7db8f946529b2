// session.js in documents of an application that does not know Menshen.

import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setUp } from '../kit/set-up.ts'
import { startUpstream } from '../kit/upstream.ts'

const DOCUMENT = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', 'accept-encoding': 'gzip, br' }
const PAGE = '<!doctype html><title>报告</title><p>half'
const TAG = '<script type="module" src="/_menshen/assets/session.js"></script>\n'
const HTML = { 'content-type': 'text/html; charset=utf-8' }

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function openPages(t: TestContext, answer: Answer) {
  const application = await startUpstream(t, answer)
  const upstreams = { '/': { url: application.url, sessionScript: true } }
  const scene = await setUp(t, { application: false, config: { upstreams, rules: [{ path: '/open', public: true }] } })
  return { application, scene, user: await scene.user() }
}

test('session.js is added to the end of an application’s document, with a content length or chunked', async t => {
  const { user, application } = await openPages(t, (request, response) => {
    if (request.url === '/chunked') response.writeHead(200, HTML).write(PAGE)
    else if (request.url === '/parts')
      response.writeHead(200, { ...HTML, 'content-length': Buffer.byteLength(PAGE) * 2 }).write(PAGE)
    else response.writeHead(200, { ...HTML, 'content-length': Buffer.byteLength(PAGE), digest: 'x', etag: '"1"' })
    response.end(request.url === '/chunked' ? '' : PAGE)
  })
  for (const [path, body] of [
    ['/whole', PAGE + TAG],
    ['/chunked', PAGE + TAG],
    ['/parts', PAGE + PAGE + TAG],
  ] as const) {
    const answer = await user.get(path, { headers: { ...DOCUMENT, range: 'bytes=0-1' } })
    assert.equal(answer.text, body, path)
    const length = answer.headers['content-length']
    assert.equal(length, path === '/chunked' ? undefined : String(Buffer.byteLength(body)))
    assert.equal(answer.headers.digest, undefined)
  }
  const { headers } = application.last()
  assert.deepEqual([headers['accept-encoding'], headers.range], ['identity', undefined])
})

test('session.js is not added for visitors, scripts, frames, images, HEAD, or partial, UTF-16 or compressed responses', async t => {
  const { user, scene, application } = await openPages(t, (request, response) => {
    const type = request.url === '/image' ? 'image/png' : request.url === '/wide' ? 'text/html; charset=UTF-16LE' : ''
    const status = request.url === '/partial' ? 206 : 200
    response.writeHead(status, {
      ...HTML,
      ...(type && { 'content-type': type }),
      ...(request.url === '/packed' && { 'content-encoding': 'x-own' }),
    })
    response.end(PAGE)
  })
  for (const path of ['/image', '/wide', '/partial', '/packed'])
    assert.equal((await user.get(path, { headers: DOCUMENT })).text, PAGE, path)
  for (const [destination, mode] of [
    ['empty', 'cors'],
    ['iframe', 'navigate'],
    ['image', 'no-cors'],
  ] as const) {
    const headers = { ...DOCUMENT, 'sec-fetch-dest': destination, 'sec-fetch-mode': mode }
    assert.equal((await user.get('/x', { headers })).text, PAGE)
  }
  assert.equal(application.last().headers['accept-encoding'], DOCUMENT['accept-encoding'])
  assert.equal((await scene.visitor().get('/open', { headers: DOCUMENT })).text, PAGE)
  assert.equal(
    (await user.request({ method: 'HEAD', path: '/x', headers: DOCUMENT })).headers['content-length'],
    undefined,
  )
})

test('session.js is added to a document that the application’s service worker passes on', async t => {
  const { user } = await openPages(t, (_request, response) => {
    response.writeHead(200, HTML)
    response.end(PAGE)
  })
  assert.equal((await user.get('/x', { headers: { ...DOCUMENT, 'sec-fetch-dest': 'empty' } })).text, PAGE + TAG)
})

test('session.js gets the nonce of the document’s Content-Security-Policy, and is not added if the policy forbids it', async t => {
  let policy: string | string[] = ''
  const { user } = await openPages(t, (_request, response) => {
    response.setHeader('content-security-policy', policy)
    response.writeHead(200, HTML).end(PAGE)
  })
  const shown = async (given: string | string[]) => {
    policy = given
    return (await user.get('/x', { headers: DOCUMENT })).text.slice(PAGE.length)
  }
  const withNonce = TAG.replace('></script>', ' nonce="r4nd0m+/=="></script>')
  for (const allowed of [
    "default-src 'self'",
    "script-src 'self'; style-src 'none'",
    "frame-ancestors 'none'",
    'script-src *',
  ])
    assert.equal(await shown(allowed), TAG, allowed)
  for (const nonce of [
    "script-src 'nonce-r4nd0m+/=='",
    "script-src 'strict-dynamic' 'nonce-r4nd0m+/=='; object-src 'none'",
  ])
    assert.equal(await shown(nonce), withNonce, nonce)
  assert.equal(await shown(["script-src 'nonce-r4nd0m+/=='", "default-src 'self'"]), withNonce)
  for (const forbidden of [
    ...["default-src 'none'", "script-src 'none'", "script-src 'sha256-x'", 'script-src https://cdn.example'],
    ...["script-src 'self' 'strict-dynamic'", "script-src 'self'; connect-src 'none'"],
    ...[`script-src 'nonce-"><script>'`],
  ])
    assert.equal(await shown(forbidden), '', forbidden)
  assert.equal(await shown(["script-src 'nonce-one'", "script-src 'nonce-two'"]), '')
})
