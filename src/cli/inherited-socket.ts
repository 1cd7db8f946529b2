// Socket activation: a service manager that listens in our place passes its socket to us as descriptor 3 and announces it with
// variables (sd_listen_fds(3) of systemd). It keeps the socket open, so that requests during a restart wait instead of being refused.
import cluster from 'node:cluster'
import { fstatSync } from 'node:fs'
import type { Environment } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'

export interface InheritedSocket {
  readonly fd: number
  /** Variables that announce it to a worker. The cluster asks the first process, which owns the descriptor. */
  readonly forWorkers: Environment
}

const VARIABLES = ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES', 'LISTEN_PIDFDID'] as const
/** The first descriptor that is passed. */
const FD = 3
const EXPECTED = 'expected one listening TCP socket (ListenStream= with an address and a port, Accept=no)'

/** Removes the variables, so that no process that we start takes the socket for its own. */
export function takeInheritedSocket(environment: Record<string, string | undefined>): InheritedSocket | undefined {
  const { LISTEN_PID: pid, LISTEN_FDS: count } = environment
  for (const name of VARIABLES) delete environment[name]
  if (!count || count === '0') return undefined
  const owner = cluster.isWorker ? process.ppid : process.pid
  if (pid !== String(owner))
    throw refusal(
      `LISTEN_PID is ${shown(pid)} and this process is ${owner}: the socket was passed to another process; ` +
        'let the service manager start node itself (not npm or a shell), or unset LISTEN_PID and LISTEN_FDS',
    )
  if (count !== '1') throw refusal(`LISTEN_FDS is ${shown(count)}; ${EXPECTED}`)
  if (cluster.isPrimary && !isSocket(FD))
    throw refusal(`Descriptor ${FD} is not a socket, although LISTEN_FDS names it; ${EXPECTED}`)
  return { fd: FD, forWorkers: { LISTEN_FDS: '1', LISTEN_PID: String(process.pid) } }
}

/** `error` is the error of `listen`. */
export function refuseInheritedSocket({ code }: NodeJS.ErrnoException): never {
  throw refusal(`Descriptor ${FD} cannot be listened on (${code}); ${EXPECTED}`)
}

function isSocket(fd: number): boolean {
  try {
    return fstatSync(fd).isSocket()
  } catch {
    return false
  }
}

function shown(value = ''): string {
  return `"${value.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 20)}"`
}

function refusal(message: string): MenshenError {
  return new MenshenError('cannot_start', `${message}.`)
}
