// What our manifests of Kubernetes may say: the parts that we use, by the names that its API has for them. A key that stands elsewhere, or
// is misspelt, would be without effect and is refused.
import { z } from 'zod'

const labels = z.record(z.string(), z.string())
const named = z.strictObject({ name: z.string(), labels: labels.optional() })
const selector = z.strictObject({ matchLabels: labels })
const count = z.int().positive()
const quantity = z.string().regex(/^\d+(m|Mi|Gi)?$/)

const probe = z
  .strictObject({
    httpGet: z.strictObject({ path: z.string().startsWith('/'), port: z.string() }).optional(),
    tcpSocket: z.strictObject({ port: z.string() }).optional(),
    periodSeconds: count,
    timeoutSeconds: count.optional(),
    failureThreshold: count.optional(),
  })
  .refine(({ httpGet, tcpSocket }) => (httpGet === undefined) !== (tcpSocket === undefined))

const variable = z.union([
  z.strictObject({ name: z.string(), value: z.string() }),
  z.strictObject({
    name: z.string(),
    valueFrom: z.strictObject({ secretKeyRef: z.strictObject({ name: z.string(), key: z.string() }) }),
  }),
])

const container = z.strictObject({
  name: z.string(),
  image: z.string().regex(/^[\w./-]+:[\w.-]+$/),
  command: z.array(z.string()).optional(),
  ports: z.array(z.strictObject({ name: z.string(), containerPort: count })),
  env: z.array(variable).optional(),
  volumeMounts: z.array(
    z.strictObject({ name: z.string(), mountPath: z.string().startsWith('/'), readOnly: z.boolean().optional() }),
  ),
  // None of it is left to a default.
  securityContext: z.strictObject({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.strictObject({ drop: z.tuple([z.literal('ALL')]) }),
  }),
  resources: z.strictObject({
    requests: z.strictObject({ cpu: quantity, memory: quantity }),
    limits: z.strictObject({ memory: quantity }),
  }),
  startupProbe: probe.optional(),
  livenessProbe: probe,
  readinessProbe: probe,
  lifecycle: z
    .strictObject({ preStop: z.strictObject({ exec: z.strictObject({ command: z.array(z.string()) }) }) })
    .optional(),
})

const volume = z.strictObject({
  name: z.string(),
  secret: z.strictObject({
    secretName: z.string(),
    defaultMode: z.literal(0o440),
    items: z.array(z.strictObject({ key: z.string(), path: z.string() })).optional(),
  }),
})

const pod = z.strictObject({
  metadata: z.strictObject({ labels }),
  spec: z.strictObject({
    automountServiceAccountToken: z.literal(false),
    enableServiceLinks: z.literal(false),
    terminationGracePeriodSeconds: count,
    topologySpreadConstraints: z
      .array(
        z.strictObject({
          maxSkew: count,
          topologyKey: z.string(),
          whenUnsatisfiable: z.enum(['ScheduleAnyway', 'DoNotSchedule']),
          labelSelector: selector,
        }),
      )
      .optional(),
    securityContext: z.strictObject({
      runAsNonRoot: z.literal(true),
      runAsUser: count,
      runAsGroup: count,
      fsGroup: count,
      seccompProfile: z.strictObject({ type: z.literal('RuntimeDefault') }),
    }),
    containers: z.array(container).length(1),
    volumes: z.array(volume),
  }),
})

const peer = z.union([
  z.strictObject({ podSelector: selector }),
  z.strictObject({ namespaceSelector: selector, podSelector: selector.optional() }),
  z.strictObject({ ipBlock: z.strictObject({ cidr: z.cidrv4(), except: z.array(z.cidrv4()).optional() }) }),
])
const ports = z.array(z.strictObject({ protocol: z.enum(['TCP', 'UDP']), port: count })).min(1)
const version = <Version extends string, Kind extends string>(apiVersion: Version, kind: Kind) => ({
  apiVersion: z.literal(apiVersion),
  kind: z.literal(kind),
  metadata: named,
})

export const manifest = z.discriminatedUnion('kind', [
  z.strictObject({
    ...version('apps/v1', 'Deployment'),
    spec: z.strictObject({
      replicas: count,
      selector,
      strategy: z.strictObject({
        type: z.literal('RollingUpdate'),
        rollingUpdate: z.strictObject({ maxSurge: count, maxUnavailable: z.literal(0) }),
      }),
      template: pod,
    }),
  }),
  z.strictObject({
    ...version('apps/v1', 'StatefulSet'),
    spec: z.strictObject({
      replicas: count,
      serviceName: z.string(),
      selector,
      template: pod,
      volumeClaimTemplates: z.array(
        z.strictObject({
          metadata: named,
          spec: z.strictObject({
            accessModes: z.tuple([z.literal('ReadWriteOnce')]),
            resources: z.strictObject({ requests: z.strictObject({ storage: quantity }) }),
          }),
        }),
      ),
    }),
  }),
  z.strictObject({
    ...version('v1', 'Service'),
    spec: z.strictObject({
      selector: labels,
      ports: z.array(z.strictObject({ name: z.string(), port: count, targetPort: z.string() })),
    }),
  }),
  z.strictObject({
    ...version('v1', 'Secret'),
    type: z.literal('Opaque'),
    stringData: z.record(z.string(), z.string()),
  }),
  z.strictObject({
    ...version('policy/v1', 'PodDisruptionBudget'),
    spec: z.strictObject({ minAvailable: count, selector }),
  }),
  z.strictObject({
    ...version('networking.k8s.io/v1', 'NetworkPolicy'),
    spec: z.strictObject({
      podSelector: selector,
      policyTypes: z.array(z.enum(['Ingress', 'Egress'])),
      ingress: z.array(z.strictObject({ from: z.array(peer).min(1), ports })),
      egress: z.array(z.strictObject({ to: z.array(peer).min(1), ports })).optional(),
    }),
  }),
])

export type Manifest = z.infer<typeof manifest>
