// Redirects of an application to its own address lead to ours: nobody but the gateway can reach that one.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { join } from 'node:path'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { startUpstream, watch } from '../kit/upstream.ts'
import { raw, request, startRawUpstream } from './raw.ts'

test('an application’s own address in Location is replaced by Menshen’s, and any other address is kept', async t => {
  let answer = ''
  const scene = await setUp(t, {
    answer: (_request, response) => response.writeHead(302, { location: answer, 'content-location': answer }).end(),
  })
  const user = await scene.user()
  const { host, port } = new URL(scene.upstream.url)
  const own = scene.baseUrl
  for (const [given, expected] of [
    [`http://${host}/x`, `${own}/x`],
    [`HTTP://${host}/x?y=1#z`, `${own}/x?y=1#z`],
    [`http://${host}`, `${own}/`],
    [`http://${host}?y`, `${own}/?y`],
    [`http://${host}#z`, `${own}/#z`],
    [`http://127.0.0.1.:${port}/x`, `${own}/x`],
    // One port is one application: it was told that the browser uses https.
    [`https://${host}/x`, `${own}/x`],
    [`//${host}/x`, `${own}/x`],
    [`http://${host}/%E4%B8%AD%2f..`, `${own}/%E4%B8%AD%2f..`],
    [`http://${host}//evil.example/`, `${own}//evil.example/`],
    [`http://${host}/\\evil.example/`, `${own}/\\evil.example/`],
    ...[
      ...['/x', 'x', '?y', '', `/${host}/x`, '//evil.example/x', 'https://evil.example/', 'mailto:a@example.com'],
      ...['http://127.0.0.1/x', `http://127.0.0.1:${Number(port) - 1}/x`, `http://127.0.0.1:${port}0/x`],
      ...[`http://user@${host}/x`, `http://user:secret@${host}/x`, `http://${host}@evil.example/`, 'http://[::1'],
      ...[`http://evil.example/?to=http://${host}/x`, `http://${host}.evil.example/`, `ftp://${host}/x`],
    ].map(foreign => [foreign, foreign] as const),
  ] as const) {
    answer = given
    const { headers } = await user.get('/')
    assert.equal(headers.location, expected, given)
    assert.equal(headers['content-location'], expected, given)
  }
})

test('an application’s address in Location is recognized with or without the default port, a final dot and in any case', async t => {
  const folder = tempFolder(t)
  let answer = ''
  const upstream = await watch(t, createServer().listen(join(folder, 'app.sock')), (_request, response) =>
    response.writeHead(302, { location: answer }).end(),
  )
  assert.ok(upstream.server.listening)
  // The application on a socket is told that it is http://localhost; the others are not asked, only named.
  const scene = await setUp(t, {
    env: { UPSTREAM: `unix:${join(folder, 'app.sock')}`, BASE_URL: 'https://app.example.com' },
    config: { upstreams: { '/plain': 'http://plain.example', '/safe': 'https://Safe.example:443' } },
  })
  const visitor = scene.visitor()
  await visitor.get(`/callback?code=${scene.provider.codeFor()}&state=abc_idp`)
  for (const [given, expected] of [
    ['http://localhost/x', '/x'],
    ['http://LOCALHOST:80/x', '/x'],
    ['http://localhost./x', '/x'],
    ['http://plain.example/x', '/x'],
    ['http://Plain.Example.:80/x', '/x'],
    ['https://safe.example/x', '/x'],
    ['https://SAFE.example:443/x', '/x'],
    ['//safe.example:443/x', '/x'],
    // The application has made the address from the Host of the browser.
    ['http://app.example.com/x', '/x'],
    ['http://app.example.com:8080/x', undefined],
    ['https://plain.example/x', undefined],
    ['http://safe.example/x', undefined],
    ['http://localhost:8080/x', undefined],
  ] as const) {
    answer = given
    const { headers } = await visitor.get('/', { headers: { cookie: cookieOf(visitor) } })
    assert.equal(headers.location, expected ? `https://app.example.com${expected}` : given, given)
  }
})

test('with several applications, the address of each is replaced in Location, whichever of them sends it', async t => {
  let answer = ''
  const wiki = await startUpstream(t, (_request, response) => response.writeHead(302, { location: answer }).end())
  const scene = await setUp(t, { config: { upstreams: { '/wiki': { url: wiki.url, audience: 'wiki' } } } })
  const user = await scene.user()
  for (const url of [wiki.url, scene.upstream.url]) {
    answer = `${url}/wiki/page`
    assert.equal((await user.get('/wiki')).headers.location, `${scene.baseUrl}/wiki/page`)
  }
})

test('non-ASCII bytes in Location are kept, and two Location headers stay two', async t => {
  const upstream = await startRawUpstream(t, (socket, head) => {
    const host = /\r\nhost: ([^\r]+)/i.exec(head)?.[1]
    const lines = [`location: http://${host}/\xe4\xb8\xad`, `location: http://${host}/second`, 'content-length: 0']
    socket.write(`HTTP/1.1 302 Found\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url, UPSTREAM_HOST_HEADER: 'upstream' } })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const answer = await raw(scene.url, request('GET / HTTP/1.1', cookie))
  assert.deepEqual(
    [...answer.matchAll(/\r\nlocation: ([^\r]*)/gi)].map(([, location]) => location),
    [`${scene.baseUrl}/\xe4\xb8\xad`, `${scene.baseUrl}/second`],
  )
})
