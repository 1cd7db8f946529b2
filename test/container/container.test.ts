// The Dockerfile and the compose file: read strictly, and held against what they speak of. kubernetes.test.ts has the manifests.
// test/long/container.long.ts builds and runs the image as far as that goes without one.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { parse } from 'yaml'
import { readSettings } from '../../src/config/read.ts'
import { OWN_PATHS } from '../../src/paths.ts'
import { freePort } from '../kit/free-port.ts'
import { requireProgram } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority } from '../proxies/certificates.ts'
import { prepareNginx } from '../proxies/nginx.ts'
import { checkSettings, LONGEST_CLOSE_SECONDS } from './checked-settings.ts'
import { composeFile } from './compose-file.ts'
import { environmentOf, lastOf, ROOT, readContext, readStages } from './dockerfile.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

suite('the Dockerfile', () => {
  const stages = readStages()
  const [dependencies, build, last] = stages
  assert.ok(dependencies && build && last)

  test('the Dockerfile has three stages, all based on node:26-slim', () => {
    assert.deepEqual(new Set(stages.map(({ base }) => base)), new Set(['node:26-slim']))
    assert.equal(stages.length, 3)
  })

  test('the Dockerfile runs Node directly as a numeric user that is not root, with a health check', () => {
    assert.match(lastOf(last, 'USER'), /^[1-9]\d*:[1-9]\d*$/)
    assert.deepEqual(JSON.parse(lastOf(last, 'ENTRYPOINT')), ['node', '/app/bin/menshen.js'])
    const [program, , script] = JSON.parse(lastOf(last, 'HEALTHCHECK').replace(/^CMD /, ''))
    assert.equal(program, 'node')
    assert.ok(script.includes(OWN_PATHS.health))
  })

  test('the Dockerfile copies no development dependencies, and only files that .dockerignore allows', () => {
    assert.match(lastOf(dependencies, 'RUN'), /^npm ci .*--omit=dev/)
    const copied = last.instructions.filter(({ name }) => name === 'COPY').map(({ text }) => text)
    const fromBuild = copied.filter(text => text.startsWith('--from=build '))
    assert.deepEqual(fromBuild, ['--from=build /app/dist dist'])
    const sent = readContext()
    assert.deepEqual(
      sent.filter(name => !existsSync(join(ROOT, name))),
      [],
    )
    const named = stages
      .flatMap(({ instructions }) => instructions)
      .filter(({ name, text }) => name === 'COPY' && !text.startsWith('--from=') && text !== '. .')
      .flatMap(({ text }) => text.split(' ').slice(0, -1))
    for (const name of named) assert.ok(sent.includes(name), name)
    for (const name of ['.env', '.git', 'data', 'node_modules', 'test']) assert.ok(!sent.includes(name))
  })

  test('the build context of the Dockerfile has every file that the build script imports or names', () => {
    const sent = readContext()
    const script = read('scripts/build.ts')
    const imported = [...script.matchAll(/from '\.\/([\w-]+\.ts)'/g)].map(([, name]) => `scripts/${name}`)
    const named = [...script.matchAll(/'(tsconfig[\w.]+\.json)'/g)].map(([, name = '']) => name)
    // The formatter looks for its settings.
    for (const name of [...imported, ...named, 'biome.json']) assert.ok(sent.includes(name), name)
    assert.ok(imported.length > 0 && named.length > 0)
  })

  test('the Dockerfile sets NODE_ENV to production and HOST to 0.0.0.0, and its settings are valid', () => {
    const { NODE_ENV, HOST } = readSettings({ ...environmentOf(last) })
    assert.deepEqual([NODE_ENV, HOST], ['production', '0.0.0.0'])
  })
})

suite('compose', () => {
  const { services, networks, secrets, volumes } = composeFile.parse(parse(read('examples/compose/compose.yaml')))
  const { menshen, nginx, redis, application } = services
  assert.ok(menshen && nginx && redis && application)

  test('Menshen accepts the settings in the Compose file, which leaves enough time for a shutdown', t => {
    checkSettings(menshen.environment ?? {}, tempFolder(t), /^\/run\/secrets\/(\w+)$/, menshen.secrets ?? [])
    assert.deepEqual(Object.keys(secrets), menshen.secrets)
    assert.ok(Number.parseInt(menshen.stop_grace_period ?? '', 10) > LONGEST_CLOSE_SECONDS)
  })

  test('the Compose file exposes neither the application nor Redis, and Menshen trusts only nginx as a proxy', () => {
    for (const service of [redis, application]) {
      assert.deepEqual(Object.keys(service.networks), ['back'])
      assert.equal(service.ports, undefined)
    }
    assert.equal(networks.back?.internal, true)
    assert.equal(menshen.ports, undefined)
    assert.equal(menshen.environment?.TRUSTED_PROXIES, nginx.networks.front?.ipv4_address)
    const used = Object.values(services).flatMap(service => service.volumes ?? [])
    assert.deepEqual(
      used.filter(volume => !volume.startsWith('./')).map(volume => volume.split(':')[0]),
      Object.keys(volumes),
    )
    const asked = /redis:\/\/:\$\{(\w+)/.exec(menshen.environment?.STORE ?? '')?.[1]
    assert.ok(redis.command?.includes(`\${${asked}}`))
  })

  test('nginx accepts the configuration of the Compose example', async t => {
    const folder = tempFolder(t)
    const { certFile, keyFile } = makeAuthority(folder)
    const own = read('examples/compose/nginx.conf')
      .replace('/etc/nginx/tls/cert.pem', certFile)
      .replace('/etc/nginx/tls/key.pem', keyFile)
      .replace('listen 80;', `listen 127.0.0.1:${await freePort()};`)
      .replace('listen 443 ssl;', `listen 127.0.0.1:${await freePort()} ssl;`)
    const file = join(folder, 'default.conf')
    writeFileSync(file, own)
    const args = prepareNginx(folder, file)
    const { status, stderr } = spawnSync(requireProgram('nginx'), ['-t', '-q', ...args], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  })
})
