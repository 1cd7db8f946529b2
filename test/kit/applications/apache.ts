// Apache with what runs in it: WebDAV (mod_dav), git (git-http-backend), and the wikis and blogs of PHP.
import assert from 'node:assert/strict'
import { chmodSync, createWriteStream, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { freePort } from '../free-port.ts'
import { tempFolder } from '../temp.ts'
import { type Application, answers, request, run, startProgram } from './application.ts'

const MODULES = ['authz_core', 'dir', 'env', 'headers', 'mime', 'setenvif']
export const PHP_PACKAGES = ['apache2-bin', 'libapache2-mod-php8.2', 'php8.2-cli']
const CHINESE = '季度报告 2026.txt'
const LARGE_BYTES = 100_000_000

/** It listens on a free port. `lines` are of its configuration; PHP needs the module `prefork`. */
export async function startApache(
  t: TestContext,
  folder: string,
  modules: readonly string[],
  lines: readonly string[],
  env: Record<string, string> = {},
): Promise<URL> {
  const port = await freePort()
  // Apache serves as another user when root starts it.
  chmodSync(folder, 0o777)
  const isPhp = modules.includes('php')
  const load = (name: string) =>
    name === 'php'
      ? 'LoadModule php_module /usr/lib/apache2/modules/libphp8.2.so'
      : `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`
  const config = [
    ...[isPhp ? 'mpm_prefork' : 'mpm_event', ...MODULES, ...modules].map(load),
    ...[`ServerRoot ${folder}`, 'ServerName 127.0.0.1', `Listen 127.0.0.1:${port}`, 'ErrorLog /dev/stderr'],
    ...[`PidFile ${folder}/pid`, `DefaultRuntimeDir ${folder}`, 'TypesConfig /etc/mime.types'],
    ...(process.getuid?.() === 0 ? ['User www-data', 'Group www-data'] : []),
    ...(isPhp ? ['<FilesMatch "\\.php$">', 'SetHandler application/x-httpd-php', '</FilesMatch>'] : []),
    ...lines,
  ]
  const file = join(folder, 'httpd.conf')
  writeFileSync(file, `${config.join('\n')}\n`)
  const apache = startProgram(t, folder, ['apache2', '-D', 'FOREGROUND', '-f', file], env)
  const url = new URL(`http://127.0.0.1:${port}`)
  await answers(apache, url)
  return url
}

/** A file with bytes that do not compress. */
export async function largeFile(folder: string, bytes: number): Promise<string> {
  const file = join(folder, 'large.bin')
  const chunk = crypto.getRandomValues(new Uint8Array(65_536))
  const out = createWriteStream(file)
  for (let written = 0; written < bytes; written += chunk.length)
    if (!out.write(chunk.subarray(0, bytes - written))) await new Promise(resolve => out.once('drain', resolve))
  await new Promise(resolve => out.end(resolve))
  return file
}

export const webdav: Application = {
  debian: ['apache2-bin', 'curl', 'media-types'],

  async start(t, folder) {
    const files = join(folder, 'files')
    mkdirSync(files)
    chmodSync(files, 0o777)
    writeFileSync(join(files, 'index.html'), '<h1>Files</h1>')
    return startApache(
      t,
      folder,
      ['dav', 'dav_fs', 'dav_lock'],
      [
        `DocumentRoot ${files}`,
        `DavLockDB ${folder}/locks`,
        'AllowEncodedSlashes NoDecode',
        '<Location />',
        'Dav On',
        'Require all granted',
        '</Location>',
        // The name as its bytes, as many applications send it.
        '<Location /download>',
        `Header set Content-Disposition "attachment; filename=\\"${CHINESE}\\""`,
        '</Location>',
      ],
    )
  },

  async task(entrance, t) {
    const { name, url, page } = entrance
    const curl = (...args: string[]) =>
      run('/', ['curl', '-sS', '--fail-with-body', '-b', entrance.cookie, '-o', '-', ...args])
    const status = async (path: string, init: RequestInit) => (await request(entrance, path, init)).status
    const encoded = encodeURIComponent(CHINESE)

    assert.equal(await status(`/${name}/`, { method: 'MKCOL' }), 201)
    assert.equal(await status(`/${name}/${encoded}`, { method: 'PUT', body: '第一季度' }), 201)
    const found = await request(entrance, `/${name}/`, { method: 'PROPFIND', headers: { depth: '1' } })
    assert.equal(found.status, 207)
    assert.ok(decodeURIComponent(await found.text()).includes(`/${name}/${CHINESE}`))

    // A client gives the address that it knows as the destination.
    const destination = `${url}/${name}/${encodeURIComponent('a;b&c 二.txt')}`
    assert.equal(await status(`/${name}/${encoded}`, { method: 'MOVE', headers: { destination } }), 201)
    const moved = await request(entrance, new URL(destination).pathname)
    assert.equal(await moved.text(), '第一季度')
    const lock = `<?xml version="1.0"?><lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>`
    const locked = await request(entrance, new URL(destination).pathname, { method: 'LOCK', body: lock })
    assert.equal(locked.status, 200)
    const token = String(locked.headers.get('lock-token'))
    assert.equal(await status(new URL(destination).pathname, { method: 'PUT', body: 'x' }), 423)
    assert.equal(
      await status(new URL(destination).pathname, { method: 'UNLOCK', headers: { 'lock-token': token } }),
      204,
    )

    const file = await largeFile(tempFolder(t), LARGE_BYTES)
    const began = performance.now()
    await curl('-T', file, '-H', 'Expect: 100-continue', `${url}/${name}/large.bin`)
    t.diagnostic(`100 MB in ${Math.round(performance.now() - began)} ms`)
    const head = await request(entrance, `/${name}/large.bin`, { method: 'HEAD' })
    assert.equal(head.headers.get('content-length'), String(LARGE_BYTES))
    const part = await request(entrance, `/${name}/large.bin`, { headers: { range: 'bytes=-10' } })
    assert.equal(part.status, 206)

    await status('/download/', { method: 'MKCOL' })
    await status('/download/report', { method: 'PUT', body: '报告' })
    await page.goto(url)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.evaluate(() => location.assign('/download/report')),
    ])
    assert.equal(download.suggestedFilename(), CHINESE)
  },
}

export const git: Application = {
  debian: ['apache2-bin', 'git', 'media-types'],

  async start(t, folder) {
    const repositories = join(folder, 'repositories')
    mkdirSync(repositories)
    await run(repositories, ['git', 'init', '--bare', '-q', 'team/project.git'])
    await run(repositories, ['chmod', '-R', 'a+rwX', '.'])
    return startApache(
      t,
      folder,
      ['alias', 'cgid'],
      [
        `ScriptSock ${folder}/cgi.sock`,
        `SetEnv GIT_PROJECT_ROOT ${repositories}`,
        'SetEnv GIT_HTTP_EXPORT_ALL 1',
        // Git refuses a repository of another user.
        `SetEnv GIT_CONFIG_COUNT 1`,
        'SetEnv GIT_CONFIG_KEY_0 safe.directory',
        'SetEnv GIT_CONFIG_VALUE_0 *',
        // Git lets only a user that it knows push.
        'SetEnvIf X-Forwarded-User "(.+)" REMOTE_USER=$1',
        'ScriptAlias /git/ /usr/lib/git-core/git-http-backend/',
        '<Location />',
        'Require all granted',
        '</Location>',
      ],
    )
  },

  gateway: () => ({ config: { rules: [{ path: '/git', roles: ['*'], bearer: true }] } }),

  async task(entrance, t) {
    const folder = tempFolder(t)
    const { name, url } = entrance
    const remote = `${url}/git/team/project.git`
    const identity = ['-c', 'user.name=Zhang San', '-c', 'user.email=zhangsan@example.com']
    const withHeader = (header: string) => ['-c', `http.extraHeader=${header}`]
    // A browser's session, then an access token; at the application itself the name that the gateway would send.
    const session = withHeader(name === 'direct' ? 'X-Forwarded-User: zhangsan' : `Cookie: ${entrance.cookie}`)
    const token = name === 'direct' ? session : withHeader(`Authorization: ${await entrance.bearer()}`)
    const git = (cwd: string, ...args: string[]) =>
      run(cwd, ['git', ...identity, ...args], { GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1' })

    await git(folder, ...session, 'clone', '-q', remote, 'work')
    const work = join(folder, 'work')
    // More than git holds in memory for one request: it is sent in chunks.
    const bytes = crypto.getRandomValues(new Uint8Array(65_536))
    writeFileSync(
      join(work, '数据.bin'),
      Buffer.concat(Array.from({ length: 80 }, (_, i) => Buffer.from(bytes).fill(i, 0, 8))),
    )
    for (let i = 0; i < 40; i++) writeFileSync(join(work, `part-${i}`), crypto.getRandomValues(new Uint8Array(65_536)))
    await git(work, 'add', '.')
    await git(work, 'commit', '-q', '-m', `报告 ${name}`)
    await git(work, ...session, 'push', '-q', 'origin', `HEAD:refs/heads/${name}/功能`)
    await git(folder, ...token, 'clone', '-q', '-b', `${name}/功能`, remote, 'again')
    assert.match(await git(join(folder, 'again'), 'log', '--format=%s'), new RegExp(`报告 ${name}`))
    if (name === 'gateway') await assert.rejects(git(folder, 'ls-remote', remote), 'a visitor')
  },
}
