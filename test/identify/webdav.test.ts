// Methods of WebDAV act on more than the path that they name: with Apache's mod_dav, and by each way in.

import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import type { Config, Rule } from '../../src/index.ts'
import { startApache } from '../kit/applications/apache.ts'
import type { Client } from '../kit/client.ts'
import { requirePrograms } from '../kit/requirements.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { startUpstream } from '../kit/upstream.ts'

const RULES: Rule[] = [
  { path: '/files', roles: ['*'] },
  { path: '/files/secret', roles: ['developer'] },
]
const SECRET = 'the salaries'

/** Apache with a folder that is closed to most users, and a gateway before it. */
async function setUpFiles(t: TestContext, config: Config = { rules: RULES }) {
  await requirePrograms('apache2')
  const folder = tempFolder(t)
  const root = join(folder, 'root')
  for (const name of ['', 'files', 'files/secret', 'files/drafts', 'copies']) {
    mkdirSync(join(root, name))
    chmodSync(join(root, name), 0o777)
  }
  writeFileSync(join(root, 'files/secret/report.txt'), SECRET)
  writeFileSync(join(root, 'files/drafts/a.txt'), 'a draft')
  for (const name of ['files/secret/report.txt', 'files/drafts/a.txt']) chmodSync(join(root, name), 0o666)
  const apache = await startApache(
    t,
    folder,
    ['dav', 'dav_fs', 'dav_lock'],
    [
      `DocumentRoot ${root}`,
      `DavLockDB ${folder}/locks`,
      ...['DavDepthInfinity On', '<Location />', 'Dav On', 'Require all granted', '</Location>'],
    ],
  )
  const scene = await setUp(t, { application: false, env: { UPSTREAM: apache.origin }, config })
  const read = (name: string) => (existsSync(join(root, name)) ? readFileSync(join(root, name), 'utf8') : undefined)
  return { ...scene, read }
}

const LOCK = `<?xml version="1.0"?><lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>`

function send(client: Client, method: string, path: string, headers: Record<string, string | string[]> = {}) {
  return client.request({ method, path, headers, ...(method === 'LOCK' && { body: LOCK }) })
}

test('a user cannot copy, move, delete, list or lock closed resources below a mod_dav folder', async t => {
  const { user, url, read } = await setUpFiles(t)
  const common = await user()
  const refused = async (...args: [method: string, path: string, headers?: Record<string, string>]) => {
    const answer = await send(common, ...args)
    assert.equal(answer.status, 403, args.join(' '))
    assert.doesNotMatch(answer.text, /report\.txt|salaries/)
  }
  await refused('COPY', '/files/', { destination: `${url}/copies/all` })
  await refused('COPY', '/files/secret/', { destination: `${url}/copies/secret` })
  await refused('MOVE', '/files/', { destination: '/copies/all' })
  await refused('DELETE', '/files/')
  await refused('DELETE', '/')
  for (const depth of ['1', 'infinity']) await refused('PROPFIND', '/files/', { depth })
  await refused('PROPFIND', '/files/')
  await refused('LOCK', '/files/', { depth: 'infinity' })
  // Over a file, and over the folder that has it.
  await refused('COPY', '/files/drafts/a.txt', { destination: `${url}/files/secret/report.txt` })
  await refused('MOVE', '/files/drafts/a.txt', { destination: `${url}/files/%73ecret/report.txt` })
  await refused('COPY', '/files/drafts/', { destination: `${url}/files` })
  await refused('COPY', '/files/drafts/', { destination: `${url}/files`, depth: '0' })
  assert.equal(read('files/secret/report.txt'), SECRET)
  assert.equal(read('copies/all/secret/report.txt'), undefined)
  assert.equal(read('files/drafts/a.txt'), 'a draft')
})

test('permitted WebDAV requests work through the gateway: everything for a developer, open folders for a user', async t => {
  const { user, url, read } = await setUpFiles(t)
  const common = await user()
  const found = await send(common, 'PROPFIND', '/files/', { depth: '0' })
  assert.equal(found.status, 207)
  assert.doesNotMatch(found.text, /secret/)
  assert.equal((await send(common, 'PROPFIND', '/files/drafts/', { depth: 'infinity' })).status, 207)
  assert.equal((await send(common, 'COPY', '/files/drafts/', { destination: `${url}/copies/drafts` })).status, 201)
  assert.equal(read('copies/drafts/a.txt'), 'a draft')
  assert.equal((await send(common, 'LOCK', '/copies/drafts/a.txt', { depth: 'infinity' })).status, 200)
  const developer = await user('admin')
  assert.match((await send(developer, 'PROPFIND', '/files/', { depth: 'infinity' })).text, /secret\/report\.txt/)
  assert.equal((await send(developer, 'COPY', '/files/', { destination: `${url}/copies/all` })).status, 201)
  assert.equal(read('copies/all/secret/report.txt'), SECRET)
})

test('a foreign, invalid or duplicate Destination and the older New-URI header get 400 and a log line', async t => {
  const { user, url, lines, read } = await setUpFiles(t)
  const developer = await user('admin')
  const rows: [headers: Record<string, string | string[]>, reason: string][] = [
    [{ destination: 'http://other.example/copies/x' }, 'destination_other_host'],
    [{ destination: `${url}/copies/%2e%2e/x` }, 'destination_dot_segment'],
    [{ destination: 'copies/x' }, 'destination_not_an_address'],
    [{ destination: [`${url}/copies/x`, `${url}/copies/y`] }, 'destination_forbidden_character'],
    // mod_dav reads it if there is no Destination.
    [{ 'new-uri': '/copies/x' }, 'destination_new_uri'],
  ]
  for (const [headers, reason] of rows) {
    const { status } = await send(developer, 'COPY', '/files/drafts/a.txt', headers)
    assert.equal(status, 400, reason)
    assert.equal(lines.filter(({ event }) => event === 'path_refused').at(-1)?.fields.reason, reason)
  }
  assert.equal(read('copies/x'), undefined)
})

test('Destination is rewritten for an upstream with stripPrefix or its own host', async t => {
  const upstream = await startUpstream(t)
  const host = new URL(upstream.url).host
  const reach = async (options: object, prefix: string, destination: string) => {
    const scene = await setUp(t, {
      application: false,
      config: { upstreams: { [prefix]: { url: upstream.url, ...options } } },
    })
    const client = await scene.user()
    const address = destination.startsWith('/') ? destination : scene.baseUrl + destination.slice(1)
    const { status } = await send(client, 'MOVE', `${prefix === '/' ? '' : prefix}/a`, { destination: address })
    return status === 200 ? upstream.last().headers.destination?.toString().replace(scene.baseUrl, 'OURS') : status
  }
  assert.equal(await reach({}, '/', '*/a%20b;c'), 'OURS/a%20b;c')
  assert.equal(await reach({ stripPrefix: true }, '/dav', '*/dav/b'), 'OURS/b')
  assert.equal(await reach({ stripPrefix: true }, '/dav', '/d%61v/b'), '/b')
  assert.equal(await reach({ host: 'upstream' }, '/dav', '*/dav/b'), `http://${host}/dav/b`)
  assert.equal(await reach({ host: 'files.internal', stripPrefix: true }, '/dav', '*/dav/b'), 'http://files.internal/b')
  // The application would take it for /other/b of its own, which has another address here.
  assert.equal(await reach({ stripPrefix: true }, '/dav', '*/other/b'), 400)
})

test('check, forward and authz decide alike by the Depth and Destination headers that the proxy passes on', async t => {
  const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1' }, config: { rules: RULES } })
  const common = await scene.user()
  const developer = await scene.user('admin')
  const ask = async (client: Client, method: string, path: string, headers: Record<string, string> = {}) => [
    (
      await client.get('/_menshen/check', {
        headers: { 'x-original-uri': path, 'x-original-method': method, ...headers },
      })
    ).status,
    (
      await client.get('/_menshen/forward', {
        headers: { 'x-forwarded-uri': path, 'x-forwarded-method': method, ...headers },
      })
    ).status,
    (await client.request({ method, path: `/_menshen/authz${path}`, headers })).status,
  ]
  assert.deepEqual(await ask(common, 'PROPFIND', '/files'), [403, 403, 403])
  assert.deepEqual(await ask(common, 'PROPFIND', '/files', { depth: '0' }), [200, 200, 200])
  assert.deepEqual(await ask(developer, 'PROPFIND', '/files'), [200, 200, 200])
  const onto = (destination: string) => ({ destination: scene.baseUrl + destination })
  assert.deepEqual(await ask(common, 'MOVE', '/files/a', onto('/files/secret/b')), [403, 403, 403])
  assert.deepEqual(await ask(common, 'MOVE', '/files/a', onto('/files/b')), [200, 200, 200])
  assert.deepEqual(await ask(common, 'MOVE', '/files/a', { destination: 'https://other.example/b' }), [400, 400, 400])
  // Nobody knows where to.
  assert.deepEqual(await ask(common, 'COPY', '/files/a'), [400, 400, 400])
  assert.equal(scene.lines.filter(({ event }) => event === 'check_refused').length, 3)
})
