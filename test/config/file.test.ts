// The configuration is found where people put it, in any of its spellings; what cannot be used stops the start with its
// file and its line, and the start says what it found.

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { loadConfiguration } from '../../src/config/load.ts'
import type { MenshenError } from '../../src/errors.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { freePort } from '../kit/free-port.ts'
import { type Environment, runMenshen, startInstance } from '../kit/instance.ts'
import { tempFolder } from '../kit/temp.ts'

const commands = createCommandRunner()
const RULES = "{ rules: [{ path: '/internal', roles: ['developer'] }] }"
const MODULE = `import { defineConfig } from 'menshen'\nexport default defineConfig(${RULES})\n`
const TYPED = `import { type Config, defineConfig } from 'menshen'\nconst config: Config = ${RULES}\nexport default defineConfig(config)\n`
const ASK = ['rules', 'check', '/internal', '--role', 'common']
const REFUSED = /^GET \/internal as common: refused, by the rule/
const PROVIDER = {
  AUTH_URL: 'http://127.0.0.1:9',
  CLIENT_ID: 'menshen-test',
  CLIENT_SECRET: 'secret',
  STORE: 'memory:',
}

suite('a configuration', { concurrency: 2 }, () => {
  for (const ending of ['ts', 'mts', 'js', 'mjs'])
    for (const type of [undefined, 'commonjs', 'module'])
      test(`a configuration in menshen.config.${ending} is found where package.json says ${type ?? 'nothing'}`, async t => {
        const cwd = folderWith(t, { [`menshen.config.${ending}`]: ending.endsWith('ts') ? TYPED : MODULE })
        if (type) writeFileSync(join(cwd, 'package.json'), JSON.stringify({ type }))
        const { rules } = (await loadConfiguration({ environment: {}, folder: cwd })).config
        assert.deepEqual(rules, [{ path: '/internal', roles: ['developer'] }])
      })

  test('a configuration can be a CommonJS module, or import other files in a CommonJS folder', async t => {
    const old = `const { defineConfig } = require('menshen')\nmodule.exports = defineConfig(${RULES})\n`
    const manifest = { 'package.json': '{"type":"commonjs"}' }
    assert.match(await ask(folderWith(t, { ...manifest, 'menshen.config.js': old })), REFUSED)
    const imports = "import { rules } from './rules.ts'\nexport default { rules }\n"
    const rules = "export const rules = [{ path: '/internal', roles: ['developer'] }]\n"
    assert.match(await ask(folderWith(t, { ...manifest, 'menshen.config.ts': imports, 'rules.ts': rules })), REFUSED)
  })

  test('menshen check refuses a configuration in an unsupported format, unless there is a supported one as well', async t => {
    for (const ending of ['jsonc', 'json5', 'toml', 'cjs', 'cts']) {
      const cwd = folderWith(t, { [`menshen.config.${ending}`]: '{ "rules": [] }' })
      const { code, output } = await commands.run(PROVIDER, { cwd, args: ['check'] })
      assert.equal(code, 1, output)
      assert.ok(output.includes(`menshen.config.${ending} is not read; expected menshen.config.ts`), output)
    }
    const both = folderWith(t, { 'menshen.config.toml': '', 'menshen.config.ts': MODULE })
    assert.match(await ask(both), REFUSED)
  })

  test('CONFIG in the environment or in .env names the configuration to load', async t => {
    const elsewhere = folderWith(t, { 'other.ts': MODULE })
    const open = 'export default { rules: [] }\n'
    const cwd = folderWith(t, {
      'menshen.config.ts': open,
      'menshen.config.js': open,
      '.env': 'CONFIG=below/rules.mjs',
    })
    mkdirSync(join(cwd, 'below'))
    writeFileSync(join(cwd, 'below', 'rules.mjs'), MODULE)
    assert.match(await ask(cwd), REFUSED)
    assert.match(await ask(cwd, { CONFIG: join(elsewhere, 'other.ts') }), REFUSED)
    assert.match(await ask(cwd, { CONFIG: 'menshen.config.js' }), /: admitted/)
    // Rules are checked without the other settings.
    assert.match(await ask(cwd, { CLIENT_SECRET_FILE: '/nowhere' }), REFUSED)
  })

  test('the start fails if CONFIG names a file that does not exist or is not a file', async t => {
    const cwd = folderWith(t, { 'menshen.config.ts': MODULE })
    for (const CONFIG of ['nowhere.ts', '.', '/nowhere/at/all.ts']) {
      const { code, output } = await commands.run({ ...PROVIDER, CONFIG }, { cwd })
      assert.equal(code, 1)
      assert.match(output, /^CONFIG is ".*", which (does not exist|is not a file); expected .*\.$/)
    }
  })

  test('two configuration files in one folder stop the start with an error that names both', async t => {
    const cwd = folderWith(t, { 'menshen.config.ts': MODULE, 'menshen.config.mjs': MODULE })
    const { code, output } = await commands.run(PROVIDER, { cwd })
    assert.equal(code, 1)
    assert.match(
      output,
      /^.* has several configuration files: menshen\.config\.ts, menshen\.config\.mjs; keep one, or set CONFIG .*\.$/,
    )
  })

  test('the error for a mistake in a configuration names the file and the line', async t => {
    const mistakes: [text: string, line: number][] = [
      ['export default {\n  rules: [\n}\n', 3],
      ['const rules = []\nexport default { rules: rulez }\n', 2],
      ["import { nothing } from 'menshen'\nexport default {}\n", 1],
    ]
    for (const ending of ['ts', 'js', 'mjs'])
      for (const [text, line] of mistakes) {
        const cwd = folderWith(t, { [`menshen.config.${ending}`]: text, 'package.json': '{"type":"commonjs"}' })
        const file = join(cwd, `menshen.config.${ending}`)
        const output = await loadConfiguration({ environment: {}, config: file }).then(
          () => assert.fail(text),
          (error: MenshenError) => error.message,
        )
        assert.ok(output.startsWith(`${file} cannot be loaded: `), output)
        assert.ok(output.endsWith(`(${file}:${line}).`), output)
        assert.doesNotMatch(output, /\n|file:|node:| at /)
      }
    const cwd = folderWith(t, { 'menshen.config.mjs': 'export default [\n' })
    const { code, output } = await runMenshen(PROVIDER, { cwd })
    assert.equal(code, 1)
    assert.match(output, /^\/.*\/menshen\.config\.mjs cannot be loaded: .* \(\/.*\/menshen\.config\.mjs:\d\)\.$/)
  })

  test('the error for a mistake in a configuration does not quote values, which could be secrets', async t => {
    const secret = 'kept-for-ourselves'
    const json = `{ "provider": { "clientSecret": ${secret} } }`
    const folders = [
      { 'menshen.config.ts': "import it from './it.json' with { type: 'json' }\nexport default it\n", 'it.json': json },
      { 'menshen.config.ts': `export default { provider: { clientSecret: '${secret}' clientId: 'x' } }\n` },
      { 'menshen.config.ts': `export default { provider: { clientSecret: ['${secret}'] } }\n` },
    ]
    for (const files of folders)
      await assert.rejects(
        loadConfiguration({ environment: {}, folder: folderWith(t, files) }),
        (error: MenshenError) => {
          assert.ok(!error.message.includes('kept-for'), error.message)
          return error.code === 'bad_settings'
        },
      )
  })

  test('the start logs the configuration file, the number of rules and the upstreams', async t => {
    const config =
      "export default { rules: [{ path: '/a', public: true }], upstreams: { '/api': 'http://127.0.0.1:9' } }\n"
    const cwd = folderWith(t, { 'menshen.config.mts': config })
    for (const WORKERS of ['1', '2']) {
      const env = { ...PROVIDER, STORE: 'sqlite:./data/menshen.db', UPSTREAM: 'http://127.0.0.1:8', WORKERS }
      const { config, rules, upstreams } = await startedLine(t, env, cwd)
      assert.deepEqual([config, rules], [join(cwd, 'menshen.config.mts'), 1])
      assert.deepEqual(upstreams, { '/': 'http://127.0.0.1:8', '/api': 'http://127.0.0.1:9' })
    }
    const { config: none, rules, upstreams } = await startedLine(t, PROVIDER, tempFolder(t))
    assert.match(String(none), /^none \(no menshen\.config\.\{ts,mts,js,mjs,yaml,yml,json\} in \//)
    assert.deepEqual([rules, upstreams], [0, {}])
  })
})

function folderWith(t: TestContext, files: Record<string, string>): string {
  const folder = tempFolder(t)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

async function ask(cwd: string, env: Environment = {}): Promise<string> {
  const { code, output } = await commands.run(env, { cwd, args: ASK })
  assert.equal(code, 0, output)
  return output
}

async function startedLine(t: TestContext, env: Environment, cwd: string): Promise<Record<string, unknown>> {
  const { output, said, stop } = await startInstance({ PORT: String(await freePort()), ...env }, { cwd })
  t.after(stop)
  // One worker may serve before all is started; a signal before that ends the first process at once.
  const started = await said(({ event }) => event === 'started')
  await stop()
  const odd = output.filter(line => !line.startsWith('{'))
  assert.deepEqual(odd, [])
  return started
}
