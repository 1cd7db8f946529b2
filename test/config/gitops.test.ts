// examples/gitops: its CI accepts it as it is, and refuses what it is there to refuse.

import assert from 'node:assert/strict'
import { type ExecFileOptions, execFile } from 'node:child_process'
import { chmodSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { tempFolder } from '../kit/temp.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A copy of the example, and what its CI says about it. */
function openExample(t: TestContext) {
  const folder = tempFolder(t)
  cpSync(join(ROOT, 'examples/gitops'), folder, { recursive: true })
  const tools = tempFolder(t)
  // In place of the package that npm ci would install.
  writeFileSync(join(tools, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${ROOT}/bin/menshen.js' "$@"\n`)
  chmodSync(join(tools, 'npx'), 0o755)
  const { jobs } = parse(readFileSync(join(folder, 'workflow.yaml'), 'utf8'))
  const steps: { run?: string }[] = jobs.check.steps
  const lines = steps.flatMap(({ run }) => (run?.startsWith('npx ') ? [run] : []))
  return {
    edit(name: string, from: string, to: string) {
      const text = readFileSync(join(folder, name), 'utf8')
      assert.ok(text.includes(from))
      writeFileSync(join(folder, name), text.replace(from, to))
    },
    run(env: Record<string, string> = {}) {
      const PATH = `${tools}:${process.env.PATH}`
      const options = { cwd: folder, env: { ...jobs.check.env, PATH, ...env } }
      return Promise.all(lines.map(line => runLine(line, options)))
    },
  }
}

function runLine(line: string, options: ExecFileOptions) {
  return new Promise<{ line: string; status: number; output: string }>(resolve => {
    const child = execFile('sh', ['-c', line], options, (_, stdout, stderr) =>
      resolve({ line, status: child.exitCode ?? -1, output: `${stdout}${stderr}` }),
    )
  })
}

test('the CI of the GitOps example passes with placeholder secrets: menshen check and menshen rules test', async t => {
  const results = await openExample(t).run()
  assert.deepEqual(
    results.map(({ line, status }) => [line, status]),
    [
      ['npx menshen check', 0],
      ['npx menshen rules test rules.test.json', 0],
    ],
    results.map(({ output }) => output).join('\n'),
  )
})

test('the CI of the GitOps example names the line of a mistake and a missing secret, and fails if a rule opens too much', async t => {
  const broken = openExample(t)
  broken.edit('menshen.config.yaml', 'path: /finance,', 'pth: /finance,')
  const [check] = await broken.run()
  assert.equal(check?.status, 1)
  assert.match(check?.output ?? '', /menshen\.config\.yaml:17:7: rules\.2: there is no "pth"; did you mean path\?/)

  const [missing, rules] = await openExample(t).run({ FINANCE_API_KEY: '' })
  assert.equal(missing?.status, 1)
  assert.match(missing?.output ?? '', /the variable FINANCE_API_KEY is missing or empty/)
  assert.equal(rules?.status, 0, 'the rules need no secret')

  const open = openExample(t)
  open.edit('menshen.config.yaml', '{ path: /finance, roles: [finance] }', "{ path: /finance, roles: ['*'] }")
  assert.deepEqual(
    (await open.run()).map(({ status }) => status),
    [0, 1],
  )
})
