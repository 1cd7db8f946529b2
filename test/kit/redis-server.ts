// Real Redis servers on loopback: one (with a password or TLS), a cluster, and a primary with its replica and sentinels.
// Each works in a temporary folder, keeps nothing, and is gone at the end.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from './free-port.ts'
import { askRedis } from './redis-command.ts'
import { requirePrograms } from './requirements.ts'
import { HANG_MS } from './until.ts'

const SLOTS = 16_384
export const PRIMARY_NAME = 'menshen'

const run = promisify(execFile)
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
// Otherwise a signal would end this process without that.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))

export interface Options {
  /** Otherwise a free one. */
  port?: number
  password?: string
  /** Its own certificates, or those that it shares with others. */
  tls?: boolean | Certificates
  settings?: readonly string[]
  /** Lines of a configuration file that make it a sentinel. */
  sentinel?: readonly string[]
}

/** A folder with ca.crt, redis.crt and redis.key, good for 127.0.0.1 and localhost. */
interface Certificates {
  readonly folder: string
  remove(): void
}

export async function makeCertificates(): Promise<Certificates> {
  const folder = mkdtempSync(join(tmpdir(), 'menshen-redis-'))
  await makeCertificate(folder)
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export type RedisServer = Awaited<ReturnType<typeof startRedis>>

export async function startRedis(options: Options = {}) {
  await requirePrograms('redis-server', 'redis-cli')
  const { port = await freePort(), password, tls = false, settings = [], sentinel } = options
  const folder = mkdtempSync(join(tmpdir(), 'menshen-redis-'))
  const certificates = typeof tls === 'object' ? tls.folder : folder
  const ca = join(certificates, 'ca.crt')
  if (tls === true) await makeCertificate(folder)
  const config = sentinel ? [join(folder, 'sentinel.conf'), '--sentinel'] : ['--save', '', '--appendonly', 'no']
  if (sentinel) writeFileSync(join(folder, 'sentinel.conf'), sentinel.map(line => `${line}\n`).join(''))
  const args = [
    ...config,
    ...(tls ? ['--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', 'no'] : ['--port', `${port}`]),
    ...(tls ? ['--tls-ca-cert-file', ca, '--tls-replication', 'yes', '--tls-cluster', 'yes'] : []),
    ...(tls ? ['--tls-cert-file', join(certificates, 'redis.crt')] : []),
    ...(tls ? ['--tls-key-file', join(certificates, 'redis.key')] : []),
    ...(password ? ['--requirepass', password] : []),
    ...(password && !sentinel ? ['--masterauth', password] : []),
    ...['--bind', '127.0.0.1', ...settings],
  ]
  let child: ChildProcess

  /** The reply as redis-cli prints it, which takes the options before the command. */
  async function command(...words: string[]): Promise<string> {
    if (!words[0]?.startsWith('-')) return askRedis({ port, password, ca: tls ? ca : undefined }, words)
    const flags = ['-p', `${port}`, ...(tls ? ['--tls', '--cacert', ca] : []), ...(password ? ['-a', password] : [])]
    const { stdout } = await run('redis-cli', [...flags, '--no-auth-warning', '-e', ...words], { timeout: HANG_MS })
    return stdout.trim()
  }

  async function start(): Promise<void> {
    child = spawn('redis-server', args, { cwd: folder, stdio: 'ignore' })
    running.add(child)
    // If another took the port meanwhile, it is that one which answers.
    await until(async () => (await command('PING')) === 'PONG' && child.exitCode === null)
  }

  /** Ends it the hard way. */
  async function kill(): Promise<void> {
    running.delete(child)
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  async function stop(): Promise<void> {
    await kill()
    rmSync(folder, { recursive: true, force: true })
  }

  await start().catch(async error => {
    await stop()
    throw error
  })
  return {
    port,
    host: `127.0.0.1:${port}`,
    ca,
    command,
    kill,
    stop,
    /** On the same port, and empty. */
    restart: start,
    /** It keeps its connections and does not answer. */
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
  }
}

/** Three primaries that share the slots. */
export async function startCluster(options: Pick<Options, 'password' | 'tls'> = {}) {
  const nodes = await Promise.all([0, 1, 2].map(() => startClusterNode(options)))
  const servers = nodes.map(({ server }) => server)
  for (const [i, { server }] of nodes.entries()) {
    const from = Math.floor((i * SLOTS) / nodes.length)
    const to = Math.floor(((i + 1) * SLOTS) / nodes.length) - 1
    await server.command('CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to}`)
  }
  for (const { server, busPort } of nodes.slice(1))
    await servers[0]?.command('CLUSTER', 'MEET', '127.0.0.1', `${server.port}`, `${busPort}`)
  const isWhole = async (server: RedisServer) => {
    const info = await server.command('CLUSTER', 'INFO')
    return (
      info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3') && info.includes('cluster_size:3')
    )
  }
  for (const server of servers) await until(() => isWhole(server))
  return { servers, stop: () => stopAll(servers) }
}

async function startClusterNode(options: Options) {
  // By default it is the port and 10,000, which can be too much.
  const busPort = await freePort()
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '5000', '--cluster-port', `${busPort}`]
  return { busPort, server: await startRedis({ ...options, settings }) }
}

/** One primary, one replica, and three sentinels that take two seconds to call a server down. */
export async function startWithSentinels(password: string, tls: boolean | Certificates = false) {
  const primary = await startRedis({ password, tls })
  const replica = await startRedis({ password, tls, settings: ['--replicaof', '127.0.0.1', `${primary.port}`] })
  const sentinels = await Promise.all([0, 1, 2].map(() => startSentinel(primary, password, { tls })))
  for (const one of sentinels) {
    await until(async () => {
      const info = await one.command('INFO', 'sentinel')
      return info.includes('status=ok') && info.includes('slaves=1,sentinels=3')
    })
  }
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
  return { primary, replica, sentinels, stop: () => stopAll([primary, replica, ...sentinels]) }
}

/** `own` is of the sentinel itself. `epoch` numbers the failover that made this server the primary. */
export function startSentinel(
  primary: RedisServer,
  password: string,
  { epoch = 0, ...own }: Pick<Options, 'port' | 'password' | 'tls'> & { readonly epoch?: number } = {},
): Promise<RedisServer> {
  const sentinel = [
    `sentinel monitor ${PRIMARY_NAME} 127.0.0.1 ${primary.port} 2`,
    `sentinel auth-pass ${PRIMARY_NAME} ${password}`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} 2000`,
    `sentinel failover-timeout ${PRIMARY_NAME} 5000`,
    `sentinel config-epoch ${PRIMARY_NAME} ${epoch}`,
  ]
  return startRedis({ ...own, sentinel })
}

async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map(server => server.stop()))
}

async function makeCertificate(folder: string): Promise<void> {
  await requirePrograms('openssl')
  const make = (name: string, ...more: string[]) => {
    const subject = ['-subj', `/CN=${name}`, '-days', '2', ...more]
    const files = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.crt`,
    ]
    return run('openssl', ['req', '-x509', ...subject, ...files], { cwd: folder })
  }
  await make('ca')
  await make('redis', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost')
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + HANG_MS
  while (!(await isSo().catch(() => false))) {
    if (Date.now() > deadline) throw new Error('Redis did not start as it should.')
    await pause(30)
  }
}
