// The end of a session in one process, as another process that uses the same store learns of it.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { createMenshen } from '../../src/index.ts'
import { startRedis } from '../kit/redis-server.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { tempFolder } from '../kit/temp.ts'

const BASE = 'http://localhost:3000'
const LIBRARY = new URL('../../src/index.ts', import.meta.url).href

/** Opens the store of its options, and tells when the session of a cookie ends. */
const OTHER_PROCESS = `
  import { createMenshen } from '${LIBRARY}'
  process.on('message', async ({ options, cookie }) => {
    const menshen = await createMenshen(options)
    const { signal } = await menshen.session({ headers: { cookie } })
    signal.addEventListener('abort', async () => {
      await menshen.close()
      process.send('aborted')
      process.disconnect()
    })
    process.send('watching')
  })`

async function openRedis(t: TestContext): Promise<string> {
  const redis = await startRedis()
  t.after(() => redis.stop())
  return `redis://127.0.0.1:${redis.port}`
}

suite('the end of a session in another process', () => {
  const stores = { SQLite: async (t: TestContext) => `sqlite:${join(tempFolder(t), 'menshen.db')}`, Redis: openRedis }
  for (const [name, open] of Object.entries(stores))
    test(`the signal of a session aborts in a process that shares ${name} with the one where the user signs out`, async t => {
      const provider = await openScriptedProvider(t)
      const options = { ...provider.options, store: await open(t), baseUrl: BASE }
      const menshen = await createMenshen(options)
      t.after(() => menshen.close())
      const landed = await menshen.fetch(new Request(`${BASE}/callback?code=${provider.codeFor({})}&state=abc_idp`))
      const cookie = landed?.headers.getSetCookie().find(one => one.startsWith('menshen_session=')) ?? assert.fail()
      const { child, nextMessage } = startOther(t)
      child.send({ options, cookie })
      assert.equal(await nextMessage(), 'watching')
      const headers = { cookie, origin: BASE }
      await menshen.fetch(new Request(`${BASE}/logout`, { method: 'POST', headers }))
      assert.equal(await nextMessage(), 'aborted')
    })
})

function startOther(t: TestContext) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', OTHER_PROCESS], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill()
    await exited
  })
  const nextMessage = async () => (await Promise.race([once(child, 'message'), exited]))[0]
  return { child, nextMessage }
}
