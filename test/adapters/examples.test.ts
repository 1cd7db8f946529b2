// The examples of an application of your own: ten lines or fewer, run as they are, with somebody who signs in and out.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Client, createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { compiledCode } from '../kit/instance.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url))
/** A machine that is busy with other tests may take this long to load everything. */
const START_DEADLINE_MS = 60_000

for (const name of ['express', 'fastify', 'hono']) {
  test(`examples/${name} has at most ten lines, and a user can sign in and out`, async t => {
    const lines = readFileSync(`${EXAMPLES}${name}/app.ts`, 'utf8').split('\n').filter(Boolean)
    assert.ok(lines.length <= 10, `${lines.length} lines`)
    const url = await run(t, name)
    const visitor = createClient(url)
    await until(() => isReady(visitor), START_DEADLINE_MS)
    await signInAs(visitor, 'admin')
    assert.equal((await visitor.get('/')).text, 'Hello admin')
    const out = await visitor.post('/logout', {}, { headers: { origin: url } })
    assert.equal(out.status, 303)
    assert.equal((await visitor.get('/', { headers: { accept: 'application/json' } })).status, 401)
  })
}

async function run(t: TestContext, name: string): Promise<string> {
  const port = await freePort()
  const env = { PATH: process.env.PATH, ...compiledCode(), PORT: String(port) }
  const args = [`--import=${EXAMPLES}from-source.ts`, `${EXAMPLES}${name}/app.ts`]
  const child = spawn(process.execPath, args, { cwd: tempFolder(t), env, stdio: 'inherit' })
  t.after(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  return `http://localhost:${port}`
}

function isReady(visitor: Client): Promise<boolean> {
  return visitor.get('/_menshen/ready').then(
    ({ status }) => status === 200,
    () => false,
  )
}

/** By the development provider, from the page that was wanted and back to it. */
async function signInAs(visitor: Client, username: string): Promise<void> {
  const wanted = await visitor.get('/?x=1', { headers: { accept: 'text/html' } })
  const { text } = await visitor.follow(wanted)
  const address = /data-authorize="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const back = await fetch(`${address}&state=abc_idp`, {
    method: 'POST',
    body: new URLSearchParams({ username }),
    redirect: 'manual',
  })
  const { pathname, search } = new URL(back.headers.get('location') ?? '')
  assert.equal((await visitor.get(pathname + search)).headers.location, '/?x=1')
}
