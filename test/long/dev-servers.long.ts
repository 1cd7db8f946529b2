// The packed package in an application that a development server evaluates again or restarts: Vite and `node --watch`.
// test/long/next.long.ts has Next.

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '../kit/client.ts'
import { signInAtDevProvider } from '../kit/dev-sign-in.ts'
import { freePort } from '../kit/free-port.ts'
import { until } from '../kit/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
const ENVIRONMENT = { ...process.env, PATH, npm_config_update_notifier: 'false' }
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'menshen-dev-servers-'))

before(
  async () => {
    await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT, env: ENVIRONMENT })
    const [packed = ''] = readdirSync(folder)
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
    const options = ['--prefer-offline', '--no-audit', '--no-fund', '--silent']
    await run('npm', ['install', ...options, packed, 'express@5', 'vite@8'], { cwd: folder, env: ENVIRONMENT })
  },
  { timeout: 600_000 },
)
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))

suite('a development server', () => {
  test('a restart by node --watch reuses the ports, applies a changed rule and keeps the user signed in', async t => {
    const scene = await prepareDevServer()
    const write = (role: string) =>
      writeFileSync(
        join(folder, 'watched.js'),
        `${scene.application(`{ ${scene.options}, rules: [{ path: '/page', roles: ['${role}'] }] }`)}
        app.listen(${scene.port})`,
      )
    write('developer')
    start(t, ['--watch', 'watched.js'])
    await scene.signIn()
    assert.equal(await scene.page(), 403)
    write('common')
    await scene.becomes(200)
  })

  test('a reload by Vite reuses the port of the development provider, applies a changed rule and keeps the user signed in', async t => {
    const scene = await prepareDevServer()
    const write = (rule: string) =>
      writeFileSync(
        join(folder, 'application.ts'),
        scene.application(`{ ${scene.options}, store: 'memory:', instanceName: 'app', rules: [${rule}] }`),
      )
    /** Vite overlooks a change that follows another one within milliseconds: the file is written again until it is seen. */
    const change = (rule: string, expected: number) =>
      until(async () => {
        write(rule)
        await pause(500)
        return (await scene.page()) === expected
      }, 120_000)
    writeFileSync(
      join(folder, 'vite-server.js'),
      `import { createServer } from 'node:http'
      import { createServer as createVite } from 'vite'

      const vite = await createVite({ server: { middlewareMode: true, ws: false }, appType: 'custom' })
      createServer(async (request, response) => {
        try {
          const { app } = await vite.ssrLoadModule('/application.ts')
          app(request, response)
        } catch (error) {
          response.writeHead(500).end(error.message)
        }
      }).listen(${scene.port})`,
    )
    write("{ path: '/page', roles: ['developer'] }")
    start(t, ['vite-server.js'])
    await scene.signIn()
    assert.equal(await scene.page(), 403)
    await change("{ path: 'page', roles: ['common'] }", 500)
    await change("{ path: '/page', roles: ['common'] }", 200)
  })
})

/** An application for a development server, and a user who asks it. */
async function prepareDevServer() {
  const [port, devProviderPort] = [await freePort(), await freePort()]
  const url = `http://localhost:${port}`
  const user = createClient(url)
  const status = async (path: string) =>
    (await user.get(path, { headers: { accept: 'text/html' } }).catch(() => undefined))?.status
  const becomes = (expected: number, path = '/page') => until(async () => (await status(path)) === expected, 120_000)
  return {
    port,
    options: `baseUrl: '${url}', devProvider: true, devProviderPort: ${devProviderPort}`,
    application: (options: string) => `import express from 'express'
      import { createMenshen } from 'menshen'
      import { menshen } from 'menshen/express'

      export const app = express()
      app.use(menshen(await createMenshen(${options})))
      app.get('/page', (request, response) => void response.send(request.user.userInfo.username))\n`,
    page: () => status('/page'),
    becomes,
    async signIn() {
      await becomes(200, '/_menshen/ready')
      await signInAtDevProvider(user, 'zhangsan')
    },
  }
}

function start(t: TestContext, args: readonly string[]): void {
  const child = spawn(process.execPath, args, { cwd: folder, env: ENVIRONMENT, stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill()
    await exited
  })
}
