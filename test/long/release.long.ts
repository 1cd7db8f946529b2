// A release is the same bytes wherever and by whomever it is made.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { productionDependencies } from '../../scripts/dependencies.ts'
import { requireProgram } from '../kit/requirements.ts'
import { tempFolder } from '../kit/temp.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const run = promisify(execFile)
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
const ENVIRONMENT = { ...process.env, PATH, npm_config_update_notifier: 'false' }

test('a release from another folder with a strict umask is the same package byte for byte, with an SBOM and checksums', async t => {
  const folder = tempFolder(t)
  mkdirSync(join(folder, 'here'))
  await run('npm', ['pack', '--pack-destination', join(folder, 'here')], { cwd: ROOT, env: ENVIRONMENT })
  const tarball = readFileSync(join(folder, 'here', `menshen-${version}.tgz`))
  const { stdout, files } = await releaseIn(join(folder, 'elsewhere'))
  assert.equal(readFileSync(join(files, 'SHA256SUMS'), 'utf8'), stdout)
  await run(requireProgram('sha256sum'), ['--check', '--strict', 'SHA256SUMS'], { cwd: files })
  const [sums, sbom = '', packed = ''] = readdirSync(files).sort()
  assert.deepEqual([sums, sbom, packed], ['SHA256SUMS', `menshen-${version}.cdx.json`, `menshen-${version}.tgz`])
  assert.ok(readFileSync(join(files, packed)).equals(tarball))
  const { metadata, components, serialNumber } = JSON.parse(readFileSync(join(files, sbom), 'utf8'))
  assert.deepEqual([metadata.component.name, metadata.timestamp], ['menshen', '2026-09-21T14:13:20.000Z'])
  assert.match(serialNumber, /^urn:uuid:[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
  const named = ({ name, version }: { name: string; version: string }) => `${name} ${version}`
  const unique = (names: string[]) => [...new Set(names)].sort()
  assert.deepEqual(unique(components.map(named)), unique(productionDependencies().map(named)))
})

interface Release {
  readonly stdout: string
  readonly files: string
}

/** The files of a release, made in a copy of the project by a user with a strict umask. */
async function releaseIn(copy: string): Promise<Release> {
  const left = new Set(['node_modules', '.git', 'dist', 'data', 'files'])
  cpSync(ROOT, copy, { recursive: true, filter: file => !left.has(basename(file)) })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  const strict = 'umask 077 && exec npm run --silent release'
  const env = { ...ENVIRONMENT, SOURCE_DATE_EPOCH: '1790000000' }
  const { stdout } = await run('sh', ['-c', strict], { cwd: copy, env })
  return { stdout, files: join(copy, 'release/files') }
}
