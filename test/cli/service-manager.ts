// A small service manager that does what systemd does with a socket unit: it listens, hands its socket to Menshen as descriptor 3, and
// starts Menshen anew whenever that ends. Node itself cannot listen without accepting.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Environment, Line } from '../kit/instance.ts'
import { requireLinux, requirePython } from '../kit/requirements.ts'
import { until } from '../kit/until.ts'

const MAIN = fileURLToPath(new URL('../../bin/menshen.js', import.meta.url))

/** Its arguments: the kind of socket and where it is, then the command. */
export const MANAGER = `
import os, socket, subprocess, sys
kind, place, *command = sys.argv[1:]
if kind == "unix":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
else:
    listener = socket.socket(type=socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(place)))
if kind != "udp":
    listener.listen(4096)
os.dup2(listener.fileno(), 3)
while True:
    status = subprocess.call(["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *command], pass_fds=[3])
    print('{"event":"ended","status":%d}' % status, flush=True)
    if kind != "tcp":
        break
`

export interface Options {
  readonly kind?: 'tcp' | 'udp' | 'unix'
  /** A port, or the path of a Unix socket. */
  readonly place: string
  readonly cwd: string
  readonly env: Environment
}

export function startServiceManager(t: TestContext, { kind = 'tcp', place, cwd, env }: Options) {
  requireLinux('/proc')
  const { PATH, HOME } = process.env
  const child = spawn(requirePython(), ['-c', MANAGER, kind, place, process.execPath, MAIN], {
    cwd,
    env: { PATH, HOME, LISTEN_FDS: '1', ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const pid = child.pid ?? assert.fail('it was not started')
  const closed = once(child, 'close')
  const lines: Line[] = []
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on('line', text => lines.push(text.startsWith('{') ? JSON.parse(text) : { event: text }))
  t.after(() => {
    if (child.exitCode === null) process.kill(-pid, 'SIGKILL')
    return closed
  })
  return {
    lines,
    closed,
    /** Menshen's first process, whichever is running just now. */
    menshen(): number {
      return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))
    },
    /** Resolves when the event has been written so many times. */
    said: (event: string, times = 1) => until(() => lines.filter(line => line.event === event).length >= times),
  }
}
