// systemctl of a server without a running systemd: starts a service as its unit says, and signals it.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, copyFileSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

interface Service {
  readonly command: readonly string[]
  readonly cwd: string
  /** Where it listens, if systemd listens in its place. */
  readonly address?: string
}

/** Services of Debian's packages. */
const DEBIAN: Readonly<Record<string, readonly string[]>> = {
  nginx: ['nginx', '-g', 'daemon off;'],
  'redis-server': ['redis-server', '/etc/redis/redis.conf', '--daemonize', 'no', '--supervised', 'no'],
  prometheus: [
    'prometheus',
    '--config.file=/etc/prometheus/prometheus.yml',
    '--storage.tsdb.path=/var/lib/prometheus/first-day',
    '--web.listen-address=127.0.0.1:9090',
  ],
}
const UNITS = '/etc/systemd/system'
/** Verbs with their signal; `undefined` starts the service. */
const VERBS: Readonly<Record<string, NodeJS.Signals | undefined>> = {
  '-q enable --now': undefined,
  restart: 'SIGTERM',
  reload: 'SIGHUP',
  'kill -s KILL': 'SIGKILL',
}

const line = process.argv.slice(2).join(' ')
const verb = Object.keys(VERBS).find(each => line.startsWith(`${each} `))
if (verb === undefined) throw new Error(`systemctl ${line} is not known here`)
// A socket is opened with its service.
const names = line
  .slice(verb.length + 1)
  .split(' ')
  .filter(name => !name.endsWith('.socket'))
for (const name of names.map(each => each.replace(/\.service$/, ''))) {
  const signal = VERBS[verb]
  if (signal) process.kill(pidOf(name), signal)
  if (signal === 'SIGTERM') while (existsSync(`/proc/${pidOf(name)}/exe`)) await pause(10)
  if (!signal || signal === 'SIGTERM') await start(name)
}

async function start(name: string): Promise<void> {
  const debian = DEBIAN[name]
  const { command, cwd, address }: Service = debian ? { command: debian, cwd: '/' } : serviceOf(name)
  const log = openSync(`/var/log/${name}.log`, 'a')
  const [program = '', ...args] = command
  const child = spawn(program, args, { cwd, detached: true, stdio: ['ignore', log, log] })
  child.unref()
  writeFileSync(`/run/${name}.pid`, String(child.pid))
  if (address) while (!(await connects(address))) await pause(10)
}

/** The first connection starts the service. */
async function connects(address: string): Promise<boolean> {
  const [host = '', port = ''] = address.split(':')
  const socket = connect(Number(port), host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function pidOf(name: string): number {
  return Number(readFileSync(`/run/${name}.pid`, 'utf8'))
}

/** systemd's own program hands over the socket, at the first connection. */
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
  const environment = [...read('Environment'), ...files].flatMap(each => ['-E', each])
  const [address = ''] = unitReader(name, '.socket')('ListenStream')
  const [start = ''] = read('ExecStart')
  const setpriv = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--no-new-privs']
  return {
    command: ['systemd-socket-activate', '-l', address, ...environment, ...setpriv, ...start.split(' ')],
    cwd: read('WorkingDirectory')[0] ?? '/',
    address,
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
