// A call of createMenshen that a process evaluates several times: each bundle of Next has its own copy of the module with the
// call, and a development server evaluates the module again when a developer changes it.
//
//   evaluation 1   the proxy's bundle           first request: version A starts
//   evaluation 2   a page's bundle              same options: uses A; the functions among the options are now those of 2
//   evaluation 3   the proxy's, a rule changed  other options: version B starts with A's dev provider and memory store; A closes
//   evaluation 2   a request in flight          uses B
//   evaluation 4   the page's, a rule changed   same options as B: uses B
//
// Instances that a browser cannot tell apart (one baseUrl, one session cookie) are versions of one another, unless they were
// evaluated together. In production nothing is replaced: each different set of options is an instance.

import { AsyncLocalStorage } from 'node:async_hooks'
import { isProduction } from './config/deployment.ts'
import type { Config } from './config/file.ts'
import { fingerprintOf } from './config/fingerprint.ts'
import type { Environment, Settings } from './config/settings.ts'
import type { Log } from './log.ts'
import type { Menshen } from './menshen.ts'
import type { Hooks } from './sign-in/hooks.ts'
import type { Store } from './stores/store.ts'

/** One evaluation of a module. */
export interface Evaluation {
  /** Grows with time. */
  readonly order: number
  /** How many were evaluated together with it, and before it: two calls of one module are two instances. */
  readonly index: number
}

/** The embedded development provider, and the settings for it. */
export interface Development {
  readonly url: string
  readonly users: readonly string[]
  /** What the operator would set for it. */
  readonly settings: Environment
  /** After a reload. */
  reconfigure(config: Config): void
  close(): Promise<void>
}

/** What outlives a version, so that a change of the options signs no user out. */
export interface RetainedParts {
  development?: RetainedDevelopment | undefined
  memoryStore?: Store | undefined
}

export interface RetainedDevelopment {
  /** Shared by versions that would start the same provider. */
  readonly fingerprint: string
  /** 0 if any free port will do. */
  readonly port: number
  readonly running: Development
}

/** The functions among the options. Their captured values may change although nothing else does. */
export interface Functions {
  readonly log: Log
  readonly now: () => number
  readonly hooks: Hooks
}

/** A call of createMenshen with options that were checked. */
export interface CreateCall {
  readonly instanceName: string | undefined
  readonly settings: Settings
  readonly config: Config
  /** The other options that make another instance if they change. */
  readonly others: readonly unknown[]
  readonly devProviderPort: number
  readonly functions: Functions
  start(functions: Functions, retained: RetainedParts): Promise<Menshen>
}

/** An instance whose versions follow each other. */
interface Instance {
  readonly retained: RetainedParts
  latest?: Menshen
}

interface SharedInstance extends Instance {
  /** The order of the latest evaluation. */
  order: number
  /** The fingerprint of the options of the latest version. */
  fingerprint: string
  /** The functions that the latest version calls. */
  calls: { functions: Functions }
}

interface Registry {
  evaluations: number
  /** The number of evaluations that began in this turn of the event loop. */
  together: number
  readonly instances: Map<string, SharedInstance>
  readonly instanceOf: WeakMap<Menshen, SharedInstance>
  readonly created: WeakMap<() => Promise<Menshen>, Promise<Menshen>>
  lastStart: Promise<unknown>
}

const REGISTRY = Symbol.for('menshen/instances')

/** The bundles of an application have nothing in common but the process. */
function registry(): Registry {
  const shared = globalThis as { [REGISTRY]?: Registry }
  shared[REGISTRY] ??= {
    evaluations: 0,
    together: 0,
    instances: new Map(),
    instanceOf: new WeakMap(),
    created: new WeakMap(),
    lastStart: Promise.resolve(),
  }
  return shared[REGISTRY]
}

const evaluating = new AsyncLocalStorage<Evaluation>()

export function newEvaluation(): Evaluation {
  const shared = registry()
  if (shared.together === 0)
    setImmediate(() => {
      shared.together = 0
    })
  return { order: ++shared.evaluations, index: shared.together++ }
}

/** Calls `create`, once; a failed call is repeated by the next one. What createMenshen starts in it is shared. */
export async function createShared(create: () => Promise<Menshen>, evaluation: Evaluation): Promise<Menshen> {
  const { created, instanceOf } = registry()
  let creating = created.get(create)
  if (!creating) {
    creating = evaluating.run(evaluation, async () => create())
    created.set(create, creating)
    creating.catch(() => created.delete(create))
  }
  const mine = await creating
  return instanceOf.get(mine)?.latest ?? mine
}

/** The instance for a call: the one that runs if it was started by the same call with the same options, otherwise a new one. */
export function startInstance(call: CreateCall): Promise<Menshen> {
  const isNamed = call.instanceName !== undefined && !isProduction(call.settings)
  const evaluation = evaluating.getStore() ?? (isNamed ? newEvaluation() : undefined)
  if (!evaluation) return startVersion({ retained: {} }, call, call.functions)
  const shared = registry()
  const starting = shared.lastStart.then(() => useVersion(shared, call, evaluation))
  shared.lastStart = starting.catch(() => undefined)
  return starting
}

async function useVersion(shared: Registry, call: CreateCall, { order, index }: Evaluation): Promise<Menshen> {
  const { instanceName, settings, config, others, devProviderPort, functions } = call
  const fingerprint = fingerprintOf([instanceName, settings, config, others])
  const isFixed = isProduction(settings)
  const key = isFixed ? fingerprint : (instanceName ?? `${settings.BASE_URL} ${index}`)
  const same = [...shared.instances.values()].find(instance => instance.fingerprint === fingerprint)
  const calls = { functions }
  const instance = same ?? shared.instances.get(key) ?? { retained: {}, order, fingerprint, calls }
  const { latest }: Instance = instance
  // The first request of a bundle can come after the change that replaced its version.
  if (latest && order < instance.order) return latest
  instance.order = order
  if (latest && instance.fingerprint === fingerprint) {
    if (!isFixed) instance.calls.functions = functions
    return latest
  }
  if (devProviderPort > 0) await closeOthersOnPort(shared, devProviderPort, instance)
  const menshen = await startVersion(instance, call, latestFunctions(calls), () => {
    if (shared.instances.get(key) === instance) shared.instances.delete(key)
  })
  Object.assign(instance, { fingerprint, calls })
  shared.instances.set(key, instance)
  shared.instanceOf.set(menshen, instance)
  latest?.close().catch(() => undefined)
  return menshen
}

/** A changed baseUrl makes another instance, which cannot listen on a fixed port while the one before does. */
async function closeOthersOnPort({ instances }: Registry, port: number, instance: Instance): Promise<void> {
  for (const other of [...instances.values()])
    if (other !== instance && other.retained.development?.port === port) await other.latest?.close()
}

async function startVersion(
  instance: Instance,
  call: CreateCall,
  functions: Functions,
  forget = () => {},
): Promise<Menshen> {
  const { retained } = instance
  const started = await call.start(functions, retained).catch(async error => {
    if (!instance.latest) await closeRetained(retained)
    throw error
  })
  let closed: Promise<void> | undefined
  async function close(timeoutMs?: number): Promise<void> {
    const isReplaced = instance.latest !== menshen
    if (!isReplaced) forget()
    await started.close(timeoutMs).finally(() => !isReplaced && closeRetained(retained))
  }
  const menshen: Menshen = {
    ...started,
    close(timeoutMs) {
      closed ??= close(timeoutMs)
      return closed
    },
  }
  instance.latest = menshen
  return menshen
}

async function closeRetained(retained: RetainedParts): Promise<void> {
  const { development, memoryStore } = retained
  retained.development = undefined
  retained.memoryStore = undefined
  await development?.running.close()
  await memoryStore?.close()
}

/** Calls the functions of the latest evaluation. */
function latestFunctions(calls: { readonly functions: Functions }): Functions {
  const { onSignIn, onSignOut } = calls.functions.hooks
  return {
    log: {
      info: (fields, message) => calls.functions.log.info(fields, message),
      warn: (fields, message) => calls.functions.log.warn(fields, message),
      error: (fields, message) => calls.functions.log.error(fields, message),
    },
    now: () => calls.functions.now(),
    hooks: {
      onSignIn: onSignIn && (user => calls.functions.hooks.onSignIn?.(user)),
      onSignOut: onSignOut && (user => calls.functions.hooks.onSignOut?.(user)),
    },
  }
}
