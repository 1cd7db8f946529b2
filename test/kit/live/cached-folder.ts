// What is too large to be everybody's, or not to be installed into the system: fetched once, when a test asks for it, into
// a folder below node_modules.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/menshen-tests/', import.meta.url))
const DEADLINE_MS = 300_000
const NPM_OPTIONS = ['--legacy-peer-deps', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--silent']

const execute = promisify(execFile)

/** Packages of npm, each with its exact version. Returns what loads them, or `undefined` if they cannot be had here. */
export async function npmPackages(name: string, specs: readonly string[]): Promise<NodeJS.Require | undefined> {
  const folder = await cachedFolder(name, async cwd => {
    writeFileSync(join(cwd, 'package.json'), '{ "private": true }')
    await run(cwd, 'npm', 'install', '--save-exact', ...NPM_OPTIONS, ...specs)
  })
  return folder === undefined ? undefined : createRequire(join(folder, 'package.json'))
}

/**
 * Debian packages and what they need that is not here, unpacked and nothing more: no script of theirs runs, and the system
 * does not know of them. Returns their root, or `undefined` if they cannot be had here.
 */
export function debianPackages(name: string, packages: readonly string[]): Promise<string | undefined> {
  return cachedFolder(name, async cwd => {
    // Lists of its own: those of the system can be missing, or older than what there is by now.
    const places = ['-o', `Dir::State::lists=${cwd}/lists`, '-o', `Dir::Cache=${cwd}/cache`]
    const aptGet = (...args: string[]) => run(cwd, 'apt-get', '-q', ...places, '-o', 'APT::Sandbox::User=root', ...args)
    for (const place of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(cwd, place), { recursive: true })
    await aptGet('update')
    const plan = await aptGet('install', '--simulate', '--no-install-recommends', ...packages)
    await aptGet('download', ...[...plan.matchAll(/^Inst (\S+)/gm)].map(([, needed = '']) => needed))
    const archives = readdirSync(cwd).filter(file => file.endsWith('.deb'))
    for (const archive of archives) await run(cwd, 'dpkg', '-x', archive, '.')
    for (const left of [...archives, 'lists', 'cache']) rmSync(join(cwd, left), { recursive: true, force: true })
  })
}

/** Whole or not at all: a half one is never found under its name. */
async function cachedFolder(name: string, fill: (folder: string) => Promise<void>): Promise<string | undefined> {
  const folder = join(CACHE, name)
  if (existsSync(folder)) return folder
  mkdirSync(CACHE, { recursive: true })
  const half = mkdtempSync(`${folder}-`)
  try {
    await fill(half)
    renameSync(half, folder)
    return folder
  } catch {
    return undefined
  } finally {
    rmSync(half, { recursive: true, force: true })
  }
}

async function run(cwd: string, program: string, ...args: string[]): Promise<string> {
  const { stdout } = await execute(program, args, { cwd, timeout: DEADLINE_MS, maxBuffer: 1 << 24 })
  return stdout
}
