// Applications from npm: Node-RED, Verdaccio and Redis Commander.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '../free-port.ts'
import { npmPackages } from '../live/cached-folder.ts'
import { findProgram } from '../packages.ts'
import { tempFolder } from '../temp.ts'
import { type Application, answers, request, run, startProgram } from './application.ts'

/** The folder of an application of npm, or undefined if it cannot be installed. */
async function installed(name: string, version: string, ...more: string[]): Promise<string | undefined> {
  const load = await npmPackages(`${name}-${version}`, [`${name}@${version}`, ...more])
  return load && dirname(load.resolve(`${name}/package.json`))
}

const notInstalled = (name: string) => `${name} could not be installed from the npm registry`

export const nodeRed: Application = {
  async start(t, folder) {
    const home = await installed('node-red', '5.0.7')
    if (!home) return notInstalled('node-red')
    const port = await freePort()
    const settings = { uiHost: '127.0.0.1', uiPort: port, flowFile: 'flows.json', credentialSecret: 'x' }
    const more = { editorTheme: { tours: false }, telemetry: { enabled: false } }
    writeFileSync(join(folder, 'settings.js'), `module.exports = ${JSON.stringify({ ...settings, ...more })}\n`)
    const options = ['--userDir', folder, '--settings', join(folder, 'settings.js')]
    const program = startProgram(t, folder, [process.execPath, join(home, 'red.js'), ...options])
    const url = new URL(`http://127.0.0.1:${port}`)
    await answers(program, url)
    return url
  },

  async task(entrance) {
    const { name, url, page } = entrance
    const id = (part: string) => `${part}${name}`.padEnd(16, '0').slice(0, 16)
    const flow = {
      id: id('f'),
      label: `流程/${name}`,
      nodes: [
        { id: id('in'), type: 'http in', url: `/hello/${name}/:who`, method: 'get', wires: [[id('t')]] },
        {
          id: id('t'),
          type: 'template',
          template: '你好 {{{req.params.who}}}',
          output: 'str',
          wires: [[id('r'), id('d')]],
        },
        { id: id('r'), type: 'http response', wires: [] },
        { id: id('d'), type: 'debug', active: true, tosidebar: true, complete: 'payload', wires: [] },
      ],
    }
    const created = await request(entrance, '/flow', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(flow),
    })
    assert.equal(created.status, 200, await created.clone().text())
    await page.goto(url)
    await page.locator('#red-ui-header-button-deploy').waitFor()
    await page
      .locator('.red-ui-tab', { hasText: `流程/${name}` })
      .first()
      .waitFor()
    await page.waitForFunction("!document.querySelector('.red-ui-notification-error')")
    await page.evaluate("RED.sidebar.show('debug')")
    // A name with a slash in it is one segment.
    const hello = await request(entrance, `/hello/${name}/${encodeURIComponent('张/三')}`)
    assert.equal(await hello.text(), '你好 张/三')
    // Comes over the WebSocket of the editor.
    await page.locator('.red-ui-debug-msg', { hasText: '你好 张/三' }).waitFor()
  },
}

export const verdaccio: Application = {
  async start(t, folder) {
    // One of its dependencies names this version by a tag, which not every mirror of the registry has.
    const home = await installed('verdaccio', '6.10.4', 'node-fetch@2.7.0')
    if (!home) return notInstalled('verdaccio')
    const port = await freePort()
    const file = join(folder, 'config.yaml')
    writeFileSync(
      file,
      [
        `storage: ${folder}/storage`,
        'auth:',
        '  htpasswd:',
        `    file: ${folder}/htpasswd`,
        'uplinks: {}',
        'packages:',
        "  '**':",
        '    access: $all',
        '    publish: $all',
        'max_body_size: 200mb',
        'log: { type: stdout, format: json, level: warn }',
      ].join('\n'),
    )
    const options = ['--config', file, '--listen', `http://127.0.0.1:${port}`]
    const program = startProgram(t, folder, [process.execPath, join(home, 'bin/verdaccio'), ...options])
    const url = new URL(`http://127.0.0.1:${port}`)
    await answers(program, new URL('/-/ping', url))
    return url
  },

  // npm sends no cookies: it comes with an access token of the provider.
  gateway: () => ({ config: { rules: [{ path: '/', roles: ['*'], bearer: true }] } }),

  async task(entrance, t) {
    const { name, url, page } = entrance
    const folder = tempFolder(t)
    const token = (await entrance.bearer()).replace('Bearer ', '') || (await verdaccioToken(url))
    const { host } = new URL(url)
    writeFileSync(join(folder, '.npmrc'), `registry=${url}/\n//${host}/:_authToken=${token}\n`)
    const npm = (cwd: string, ...args: string[]) =>
      run(cwd, [findProgram('npm') ?? 'npm', ...args], {
        PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
        npm_config_userconfig: join(folder, '.npmrc'),
        npm_config_cache: join(folder, 'cache'),
        npm_config_audit: 'false',
        npm_config_update_notifier: 'false',
      })
    const scoped = `@acme/${name}`
    const source = join(folder, 'source')
    mkdirSync(source)
    const manifest = { name: scoped, version: '1.0.0', description: '内部的包' }
    writeFileSync(join(source, 'package.json'), JSON.stringify(manifest))
    writeFileSync(join(source, 'index.js'), 'module.exports = 42\n')
    await npm(source, 'publish')
    assert.match(await npm(source, 'view', scoped, 'version'), /1\.0\.0/)
    await npm(source, 'dist-tag', 'add', `${scoped}@1.0.0`, 'stable')

    const user = join(folder, 'user')
    mkdirSync(user)
    writeFileSync(join(user, 'package.json'), '{ "private": true }')
    await npm(user, 'install', scoped)
    const lock = JSON.parse(readFileSync(join(user, 'package-lock.json'), 'utf8'))
    const { resolved } = lock.packages[`node_modules/${scoped}`]
    assert.ok(resolved.startsWith(`${url}/`), `the address of its archive is ${resolved}`)

    await page.goto(`${url}/-/web/detail/${scoped}`)
    await page.getByText('内部的包').first().waitFor()
  },
}

/** A user of its own, as `npm adduser` creates it. */
async function verdaccioToken(url: string): Promise<string> {
  const answer = await fetch(`${url}/-/user/org.couchdb.user:zhangsan`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'zhangsan', password: 'npm-password' }),
  })
  const { token } = (await answer.json()) as { token: string }
  return token
}

export const redisCommander: Application = {
  debian: ['redis-server', 'redis-tools'],

  async start(t, folder) {
    const home = await installed('redis-commander', '0.9.0')
    if (!home) return notInstalled('redis-commander')
    const [port, redisPort] = [await freePort(), String(await freePort())]
    startProgram(t, folder, ['redis-server', '--port', redisPort, '--bind', '127.0.0.1', '--save', '', '--dir', folder])
    const options = ['--redis-host', '127.0.0.1', '--redis-port', redisPort, '--address', '127.0.0.1', '--nosave']
    const main = join(home, 'bin/redis-commander.js')
    const program = startProgram(t, folder, [process.execPath, main, ...options, '--port', String(port)])
    const url = new URL(`http://127.0.0.1:${port}`)
    await answers(program, url)
    return url
  },

  async task(entrance) {
    const { name, url, page } = entrance
    const key = `${name}/a;b 键%2F`
    await page.goto(url)
    const connection = String(await page.locator('#keyTree li[id*=":"]').first().getAttribute('id'))
    const path = (key: string) => `/apiv2/key/${encodeURIComponent(connection)}/${encodeURIComponent(key)}`
    const saved = await page.evaluate(
      async ({ path, body }) => {
        const headers = { 'content-type': 'application/x-www-form-urlencoded' }
        return (await fetch(path, { method: 'POST', headers, body })).status
      },
      { path: path(key), body: new URLSearchParams({ keyType: 'string', stringValue: '值 42' }).toString() },
    )
    assert.equal(saved, 200)
    await page.reload()
    await page.getByRole('treeitem').getByText(key).click()
    await page.waitForFunction(
      "document.querySelector('#itemData, #body').innerText.includes('值 42') || [...document.querySelectorAll('textarea')].some(area => area.value.includes('值 42'))",
    )
  },
}
