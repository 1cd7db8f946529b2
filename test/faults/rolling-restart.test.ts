// A rolling restart behind a real nginx with the configuration of the examples: no request is lost, and none is done twice.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { freePort } from '../kit/free-port.ts'
import { isReady, setUpInstances, signedIn } from '../kit/instance.ts'
import { requireProgram } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { prepareNginx } from '../proxies/nginx.ts'

const EXAMPLE = new URL('../../examples/nginx/gateway.conf', import.meta.url)
const CLIENTS = 8

/** Without TLS, and without the redirect to it. */
function configOf([one, other]: readonly string[], proxy: number): string {
  return readFileSync(EXAMPLE, 'utf8')
    .replace(/^server \{\n {2}listen 80;.*?^\}$/ms, '')
    .replaceAll(/ssl_certificate.*;/g, '')
    .replace('listen 443 ssl;', `listen 127.0.0.1:${proxy};`)
    .replace('127.0.0.1:3000', `127.0.0.1:${one}`)
    .replace('127.0.0.1:3001', `127.0.0.1:${other}`)
}

async function startNginx(t: TestContext, config: string, url: string): Promise<void> {
  const folder = tempFolder(t)
  const file = join(folder, 'menshen.conf')
  writeFileSync(file, config)
  const nginx = spawn(requireProgram('nginx'), prepareNginx(folder, file), { stdio: 'ignore' })
  t.after(async () => {
    nginx.kill('SIGKILL')
    if (nginx.exitCode === null && nginx.signalCode === null) await once(nginx, 'exit')
  })
  await until(() => isReady(url))
}

test('a rolling restart of two instances behind nginx loses no request and repeats no POST', async t => {
  const done = new Map<string, number>()
  const upstream = await startUpstream(t, (request, response) => {
    const id = String(request.headers['x-number'])
    done.set(id, (done.get(id) ?? 0) + 1)
    request.resume().on('end', () => response.end('hello'))
  })
  const proxy = await freePort()
  const url = `http://localhost:${proxy}`
  const { provider, start } = await setUpInstances(t, {
    BASE_URL: url,
    UPSTREAM: upstream.url,
    TRUSTED_PROXIES: '127.0.0.2',
  })
  const ports = [String(await freePort()), String(await freePort())]
  const instances = await Promise.all(ports.map(PORT => start({ PORT })))
  await startNginx(t, configOf(ports, proxy), url)
  const { cookie } = await signedIn({ url }, provider)
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  const answers = new Map<string, number>()
  let sent = 0
  let isOver = false

  async function ask(): Promise<void> {
    const method = sent % 2 === 0 ? 'GET' : 'POST'
    const number = String(sent++)
    const headers = { cookie, 'x-number': number, origin: url }
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const asked = httpRequest(url, { method, agent, headers }, response => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    asked.on('error', reject).end(method === 'POST' ? 'x'.repeat(1000) : undefined)
    const status = await promise.catch(error => error.code)
    const name = `${method} ${status}`
    answers.set(name, (answers.get(name) ?? 0) + 1)
  }

  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!isOver) await ask()
  })
  for (const [n, instance] of instances.entries()) {
    const before = sent
    await until(() => sent > before + 100)
    assert.deepEqual(await instance.kill('SIGTERM'), { code: 0, signal: null })
    const after = sent
    await until(() => sent > after + 100)
    await start({ PORT: ports[n] ?? '' })
  }
  isOver = true
  await Promise.all(clients)
  assert.deepEqual([...answers.keys()].sort(), ['GET 200', 'POST 200'], JSON.stringify([...answers]))
  assert.equal(done.size, sent)
  const twice = [...done].filter(([number, times]) => times > 1 && Number(number) % 2 === 1)
  assert.deepEqual(twice, [], 'no POST was done twice')
  t.diagnostic(`${sent} requests`)
})
