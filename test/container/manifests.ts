// Manifests of Kubernetes, the Gateway API and the Prometheus Operator, held against the models of their API: their validators check
// values, and the compiler finds keys that the API does not have.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './dockerfile.ts'

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> }
}

/** Where the model of each kind is. */
const MODELS: Readonly<Record<string, string>> = {
  'v1 ConfigMap': 'kubernetes-models/v1',
  'v1 Secret': 'kubernetes-models/v1',
  'v1 Service': 'kubernetes-models/v1',
  'apps/v1 Deployment': 'kubernetes-models/apps/v1',
  'apps/v1 StatefulSet': 'kubernetes-models/apps/v1',
  'policy/v1 PodDisruptionBudget': 'kubernetes-models/policy/v1',
  'autoscaling/v2 HorizontalPodAutoscaler': 'kubernetes-models/autoscaling/v2',
  'networking.k8s.io/v1 NetworkPolicy': 'kubernetes-models/networking.k8s.io/v1',
  'gateway.networking.k8s.io/v1 Gateway': '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1',
  'gateway.networking.k8s.io/v1 HTTPRoute': '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1',
  'monitoring.coreos.com/v1 ServiceMonitor': '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
}

/** One sentence for each mistake. */
export async function mistakesIn(manifests: readonly Manifest[]): Promise<string[]> {
  const unknown = manifests.filter(manifest => !modelOf(manifest))
  if (unknown.length > 0) return unknown.map(({ apiVersion, kind }) => `there is no ${kind} in ${apiVersion}`)
  const invalid = await Promise.all(manifests.map(invalidValues))
  return [...invalid.flat(), ...unknownKeys(manifests)]
}

function modelOf({ apiVersion, kind }: Manifest): string | undefined {
  return MODELS[`${apiVersion} ${kind}`]
}

async function invalidValues(manifest: Manifest): Promise<string[]> {
  const { [manifest.kind]: Model } = await import(modelOf(manifest) ?? '')
  try {
    new Model(manifest).validate()
    return []
  } catch (error) {
    return [`${manifest.kind} ${manifest.metadata.name}: ${error}`]
  }
}

/** The compiler refuses a key in an object literal that its type does not have. */
function unknownKeys(manifests: readonly Manifest[]): string[] {
  const folder = mkdtempSync(join(ROOT, 'node_modules', '.manifests-'))
  try {
    const lines = manifests.map(
      (manifest, n) =>
        `import type { I${manifest.kind} as Model${n} } from '${modelOf(manifest)}'\nexport const m${n}: Model${n} = ${JSON.stringify(manifest)}\n`,
    )
    writeFileSync(join(folder, 'manifests.ts'), lines.join(''))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    // The models do not tell a property that is absent from one that is undefined. They need no types of Node or of browsers,
    // which take half of the compiler's time.
    const compilerOptions = { exactOptionalPropertyTypes: false, types: [], lib: ['es2024'] }
    const config = {
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions,
      files: ['manifests.ts'],
      include: [],
      exclude: [],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const args = [join(ROOT, 'node_modules/.bin/tsc'), '-p', folder, '--pretty', 'false']
    const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: ROOT })
    const errors = stdout.split('\n').filter(Boolean)
    return status === 0 || errors.length > 0 ? errors : ['the compiler does not run']
  } finally {
    rmSync(folder, { recursive: true })
  }
}
