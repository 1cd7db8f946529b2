// The system packages that the tests need: looked for, and installed if they are missing.

import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian's own: another one that stands before it on PATH has none of Debian's modules. */
export const PYTHON = '/usr/bin/python3'

interface Package {
  /** As apt-get calls it. */
  name: string
  /** Whether what it brings is there. */
  isThere: () => boolean
  /** Whether something else will do where it cannot be installed. */
  isReplaced?: () => boolean
}

const PACKAGES: readonly Package[] = [
  {
    name: 'chromium-headless-shell',
    isThere: () => findProgram('chromium-headless-shell') !== undefined,
    isReplaced: () => findBrowser() !== undefined,
  },
  { name: 'fonts-noto-cjk', isThere: hasChineseFont },
  { name: 'varnish', isThere: () => findProgram('varnishd') !== undefined },
  { name: 'redis-server', isThere: () => findProgram('redis-server') !== undefined },
  { name: 'nginx-light', isThere: () => findProgram('nginx') !== undefined },
  { name: 'caddy', isThere: () => findProgram('caddy') !== undefined },
  { name: 'haproxy', isThere: () => findProgram('haproxy') !== undefined },
  { name: 'python3-yaml', isThere: () => spawnSync('python3', ['-c', 'import yaml']).status === 0 },
  { name: 'python3-jwt', isThere: () => spawnSync(PYTHON, ['-c', 'import jwt, cryptography']).status === 0 },
  // For systemd-analyze, systemd-sysusers and systemd-socket-activate; none of it is running.
  { name: 'systemd', isThere: () => findProgram('systemd-analyze') !== undefined },
  { name: 'logrotate', isThere: () => findProgram('logrotate') !== undefined },
  // With promtool.
  { name: 'prometheus', isThere: () => findProgram('prometheus') !== undefined },
  // The server without its service.
  { name: 'apache2-bin', isThere: () => findProgram('apache2') !== undefined },
]

// Installing must not start a system service: the tests start their own servers, on ports of their own.
const INSTALL_ENVIRONMENT = ['DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'SYSTEMD_OFFLINE=1']

/** Returns undefined when everything is there in the end, or else the sentence that says what to install. */
export function installMissingPackages(): string | undefined {
  const wanted = missingPackages().map(row => row.name)
  if (wanted.length === 0) return
  process.stdout.write(`Installing ${wanted.join(', ')}\n`)
  if (aptGet('update')) aptGet('install', '-y', '--no-install-recommends', ...wanted)
  const missing = missingPackages().filter(row => !row.isReplaced?.())
  if (missing.length === 0) return
  const names = missing.map(row => row.name).join(' ')
  return `The tests need system packages that could not be installed; please install: ${names}`
}

/** The one without a window does the same work in a third of the time. */
export function findBrowser(): string | undefined {
  return findProgram('chromium-headless-shell') ?? findProgram('chromium')
}

/** The path of a program on PATH, or where servers are, which not everybody's PATH has; otherwise undefined. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  return folders.map(folder => join(folder, name)).find(isExecutable)
}

function missingPackages(): Package[] {
  return PACKAGES.filter(row => !row.isThere())
}

function hasChineseFont(): boolean {
  // Without the program fc-list, the package's own file is the only sign.
  if (existsSync('/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc')) return true
  return Boolean(spawnSync('fc-list', [':lang=zh-cn'], { encoding: 'utf8' }).stdout)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function aptGet(...args: string[]): boolean {
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  const options = ['-qq', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Dpkg::Use-Pty=0']
  const [command = '', ...rest] = [...sudo, 'env', ...INSTALL_ENVIRONMENT, 'apt-get', ...options, ...args]
  return spawnSync(command, rest, { stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
}
