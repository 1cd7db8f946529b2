// The Python of docs/library.md, run against a gateway with PyJWT.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { requirePython } from '../kit/requirements.ts'
import { setUp } from '../kit/set-up.ts'
import { readSnippets } from '../kit/snippets.ts'

const DRIVER = `
import json, sys
for assertion in sys.argv[1:]:
    try:
        print(json.dumps(user_of({"X-Menshen-Assertion": assertion} if assertion else {})))
    except jwt.PyJWTError as error:
        print(json.dumps(type(error).__name__))
`

test('the Python example accepts the gateway’s assertion and rejects a missing, forged or repeated one or a wrong audience', async t => {
  const scene = await setUp(t)
  // PyJWT looks at the machine's clock.
  scene.passSeconds(Math.floor((Date.now() - scene.now()) / 1000))
  await (await scene.user('zhangsan')).get('/')
  const assertion = String(scene.upstream.last().headers['x-menshen-assertion'])
  const [header, , signature] = assertion.split('.')
  const forged = Buffer.from(JSON.stringify({ username: 'admin' })).toString('base64url')

  const [claims, ...refusals] = await runPython(scene.baseUrl, scene.upstream.url, [
    assertion,
    '',
    'forged',
    `${header}.${forged}.${signature}`,
    `${assertion}, ${assertion}`,
  ])
  assert.partialDeepStrictEqual(claims, { username: 'zhangsan', nickname: '张三', role: 'common', groups: [] })
  assert.deepEqual(refusals, ['DecodeError', 'DecodeError', 'InvalidSignatureError', 'DecodeError'])
  assert.deepEqual(await runPython(scene.baseUrl, 'http://127.0.0.1:1', [assertion]), ['InvalidAudienceError'])
})

async function runPython(issuer: string, audience: string, assertions: string[]): Promise<unknown[]> {
  const snippet = readSnippets().find(({ page, language }) => page === 'docs/library.md' && language === 'python')
  assert.ok(snippet)
  const script = snippet.text
    .replace('https://app.example.com', issuer)
    .replace('http://127.0.0.1:8080', audience)
    .concat(DRIVER)
  // Not waited for synchronously: it asks the gateway, which is in this process.
  const python = spawn(requirePython('jwt', 'cryptography'), ['-c', script, ...assertions], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = (await text(python.stdout)).trim().split('\n')
  return lines.map(line => JSON.parse(line))
}
