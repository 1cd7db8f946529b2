// Packages of npm that are too large to be everybody's: installed once, below node_modules, when a test asks for them.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/menshen-tests/', import.meta.url))
const DEADLINE_MS = 120_000
const OPTIONS = ['--legacy-peer-deps', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--silent']

const run = promisify(execFile)

/** Each with its exact version, as `name@1.2.3`. Returns what loads them, or `undefined` if they cannot be had here. */
export async function cachedPackages(specs: readonly string[]): Promise<NodeJS.Require | undefined> {
  const folder = join(CACHE, specs.join('+').replaceAll('/', '-'))
  try {
    if (!existsSync(folder)) await install(folder, specs)
    return createRequire(join(folder, 'package.json'))
  } catch {
    return undefined
  }
}

/** Whole or not at all: a half one is never found under its name. */
async function install(folder: string, specs: readonly string[]): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  const half = mkdtempSync(`${folder}-`)
  try {
    writeFileSync(join(half, 'package.json'), '{ "private": true }')
    await run('npm', ['install', '--save-exact', ...OPTIONS, ...specs], { cwd: half, timeout: DEADLINE_MS })
    renameSync(half, folder)
  } finally {
    rmSync(half, { recursive: true, force: true })
  }
}
