// The first lines of code in README.md and docs/library.md are an application that signs users in.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runProgram } from '../kit/library.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'

for (const page of ['README.md', 'docs/library.md'])
  test(`the first code sample of ${page} is an application of at most ten lines that signs users in without configuration`, async t => {
    const first = snippetsIn(page, readPage(page)).find(({ language }) => language === 'ts')
    const lines = first?.text.trim().split('\n').filter(Boolean) ?? []
    assert.ok(lines.length > 0 && lines.length <= 10)
    const { visitor } = await runProgram(t, lines.join('\n'))
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
