// A configuration in YAML is read again while Menshen runs, with the secrets that it names. What is broken changes nothing.

import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { type Instance, type Line, setUpInstances } from '../kit/instance.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const OUTCOMES = ['config_reloaded', 'config_refused']

function outcomes({ lines }: Instance): Line[] {
  return lines.filter(({ event }) => OUTCOMES.includes(event))
}

test('a YAML configuration is reloaded completely or not at all, and an error names the file, line and column', async t => {
  const app = await startUpstream(t)
  const scene = await setUpInstances(t)
  const write = (name: string, text: string) => {
    writeFileSync(join(scene.folder, 'being-written'), text)
    renameSync(join(scene.folder, 'being-written'), join(scene.folder, name))
  }
  const next = async (instance: Instance, act: () => void) => {
    const before = outcomes(instance).length
    act()
    await until(() => outcomes(instance).length > before)
    return outcomes(instance).at(before) ?? assert.fail()
  }
  const config = (path: string) => `rules:
  - { path: ${path}, public: true }
upstreams:
  /: { url: '${app.url}', headers: { X-Key: { file: key }, X-Variable: { env: KEY_OF_APP } } }
`
  write('menshen.config.yaml', config('/one'))
  write('key', 'first\n')
  write('.env', 'KEY_OF_APP={username}\n')
  const instance = await scene.start(scene.provider.settings)
  const get = (path: string) => fetch(instance.url + path, { redirect: 'manual' })
  const sent = async (path: string) => {
    await get(path)
    const { headers } = app.last()
    return [headers['x-key'], headers['x-variable']]
  }
  // A secret is not a template.
  assert.deepEqual(await sent('/one'), ['first', '{username}'])

  const refused = await next(instance, () => write('menshen.config.yaml', `${config('/two')}hots: {}\n`))
  assert.equal(refused.event, 'config_refused')
  assert.match(
    String(refused.detail),
    /menshen\.config\.yaml:5:1: the configuration: there is no "hots"; did you mean hosts\?$/,
  )
  assert.equal((await get('/one')).status, 200)
  assert.notEqual((await get('/two')).status, 200)

  const empty = await next(instance, () => write('menshen.config.yaml', ''))
  assert.equal(empty.event, 'config_refused')
  assert.match(String(empty.detail), /menshen\.config\.yaml is empty; expected a configuration, or \{\}/)

  assert.equal((await next(instance, () => write('menshen.config.yaml', config('/two')))).event, 'config_reloaded')
  assert.equal((await get('/two')).status, 200)

  assert.equal((await next(instance, () => write('key', 'second\n'))).event, 'config_reloaded')
  assert.equal((await sent('/two'))[0], 'second')
  assert.equal((await next(instance, () => write('.env', 'KEY_OF_APP=other\n'))).event, 'config_reloaded')
  assert.equal((await sent('/two'))[1], 'other')

  const missing = await next(instance, () => write('.env', '\n'))
  assert.equal(missing.event, 'config_refused')
  assert.match(String(missing.detail), /the variable KEY_OF_APP is missing or empty/)
  assert.equal((await sent('/two'))[1], 'other')

  const twice = await next(instance, () => write('menshen.config.json', '{}'))
  assert.equal(twice.event, 'config_refused')
})
