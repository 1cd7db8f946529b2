// The Dockerfile, the compose file and the manifests of Kubernetes: read strictly, and held against what they speak of.
// test/long/container.long.ts builds and runs the image as far as that goes without one.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { readSettings } from '../../src/config/read.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { OWN_PATHS } from '../../src/paths.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { makeAuthority } from '../gateway/certificates.ts'
import { prepareNginx } from '../gateway/nginx.ts'
import { freePort } from '../kit/free-port.ts'
import { requireProgram } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { composeFile } from './compose-file.ts'
import { environmentOf, lastOf, ROOT, readContext, readStages } from './dockerfile.ts'
import { type Manifest, manifest } from './manifests.ts'

/** Ten seconds for requests, two for the provider's logout, five for a refresh, and some for the store. */
const LONGEST_CLOSE_SECONDS = 20
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const { version } = JSON.parse(read('package.json'))

suite('the Dockerfile', () => {
  const stages = readStages()
  const [dependencies, build, last] = stages
  assert.ok(dependencies && build && last)

  test('the Dockerfile has three stages, on a Node that we run on, from no other registry', () => {
    assert.deepEqual(new Set(stages.map(({ base }) => base)), new Set(['node:26-slim']))
    assert.equal(stages.length, 3)
  })

  test('the Dockerfile runs as a number that is not root, Node itself, with a health check', () => {
    assert.match(lastOf(last, 'USER'), /^[1-9]\d*:[1-9]\d*$/)
    assert.deepEqual(JSON.parse(lastOf(last, 'ENTRYPOINT')), ['node', '/app/bin/menshen.js'])
    const [program, , script] = JSON.parse(lastOf(last, 'HEALTHCHECK').replace(/^CMD /, ''))
    assert.equal(program, 'node')
    assert.ok(script.includes(OWN_PATHS.health))
  })

  test('the Dockerfile takes over nothing of the development dependencies, and nothing but what .dockerignore lets through', () => {
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

  test('the Dockerfile sets what is a setting', () => {
    const { NODE_ENV, HOST } = readSettings({ ...environmentOf(last) })
    assert.deepEqual([NODE_ENV, HOST], ['production', '0.0.0.0'])
  })
})

suite('compose', () => {
  const { services, networks, secrets, volumes } = composeFile.parse(parse(read('examples/compose/compose.yaml')))
  const { menshen, nginx, redis, application } = services
  assert.ok(menshen && nginx && redis && application)

  test('with compose Menshen takes its settings', t => {
    checkSettings(menshen.environment ?? {}, tempFolder(t), /^\/run\/secrets\/(\w+)$/, menshen.secrets ?? [])
    assert.deepEqual(Object.keys(secrets), menshen.secrets)
    assert.ok(Number.parseInt(menshen.stop_grace_period ?? '', 10) > LONGEST_CLOSE_SECONDS)
  })

  test('with compose nobody gets to the application or to Redis but by Menshen, and it believes nginx alone', () => {
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

  test('with compose nginx takes its configuration', async t => {
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

suite('Kubernetes', () => {
  const files = readdirSync(join(ROOT, 'examples/kubernetes')).filter(name => name.endsWith('.yaml'))
  const all: Manifest[] = files.flatMap(name =>
    parseAllDocuments(read(`examples/kubernetes/${name}`), { version: '1.1' }).map(document => {
      assert.deepEqual(document.errors, [], name)
      return manifest.parse(document.toJS())
    }),
  )
  const ofKind = <Kind extends Manifest['kind']>(kind: Kind) =>
    all.filter((one): one is Extract<Manifest, { kind: Kind }> => one.kind === kind)
  const [deployment] = ofKind('Deployment')
  assert.ok(deployment)
  const { spec: pod } = deployment.spec.template
  const [container] = pod.containers
  assert.ok(container)

  test('in Kubernetes Menshen takes its settings, the secrets by files', t => {
    const secrets = new Map(ofKind('Secret').map(({ metadata, stringData }) => [metadata.name, stringData]))
    const given = (container.env ?? []).map(variable => {
      if ('value' in variable) return [variable.name, variable.value]
      const { name, key } = variable.valueFrom.secretKeyRef
      return [variable.name, secrets.get(name)?.[key] ?? assert.fail(`no ${key} in ${name}`)]
    })
    const [volume] = pod.volumes
    const [mount] = container.volumeMounts
    assert.equal(mount?.name, volume?.name)
    const keys = Object.keys(secrets.get(volume?.secret.secretName ?? '') ?? {})
    checkSettings(Object.fromEntries(given), tempFolder(t), new RegExp(`^${mount?.mountPath}/([\\w-]+)$`), keys)
    const settings = readSettings({ SECRET: secrets.get('menshen')?.secret })
    assert.equal(settings.SECRET?.length, 1)
    const { store = '', 'redis.conf': conf = '' } = secrets.get('menshen-redis') ?? {}
    assert.ok(conf.includes(`requirepass ${new URL(store).password}\n`))
    assert.ok(ofKind('Service').some(({ metadata }) => metadata.name === new URL(store).hostname))
  })

  test('in Kubernetes Redis takes its configuration, keeps data, and lets in the address of the Secret alone', async t => {
    const secret = ofKind('Secret').find(({ metadata }) => metadata.name === 'menshen-redis')
    const { store = '', 'redis.conf': conf = '' } = secret?.stringData ?? {}
    const [folder, port] = [tempFolder(t), String(await freePort())]
    writeFileSync(join(folder, 'redis.conf'), conf.replace('dir /data', `dir ${folder}`))
    const args = [join(folder, 'redis.conf'), '--port', port, '--bind', '127.0.0.1']
    const redis = spawn(requireProgram('redis-server'), args, { stdio: 'ignore' })
    const closed = once(redis, 'close')
    t.after(() => {
      redis.kill('SIGKILL')
      return closed
    })
    const address = new URL(store)
    const ask = (password: string, ...command: string[]) => {
      const env = { PATH: process.env.PATH, REDISCLI_AUTH: password }
      return spawnSync(requireProgram('redis-cli'), ['-p', port, ...command], { env, encoding: 'utf8' }).stdout
    }
    await until(() => ask(address.password, 'ping') === 'PONG\n')
    assert.match(ask('another', 'ping'), /NOAUTH|WRONGPASS/)
    assert.match(ask(address.password, 'config', 'get', 'maxmemory-policy'), /noeviction/)
    assert.match(ask(address.password, 'config', 'get', 'appendonly'), /yes/)
    Object.assign(address, { hostname: '127.0.0.1', port })
    const opened = await openStore(address.href, Date.now, () => {})
    t.after(() => opened.close())
    assert.equal(await opened.read('nothing'), undefined)
  })

  test('in Kubernetes Menshen is asked whether it lives and whether it serves, and has the time to end', () => {
    assert.equal(container.startupProbe?.httpGet?.path, OWN_PATHS.health)
    assert.equal(container.livenessProbe.httpGet?.path, OWN_PATHS.health)
    assert.equal(container.readinessProbe.httpGet?.path, OWN_PATHS.ready)
    const [, wait] = container.lifecycle?.preStop.exec.command ?? []
    assert.ok(pod.terminationGracePeriodSeconds > Number(wait) + LONGEST_CLOSE_SECONDS)
    const [last] = readStages().slice(-1)
    assert.ok(last)
    assert.equal(lastOf(last, 'USER'), `${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`)
    assert.equal(String(container.ports[0]?.containerPort), environmentOf(last).PORT)
    assert.equal(container.image, `menshen:${version}`)
  })

  test('in Kubernetes there are two replicas, one of them always there; every selector finds its pods, every policy its port', () => {
    assert.equal(deployment.spec.replicas, 2)
    const pods = [...ofKind('Deployment'), ...ofKind('StatefulSet')].map(({ spec }) => spec)
    const apps = new Map(pods.map(({ template }) => [template.metadata.labels.app, template.spec.containers[0]]))
    for (const { selector, template } of pods) assert.deepEqual(selector.matchLabels, template.metadata.labels)
    for (const { spec } of ofKind('PodDisruptionBudget')) {
      assert.ok(apps.has(spec.selector.matchLabels.app))
      assert.ok(spec.minAvailable < deployment.spec.replicas)
    }
    for (const { spec } of ofKind('Service'))
      for (const { targetPort } of spec.ports)
        assert.ok(apps.get(spec.selector.app)?.ports.some(({ name }) => name === targetPort))
    for (const { metadata, spec } of ofKind('NetworkPolicy')) {
      const own = apps.get(spec.podSelector.matchLabels.app)?.ports[0]?.containerPort
      for (const { ports } of spec.ingress)
        if (own) assert.deepEqual(ports, [{ protocol: 'TCP', port: own }], metadata.name)
    }
    assert.ok(ofKind('NetworkPolicy').some(({ spec }) => spec.podSelector.matchLabels.app === 'application'))
  })

  test('a key that Kubernetes does not know, or that stands elsewhere, is refused', () => {
    const [service] = ofKind('Service')
    assert.ok(service)
    assert.ok(manifest.safeParse(service).success)
    assert.ok(!manifest.safeParse({ ...service, replicas: 2 }).success)
    assert.ok(!manifest.safeParse({ ...service, kind: 'Servise' }).success)
  })
})

/** All are settings and taken together; what they name by a file is one of the secrets. */
function checkSettings(
  given: Readonly<Record<string, string>>,
  folder: string,
  file: RegExp,
  secrets: readonly string[],
): void {
  assert.deepEqual(
    Object.keys(given).filter(name => !Object.hasOwn(SETTINGS, name)),
    [],
  )
  mkdirSync(folder, { recursive: true })
  const inFolder = (path: string) => {
    const [, secret = ''] = file.exec(path) ?? assert.fail(`${path} is nowhere`)
    assert.ok(secrets.includes(secret), `${secret} is no secret`)
    writeFileSync(join(folder, secret), 'x'.repeat(48))
    return join(folder, secret)
  }
  const examples: Readonly<Record<string, string>> = {
    BASE_URL: 'https://app.example.com',
    AUTH_URL: 'https://idp.example.com',
  }
  const environment = Object.entries(given).map(([name, value]) => {
    if (name.endsWith('_FILE')) return [name, inFolder(value)]
    return [name, value.replace(/\$\{\w+[^}]*\}/, examples[name] ?? 'some-text')]
  })
  readSettings({ NODE_ENV: 'production', ...Object.fromEntries(environment) })
}
