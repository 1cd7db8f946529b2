// The programs that the tests start. The full run installs the Debian packages that bring them. The tests run with a PATH
// that holds these programs and no others, so that a program that is not declared here is missing on every machine.

import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Debian's own: another Python that comes first on PATH has none of Debian's modules. */
export const PYTHON = '/usr/bin/python3'

/** Where Debian's programs are. Real applications are started with it. */
export const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin'

/** As compilers call it. */
const MACHINE = process.arch === 'arm64' ? 'aarch64' : 'x86_64'

interface Package {
  /** As apt-get calls it. */
  name: string
  /** What the tests use of it. */
  programs: readonly string[]
  /** Where its programs alone do not tell. */
  isInstalled?: () => boolean
  /** Whether something else will do where it cannot be installed. */
  hasSubstitute?: () => boolean
}

const PACKAGES: readonly Package[] = [
  {
    name: 'chromium-headless-shell',
    programs: ['chromium-headless-shell'],
    hasSubstitute: () => findBrowser() !== undefined,
  },
  // It binds sessions to a device, which the one above does not.
  { name: 'chromium', programs: ['chromium'] },
  { name: 'fonts-noto-cjk', programs: [], isInstalled: hasChineseFont },
  // It compiles its configuration.
  { name: 'varnish', programs: ['varnishd', `${MACHINE}-linux-gnu-gcc`, 'as', 'ld'] },
  { name: 'redis-server', programs: ['redis-server'] },
  { name: 'redis-tools', programs: ['redis-cli'] },
  { name: 'nginx-light', programs: ['nginx'] },
  { name: 'caddy', programs: ['caddy'] },
  { name: 'haproxy', programs: ['haproxy'] },
  { name: 'python3-yaml', programs: [], isInstalled: () => runsPython('import yaml') },
  { name: 'python3-jwt', programs: [], isInstalled: () => runsPython('import jwt, cryptography') },
  // None of it is running.
  { name: 'systemd', programs: ['systemd-analyze', 'systemd-sysusers', 'systemd-socket-activate'] },
  { name: 'logrotate', programs: ['logrotate'] },
  { name: 'prometheus', programs: ['prometheus', 'promtool'] },
  { name: 'kubernetes-client', programs: ['kubectl'] },
  // The server without its service.
  { name: 'apache2-bin', programs: ['apache2'] },
  { name: 'openssl', programs: ['openssl'] },
  { name: 'wrk', programs: ['wrk'] },
  { name: 'curl', programs: ['curl'] },
  { name: 'wget', programs: ['wget'] },
]

/** Of Debian's package coreutils: all of it. */
const COREUTILS = `
  arch b2sum base32 base64 basename basenc cat chcon chgrp chmod chown chroot cksum comm cp csplit cut date dd df dir
  dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join link ln logname ls md5sum
  mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink realpath
  rm rmdir runcon seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync
  tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink users vdir wc who whoami yes
`

/** What every machine has that can clone the project and install it: git, npm, a shell, and Debian's essential packages. */
const BASE_PROGRAMS = [
  ...['git', 'npm', 'npx', 'sh', 'bash', 'perl'],
  ...COREUTILS.trim().split(/\s+/),
  ...['sed', 'grep', 'egrep', 'find', 'xargs', 'tar', 'gzip'],
  // Of util-linux and bsdutils.
  ...['mount', 'nsenter', 'umount', 'prlimit', 'script', 'setpriv', 'taskset', 'unshare'],
  ...['apt-get', 'dpkg', 'dpkg-deb', 'gpgv'],
]

const UPDATE_TRIES = 10
const UPDATE_PAUSE_MS = 2000

// Installing must not start a system service: the tests start their own servers, on ports of their own.
const INSTALL_ENVIRONMENT = ['DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'SYSTEMD_OFFLINE=1']
/** Returns undefined when everything is there in the end, or else the sentence that says what to install. */
export function installMissingPackages(): string | undefined {
  const wanted = missingPackages().map(row => row.name)
  if (wanted.length === 0) return
  aptInstall(wanted)
  const missing = missingPackages().filter(row => !row.hasSubstitute?.())
  if (missing.length === 0) return
  const names = missing.map(row => row.name).join(' ')
  return `The tests need system packages that could not be installed; please install: ${names}`
}

/** Packages that one long test needs. Returns undefined when they are all installed, or else the sentence that says what to install. */
export function installPackages(names: readonly string[]): string | undefined {
  const missing = () => names.filter(name => !isInstalled(name))
  if (missing().length === 0) return
  aptInstall(missing())
  const left = missing()
  if (left.length > 0)
    return `The test needs system packages that could not be installed; please install: ${left.join(' ')}`
}

/** Fills an empty folder with links to the declared programs. It is all that the tests need on their PATH. */
export function linkPrograms(folder: string, searched: readonly string[] = searchPath()): void {
  const link = (name: string, path: string | undefined) => path && symlinkSync(path, join(folder, name))
  link('node', process.execPath)
  link('python3', existsSync(PYTHON) ? PYTHON : undefined)
  const declared = [...BASE_PROGRAMS, ...PACKAGES.flatMap(row => row.programs), ...BROWSERS]
  // Without the folders that npm puts first for its scripts: they hold what `npm ci` has installed.
  const folders = searched.filter(path => !path.includes('node_modules'))
  for (const name of new Set(declared)) link(name, findInFolders(name, folders))
}

/** The one without a window does the same work in a third of the time. */
const BROWSERS = ['chromium-headless-shell', 'chromium']

export function findBrowser(): string | undefined {
  return BROWSERS.map(findProgram).find(path => path !== undefined)
}

/** The path of a program on PATH; otherwise undefined. */
export function findProgram(name: string): string | undefined {
  return findInFolders(name, searchPath())
}

function searchPath(): string[] {
  return (process.env.PATH ?? '').split(delimiter)
}

function findInFolders(name: string, folders: readonly string[]): string | undefined {
  return folders.map(folder => join(folder, name)).find(isExecutable)
}

function missingPackages(): Package[] {
  return PACKAGES.filter(row => !(row.isInstalled?.() ?? row.programs.every(findProgram)))
}

function runsPython(script: string): boolean {
  return spawnSync(PYTHON, ['-c', script]).status === 0
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

function isInstalled(name: string): boolean {
  const env = { ...process.env, PATH: SYSTEM_PATH }
  const { stdout } = spawnSync('dpkg-query', ['--status', name], { encoding: 'utf8', env })
  return stdout.includes('\nStatus: install ok installed\n')
}

function aptInstall(names: readonly string[]): void {
  process.stdout.write(`Installing ${names.join(', ')}\n`)
  // Another run may be updating: apt-get waits for the lock of the packages, and not for that of their lists.
  for (let tries = 1; !aptGet('update') && tries < UPDATE_TRIES; tries++) sleepSync(UPDATE_PAUSE_MS)
  aptGet('install', '-y', '--no-install-recommends', ...names)
}

function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function aptGet(...args: string[]): boolean {
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  const options = ['-qq', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Dpkg::Use-Pty=0']
  const [command = '', ...rest] = [...sudo, 'env', ...INSTALL_ENVIRONMENT, 'apt-get', ...options, ...args]
  // The packages' own scripts need more programs than the tests.
  const env = { ...process.env, PATH: [process.env.PATH, SYSTEM_PATH].join(delimiter) }
  return spawnSync(command, rest, { stdio: ['ignore', 'inherit', 'inherit'], env }).status === 0
}
