// systemctl of a server without a running systemd: starts a service as its unit says, and signals it.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, copyFileSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { MANAGER } from '../../cli/service-manager.ts'
import { PYTHON } from '../packages.ts'

interface Service {
  readonly command: readonly string[]
  readonly cwd: string
  /** Of a service for which systemd listens. */
  readonly port?: number
}

/** Services of Debian's packages. */
const DEBIAN: Readonly<Record<string, readonly string[]>> = {
  nginx: ['nginx', '-g', 'daemon off;'],
  // Without the delay, it starts a copy at once instead of after five seconds.
  'redis-server': [
    ...['redis-server', '/etc/redis/redis.conf', '--daemonize', 'no', '--supervised', 'no'],
    ...['--repl-diskless-sync-delay', '0'],
  ],
  prometheus: [
    'prometheus',
    '--config.file=/etc/prometheus/prometheus.yml',
    '--storage.tsdb.path=/var/lib/prometheus/first-day',
    '--web.listen-address=127.0.0.1:9090',
  ],
}
const UNITS = '/etc/systemd/system'
type Verb = (name: string) => void | Promise<void>
const VERBS: Readonly<Record<string, Verb>> = {
  '-q enable --now': start,
  reload: name => send('SIGHUP', [pidOf(name)]),
  'kill -s KILL': name => send('SIGKILL', descendants(pidOf(name))),
}

const line = process.argv.slice(2).join(' ')
const [verb, act] = Object.entries(VERBS).find(([each]) => line.startsWith(`${each} `)) ?? []
if (!verb || !act) throw new Error(`systemctl ${line} is not known here`)
// A socket is opened with its service.
const names = line
  .slice(verb.length + 1)
  .split(' ')
  .filter(name => !name.endsWith('.socket'))
for (const name of names) await act(name.replace(/\.service$/, ''))

async function start(name: string): Promise<void> {
  const debian = DEBIAN[name]
  const { command, cwd, port }: Service = debian ? { command: debian, cwd: '/' } : serviceOf(name)
  const log = openSync(`/var/log/${name}.log`, 'a')
  const [program = '', ...args] = command
  const child = spawn(program, args, { cwd, detached: true, stdio: ['ignore', log, log] })
  child.unref()
  writeFileSync(`/run/${name}.pid`, String(child.pid))
  if (port) while (!(await connects(port))) await pause(10)
}

async function connects(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function send(signal: NodeJS.Signals, pids: readonly number[]): void {
  for (const pid of pids) process.kill(pid, signal)
}

function pidOf(name: string): number {
  return Number(readFileSync(`/run/${name}.pid`, 'utf8'))
}

function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number)
  return children.flatMap(child => [child, ...descendants(child)])
}

/** Started again whenever it ends, with a socket that stays open. */
function serviceOf(name: string): Service {
  const read = unitReader(name, '.service')
  const user = read('User')[0] ?? ''
  const id = Number(execFileSync('id', ['-u', user], { encoding: 'utf8' }))
  const own = (folder: string) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    chownSync(folder, id, id)
  }
  for (const [key, parent] of Object.entries({ State: '/var/lib', Logs: '/var/log', Cache: '/var/cache' }))
    for (const folder of read(`${key}Directory`)) own(join(parent, folder))
  const credentials = `/run/credentials/${name}.service`
  mkdirSync('/run/credentials', { recursive: true })
  own(credentials)
  for (const [credential = '', file = ''] of read('LoadCredential').map(each => each.split(':'))) {
    copyFileSync(file, join(credentials, credential))
    chownSync(join(credentials, credential), id, id)
  }
  const files = read('EnvironmentFile').flatMap(file => readFileSync(file, 'utf8').trim().split('\n'))
  const environment = ['env', 'LISTEN_FDS=1', ...read('Environment'), ...files]
  const [, port = ''] = unitReader(name, '.socket')('ListenStream')[0]?.split('127.0.0.1:') ?? []
  const setpriv = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs']
  const program = read('ExecStart')[0]?.split(' ') ?? []
  return {
    command: [PYTHON, '-c', MANAGER, 'tcp', port, ...environment, ...setpriv, ...program],
    cwd: read('WorkingDirectory')[0] ?? '/',
    port: Number(port),
  }
}

/** The values of a key, with the specifiers that our units use. */
function unitReader(name: string, type: string): (key: string) => string[] {
  const [prefix = '', instance = ''] = name.split('@')
  const text = readFileSync(join(UNITS, instance ? `${prefix}@${type}` : name + type), 'utf8')
  const specifiers: Readonly<Record<string, string>> = {
    '%N': name,
    '%i': instance,
    '%S': '/var/lib',
    '%L': '/var/log',
    '%C': '/var/cache',
    '%d': `/run/credentials/${name}.service`,
  }
  const filled = text.replaceAll(/%[NiSLCd]/g, found => specifiers[found] ?? found)
  return key => [...filled.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}
