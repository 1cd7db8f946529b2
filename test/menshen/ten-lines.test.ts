// The first lines of code in README.md and docs/library.md are an application that signs users in.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const DOOR = new URL('../../src/index.ts', import.meta.url).href

for (const page of ['README.md', 'docs/library.md'])
  test(`the ten lines of ${page} are an application that knows its users, with no configuration`, async t => {
    const first = snippetsIn(page, readPage(page)).find(({ language }) => language === 'ts')
    const lines = first?.text.trim().split('\n').filter(Boolean) ?? []
    assert.ok(lines.length > 0 && lines.length <= 10)
    const port = await freePort()
    await run(t, lines.join('\n').replaceAll('3000', String(port)).replace("'menshen'", `'${DOOR}'`))
    const visitor = createClient(`http://localhost:${port}`)
    const isReady = () =>
      visitor.get('/_menshen/ready').then(
        ({ status }) => status === 200,
        () => false,
      )
    // A machine that is busy with other tests may take this long to load everything.
    await until(isReady, 60_000)
    const wanted = await visitor.get('/page?x=1', { headers: { accept: 'text/html' } })
    assert.equal(wanted.headers.location, '/login')
    const { text } = await visitor.follow(wanted)
    const address = /data-authorize="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const back = await fetch(`${address}&state=abc_idp`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'admin' }),
      redirect: 'manual',
    })
    const { pathname, search } = new URL(back.headers.get('location') ?? '')
    const landed = await visitor.get(pathname + search)
    assert.equal(landed.headers.location, '/page?x=1')
    assert.equal((await visitor.follow(landed)).text, 'Hello admin')
  })

async function run(t: TestContext, text: string): Promise<void> {
  const folder = tempFolder(t)
  const file = join(folder, 'application.mts')
  writeFileSync(file, text)
  const child = spawn(process.execPath, [file], { cwd: folder, stdio: 'inherit' })
  t.after(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
}
