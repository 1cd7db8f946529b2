// examples/kubernetes: built by kubectl, held against the API of Kubernetes and against what Menshen says of itself.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import type { IHTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1'
import type { IServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'
import type { IDeployment, IStatefulSet } from 'kubernetes-models/apps/v1'
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import type { INetworkPolicy, INetworkPolicyPeer } from 'kubernetes-models/networking.k8s.io/v1'
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1'
import type { IConfigMap, ISecret, IService } from 'kubernetes-models/v1'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { loadConfiguration } from '../../src/config/load.ts'
import { Networks } from '../../src/config/networks.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { OWN_PATHS } from '../../src/paths.ts'
import { openStore } from '../../src/stores/open.ts'
import { freePort } from '../kit/free-port.ts'
import { requireProgram, requirePrograms } from '../kit/requirements.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { checkSettings, LONGEST_CLOSE_SECONDS } from './checked-settings.ts'
import { environmentOf, lastOf, ROOT, readStages } from './dockerfile.ts'
import { type Manifest, mistakesIn } from './manifests.ts'

await requirePrograms('kubectl')

const FOLDER = join(ROOT, 'examples/kubernetes')
const PAGE = 'examples/kubernetes/README.md'
const ROLLING_TEST = 'test/faults/rolling-restart.test.ts'
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const { version } = JSON.parse(read('package.json'))

interface Overlay {
  readonly resources: readonly string[]
  readonly patches: readonly { readonly target: object; readonly patch: string }[]
}

/** What `kubectl apply` would send. */
function build(folder: string): Manifest[] {
  const { stdout, stderr, status } = spawnSync(requireProgram('kubectl'), ['kustomize', folder], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return parseStrictly(stdout)
}

function parseStrictly(text: string): Manifest[] {
  return parseAllDocuments(text).map(document => {
    assert.deepEqual([...document.errors, ...document.warnings], [])
    return document.toJS()
  })
}

/** With the names that Kustomize 2.0, the one in the kubectl of Debian 12, has for two fields of an overlay. */
function buildOverlay(t: TestContext, name: string): Manifest[] {
  const copy = join(tempFolder(t), 'kubernetes')
  cpSync(FOLDER, copy, { recursive: true })
  const file = join(copy, name, 'kustomization.yaml')
  const { resources, patches, ...rest }: Overlay = parse(readFileSync(file, 'utf8'))
  const patchesJson6902 = patches.map(({ target, patch }, n) => {
    writeFileSync(join(copy, name, `patch-${n}.yaml`), patch)
    return { target, path: `patch-${n}.yaml` }
  })
  writeFileSync(file, stringify({ ...rest, bases: resources, patchesJson6902 }))
  return build(join(copy, name))
}

const base = build(join(FOLDER, 'base'))

function ofKind<Kind extends { kind: string }>(kind: Kind['kind'], all: readonly unknown[] = base): Kind[] {
  return (all as Kind[]).filter(one => one.kind === kind)
}

/** The only one of its kind, or the one of this name. */
function one<Kind extends { kind: string }>(kind: Kind['kind'], name = 'menshen', all = base): Kind & Manifest {
  const found = all.find(manifest => manifest.kind === kind && withoutHash(manifest.metadata.name) === name)
  return (found ?? assert.fail(`there is no ${kind} ${name}`)) as Kind & Manifest
}

function withoutHash(name: string): string {
  return name.replace(/^(menshen-(?:config|settings))-\w{10}$/, '$1')
}

const deployment = one<IDeployment>('Deployment')
const redis = one<IStatefulSet>('StatefulSet', 'menshen-redis')
const pod = deployment.spec?.template.spec ?? assert.fail('the Deployment has no pod')
const container = pod.containers[0] ?? assert.fail('the pod has no container')
const settings = one<IConfigMap>('ConfigMap', 'menshen-settings').data ?? {}

/** Of container and pod, by what is in both Deployment and StatefulSet. */
const workloads = [deployment, redis].map(({ metadata, spec }) => ({
  name: metadata.name,
  labels: spec?.template.metadata?.labels ?? {},
  selector: spec?.selector.matchLabels,
  pod: spec?.template.spec,
  container: spec?.template.spec?.containers[0],
}))

test('every Kubernetes manifest of the base and of production matches the API schema', async t => {
  assert.deepEqual(await mistakesIn([...base, ...buildOverlay(t, 'production')]), [])
})

test('the Gateway API routes in the other examples match the API schema', async () => {
  const texts = ['envoy-gateway', 'nginx-gateway-fabric'].map(name => read(`examples/${name}/menshen.yaml`))
  const routes = ofKind<IHTTPRoute>('HTTPRoute', texts.flatMap(parseStrictly))
  assert.ok(routes.length >= 3)
  assert.deepEqual(await mistakesIn(routes as Manifest[]), [])
})

test('the check of the manifests finds an unknown key, a wrong value and an unknown kind', async () => {
  const [route, monitor] = [one<IHTTPRoute>('HTTPRoute'), one<IServiceMonitor>('ServiceMonitor')]
  const wrong = [
    { ...deployment, spec: { ...deployment.spec, replcas: 2 } },
    { ...monitor, spec: { ...monitor.spec, endpoints: [{ pth: '/' }] } },
    { ...route, spec: { rules: [{ matches: [{ path: { type: 'Prefix', value: '/' } }] }] } },
  ]
  const mistakes = (await mistakesIn(wrong)).join('\n')
  for (const word of ['replcas', 'pth', 'allowed values']) assert.ok(mistakes.includes(word), word)
  assert.deepEqual(await mistakesIn([{ ...deployment, apiVersion: 'apps/v2' }]), ['there is no Deployment in apps/v2'])
})

test('the kustomization lists every file of the base, and no manifest has a duplicate key', () => {
  const files = readdirSync(join(FOLDER, 'base'))
  const { resources, configMapGenerator } = parse(read('examples/kubernetes/base/kustomization.yaml'))
  const used = [...resources, ...configMapGenerator.flatMap(({ files = [] }) => files), 'kustomization.yaml']
  assert.deepEqual(files.sort(), used.sort())
  for (const name of files.filter(name => name.endsWith('.yaml')))
    parseStrictly(read(`examples/kubernetes/base/${name}`))
})

test('the production overlay changes host name, provider and image, and keeps the other settings and manifests of the base', t => {
  const production = buildOverlay(t, 'production')
  const all = JSON.stringify(production)
  const { data = {} } = one<IConfigMap>('ConfigMap', 'menshen-settings', production)
  checkSettings(data, tempFolder(t), /([\w-]+)$/, ['client-secret', 'secret'])
  assert.equal(data.BASE_URL, 'https://portal.example.org')
  assert.ok(all.includes('"hostname":"portal.example.org"'))
  for (const text of ['app.example.com', 'idp.example.com', 'my-application']) assert.ok(!all.includes(text), text)
  assert.ok(production.every(({ metadata }) => metadata.namespace === 'menshen'))
  assert.deepEqual(Object.keys(data), Object.keys(settings))
  assert.equal(production.length, base.length)
  const [changed] = one<IDeployment>('Deployment', 'menshen', production).spec?.template.spec?.containers ?? []
  assert.equal(changed?.image, `registry.example.com/menshen:${version}`)
  // The name has changed with the content, and the Deployment follows.
  assert.notEqual(settingsNameOf(production), settingsNameOf(base))
  assert.equal(changed?.envFrom?.[0]?.configMapRef?.name, settingsNameOf(production))
})

function settingsNameOf(all: Manifest[]): string {
  return one<IConfigMap>('ConfigMap', 'menshen-settings', all).metadata.name
}

test('in Kubernetes, Menshen accepts its settings and configuration, and secrets come only from the Secret', async t => {
  const folder = tempFolder(t)
  const secretItems = pod.volumes?.find(({ name }) => name === 'secrets')?.secret?.items ?? []
  const secretMount = container.volumeMounts?.find(({ name }) => name === 'secrets')
  const given = (container.env ?? []).map(({ name, value, valueFrom }) => {
    assert.equal(value, undefined, `${name} belongs into the ConfigMap`)
    assert.equal(valueFrom?.secretKeyRef?.name, 'menshen')
    return [name, 'redis://:password@menshen-redis:6379']
  })
  const environment: Record<string, string> = { ...settings, ...Object.fromEntries(given) }
  checkSettings(
    environment,
    join(folder, 'secrets'),
    new RegExp(`^${secretMount?.mountPath}/([\\w-]+)$`),
    secretItems.map(({ path }) => path),
  )
  const secretSettings = Object.entries(SETTINGS).filter(
    ([name, row]) => 'secret' in row && row.secret && !name.endsWith('_FILE'),
  )
  assert.ok(secretSettings.length > 1)
  for (const [name] of secretSettings) assert.ok(!(name in settings), `${name} stands in a ConfigMap`)

  // As a volume has it: a link to a file below a link.
  const configMount = container.volumeMounts?.find(({ name }) => name === 'config')
  const { data = {} } = one<IConfigMap>('ConfigMap', 'menshen-config')
  const [[name, text] = assert.fail('the ConfigMap is empty')] = Object.entries(data)
  assert.equal(settings.CONFIG, `${configMount?.mountPath}/${name}`)
  mkdirSync(join(folder, '..2026'))
  writeFileSync(join(folder, '..2026', name), text)
  symlinkSync('..2026', join(folder, '..data'))
  symlinkSync(join('..data', name), join(folder, name))
  const { config } = await loadConfiguration({ environment: { CONFIG: join(folder, name) } })
  assert.ok(config.rules?.length)
})

test('the commands in the Kubernetes README create a Secret that Menshen and Redis accept', async t => {
  const folder = tempFolder(t)
  const snippet = snippetsIn(PAGE, readPage(PAGE)).find(({ text }) => text.includes('secret generic'))
  const dryRun = `kubectl() { command kubectl "$@" --dry-run=client -o yaml; }\n`
  const script = join(folder, 'script')
  writeFileSync(script, `set -e\n${dryRun}${snippet?.text}`)
  const made = spawnSync('bash', [script], { cwd: folder, input: 'from-the-provider\n', encoding: 'utf8' })
  assert.equal(made.status, 0, made.stderr)
  const [secret] = parseStrictly(made.stdout) as (ISecret & Manifest)[]
  assert.ok(secret)
  // kubectl writes a time that is null.
  const { name } = secret.metadata
  assert.deepEqual(await mistakesIn([{ ...secret, metadata: { name } }]), [])
  const data = new Map(Object.entries(secret.data ?? {}).map(([key, value]) => [key, atob(value)]))
  assert.deepEqual([...data.keys()].sort(), [...usedKeys(name)].sort())
  assert.equal(data.get('client-secret')?.trim(), 'from-the-provider')
  checkSettings({ SECRET: data.get('secret') ?? '', STORE: data.get('store') ?? '' }, folder, /^$/, [])
  await checkRedis(t, data.get('redis.conf') ?? '', new URL(data.get('store') ?? ''))
})

/** What variables and volumes name of a Secret. */
function usedKeys(secret: string): Set<string> {
  const variables = workloads.flatMap(({ container }) => container?.env ?? [])
  const volumes = workloads.flatMap(({ pod }) => pod?.volumes ?? [])
  return new Set([
    ...variables.flatMap(({ valueFrom }) =>
      valueFrom?.secretKeyRef?.name === secret ? valueFrom.secretKeyRef.key : [],
    ),
    ...volumes
      .flatMap(volume => (volume.secret?.secretName === secret ? (volume.secret.items ?? []) : []))
      .map(({ key }) => key),
  ])
}

/** Redis takes its configuration and arguments, keeps data, and lets in the address of the Secret alone. */
async function checkRedis(t: TestContext, conf: string, address: URL): Promise<void> {
  assert.ok(one<IService>('Service', address.hostname))
  const [folder, port] = [tempFolder(t), String(await freePort())]
  writeFileSync(join(folder, 'redis.conf'), conf)
  const [{ command = [], args = [] } = assert.fail('there is no container')] =
    redis.spec?.template.spec?.containers ?? []
  const own = [...command.slice(1), ...args].map(word => word.replace(/^\/run\/secrets\/redis|^\/data$/, folder))
  const server = spawn(requireProgram('redis-server'), [...own, '--port', port, '--bind', '127.0.0.1'], {
    stdio: 'ignore',
  })
  const closed = once(server, 'close')
  t.after(() => {
    server.kill('SIGKILL')
    return closed
  })
  const ask = (password: string, ...words: string[]) => {
    const env = { PATH: process.env.PATH, REDISCLI_AUTH: password }
    return spawnSync(requireProgram('redis-cli'), ['-p', port, ...words], { env, encoding: 'utf8' }).stdout
  }
  await until(() => ask(address.password, 'ping') === 'PONG\n')
  assert.match(ask('another', 'ping'), /NOAUTH|WRONGPASS/)
  assert.match(ask(address.password, 'config', 'get', 'maxmemory-policy'), /noeviction/)
  assert.match(ask(address.password, 'config', 'get', 'appendonly'), /yes/)
  Object.assign(address, { hostname: '127.0.0.1', port })
  const opened = await openStore(address.href, Date.now, () => {})
  t.after(() => opened.close())
  assert.equal(await opened.read('nothing'), undefined)
}

test('the Kubernetes probes and the ServiceMonitor use paths of Menshen, at the port of the image', () => {
  assert.equal(container.startupProbe?.httpGet?.path, OWN_PATHS.health)
  assert.equal(container.livenessProbe?.httpGet?.path, OWN_PATHS.health)
  assert.equal(container.readinessProbe?.httpGet?.path, OWN_PATHS.ready)
  const [endpoint] = one<IServiceMonitor>('ServiceMonitor').spec.endpoints ?? []
  assert.equal(endpoint?.path, OWN_PATHS.metrics)
  const [last] = readStages().slice(-1)
  assert.ok(last)
  assert.deepEqual(
    container.ports?.map(({ name, containerPort }) => [name, String(containerPort)]),
    [['http', environmentOf(last).PORT]],
  )
  for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
    assert.equal(probe?.httpGet?.port, 'http')
  assert.equal(lastOf(last, 'USER'), `${pod.securityContext?.runAsUser}:${pod.securityContext?.runAsGroup}`)
  assert.equal(container.image, `menshen:${version}`)
})

test('no Kubernetes pod has privileges, a writable root file system or a service account token', () => {
  for (const { name, pod, container } of workloads) {
    assert.equal(pod?.automountServiceAccountToken, false, name)
    assert.equal(pod?.securityContext?.runAsNonRoot, true, name)
    assert.equal(pod?.securityContext?.seccompProfile?.type, 'RuntimeDefault', name)
    assert.deepEqual(
      container?.securityContext,
      { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      name,
    )
    assert.ok(container?.resources?.requests?.cpu && container.resources.requests.memory, name)
    assert.ok(container?.resources?.limits?.memory, name)
    for (const { secret } of pod?.volumes ?? []) if (secret) assert.equal(secret.defaultMode, 0o440, name)
  }
})

test('a Kubernetes rollout replaces one pod at a time and leaves it time to stop, as in the rolling restart test', () => {
  const { strategy, replicas } = deployment.spec ?? {}
  assert.deepEqual(strategy, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } })
  const [program, wait] = container.lifecycle?.preStop?.exec?.command ?? []
  assert.equal(program, 'sleep')
  assert.ok(Number(wait) >= 5)
  assert.ok((pod.terminationGracePeriodSeconds ?? 0) > Number(wait) + LONGEST_CLOSE_SECONDS)
  // That test runs with the defaults of these.
  for (const name of ['KEEP_ALIVE_TIMEOUT_MS', 'CLIENT_TIMEOUT_MS', 'WORKERS', 'HTTP2']) {
    assert.ok(name in SETTINGS, name)
    assert.ok(!(name in settings), name)
    assert.ok(!read(ROLLING_TEST).includes(name), name)
  }
  assert.ok(readPage(PAGE).includes(ROLLING_TEST))

  const {
    minReplicas = 0,
    maxReplicas = 0,
    scaleTargetRef,
  } = one<IHorizontalPodAutoscaler>('HorizontalPodAutoscaler').spec ?? {}
  assert.equal(replicas, undefined)
  assert.deepEqual(scaleTargetRef, { apiVersion: 'apps/v1', kind: 'Deployment', name: deployment.metadata.name })
  assert.equal(minReplicas, 2)
  assert.ok(maxReplicas > minReplicas)
  assert.equal(one<IPodDisruptionBudget>('PodDisruptionBudget').spec?.minAvailable, 1)
})

test('every Kubernetes selector matches its pods, and every route and Service its port', () => {
  for (const { labels, selector, name } of workloads) assert.deepEqual(selector, labels, name)
  const podsOf = (selector: object | undefined) =>
    workloads.filter(({ labels }) => JSON.stringify(labels) === JSON.stringify(selector))
  const services = ofKind<IService & Manifest>('Service')
  assert.deepEqual(
    services.map(({ metadata, spec }) => [metadata.name, podsOf(spec?.selector).map(({ name }) => name)]),
    services.map(({ metadata }) => [metadata.name, [metadata.name]]),
  )
  for (const { spec } of services)
    for (const { targetPort } of spec?.ports ?? [])
      assert.ok(podsOf(spec?.selector)[0]?.container?.ports?.some(({ name }) => name === targetPort))
  assert.equal(podsOf(one<IPodDisruptionBudget>('PodDisruptionBudget').spec?.selector?.matchLabels).length, 1)
  assert.equal(pod.topologySpreadConstraints?.length, 1)
  assert.deepEqual(pod.topologySpreadConstraints?.[0]?.labelSelector?.matchLabels, { app: 'menshen' })
  const { selector, endpoints } = one<IServiceMonitor>('ServiceMonitor').spec
  const menshen = one<IService>('Service')
  assert.deepEqual(selector.matchLabels, menshen.metadata.labels)
  assert.equal(endpoints?.[0]?.port, menshen.spec?.ports?.[0]?.name)
  const backends = ofKind<IHTTPRoute>('HTTPRoute').flatMap(({ spec }) =>
    (spec?.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs),
  )
  assert.deepEqual(backends, [{ name: menshen.metadata.name, port: menshen.spec?.ports?.[0]?.port }])
})

test('in Kubernetes, browsers reach the host of BASE_URL over https, but not the paths for authorization checks by proxies', () => {
  const gateway = JSON.stringify(one('Gateway'))
  assert.ok(gateway.includes(`"hostname":"${new URL(settings.BASE_URL ?? '').hostname}"`))
  const [closed] = one<IHTTPRoute>('HTTPRoute').spec?.rules ?? []
  assert.equal(closed?.backendRefs, undefined)
  assert.deepEqual(
    closed?.matches?.map(({ path }) => [path?.type, path?.value]),
    [OWN_PATHS.authz, OWN_PATHS.check, OWN_PATHS.forward].map(path => ['PathPrefix', path.replace(/\/$/, '')]),
  )
  const [redirect] = one<IHTTPRoute>('HTTPRoute', 'menshen-to-https').spec?.rules ?? []
  assert.equal(redirect?.filters?.[0]?.requestRedirect?.scheme, 'https')
})

test('the network policies allow only the traffic that Menshen needs, and only Menshen reaches Redis and the application', () => {
  const { ingress = [], egress = [] } = one<INetworkPolicy>('NetworkPolicy').spec ?? {}
  const namespaceOf = (peer: INetworkPolicyPeer) => peer.namespaceSelector?.matchLabels?.['kubernetes.io/metadata.name']
  const portsOf = (rule: { ports?: { protocol?: string; port?: number | string }[] }) =>
    (rule.ports ?? []).map(({ protocol, port }) => `${protocol} ${port}`)
  const [port] = container.ports ?? []
  assert.deepEqual(
    ingress.map(rule => [rule.from?.map(namespaceOf), portsOf(rule)]),
    [[['envoy-gateway-system', 'monitoring'], [`TCP ${port?.containerPort}`]]],
  )
  const upstream = new URL(settings.UPSTREAM ?? '')
  assert.deepEqual(
    egress.map(rule => {
      const [peer] = rule.to ?? []
      const whom = peer?.podSelector?.matchLabels ?? {}
      return [whom['k8s-app'] ?? whom.app ?? peer?.ipBlock?.cidr, ...portsOf(rule)]
    }),
    [
      ['kube-dns', 'UDP 53', 'TCP 53'],
      ['menshen-redis', 'TCP 6379'],
      [upstream.hostname, `TCP ${upstream.port}`],
      ['0.0.0.0/0', 'TCP 443'],
    ],
  )
  assert.equal(new URL(settings.AUTH_URL ?? '').protocol, 'https:')
  for (const name of ['application-by-menshen-only', 'menshen-redis']) {
    const { spec } = one<INetworkPolicy>('NetworkPolicy', name)
    assert.deepEqual(
      spec?.ingress?.map(({ from }) => from),
      [[{ podSelector: { matchLabels: { app: 'menshen' } } }]],
      name,
    )
  }
})

test('in Kubernetes, METRICS_FROM includes the address of a Prometheus pod, and TRUSTED_PROXIES does not', () => {
  const [readers, proxies] = [new Networks(), new Networks()]
  assert.ok(readers.add(settings.METRICS_FROM ?? ''))
  assert.ok(proxies.add(settings.TRUSTED_PROXIES ?? ''))
  assert.ok(readers.has('10.244.1.1'))
  assert.ok(!proxies.has('10.244.1.1'))
})

test('the Kubernetes README shows the output of kubectl for every manifest', t => {
  const named = buildOverlay(t, 'production').map(({ apiVersion, kind, metadata }) => {
    const group = apiVersion.includes('/') ? `.${apiVersion.split('/')[0]}` : ''
    const name = withoutHash(metadata.name)
    return `${kind.toLowerCase()}${group}/${name}${name === metadata.name ? '' : '-…'} created`
  })
  const shown = snippetsIn(PAGE, readPage(PAGE)).find(({ text }) => text.startsWith('configmap/'))
  assert.deepEqual(shown?.text.trim().split('\n').sort(), named.sort())
})
