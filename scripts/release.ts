// `npm run release`: writes the files of a release to release/files: the package, its SBOM, and the checksums of both. The same
// commit gives the same bytes, so that anyone can build them again and compare.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { productionSbom } from './sbom.ts'

const ROOT = join(import.meta.dirname, '..')
const FILES = join(ROOT, 'release/files')
/** npm's SBOM of everything is larger than the output that Node accepts by default. */
const MAX_BYTES = 64 * 1024 * 1024

const changed = git('status', '--porcelain')
if (changed) {
  process.stderr.write(`A release is made from a commit, and this is more:\n${changed}\n`)
  process.exit(1)
}
rmSync(FILES, { recursive: true, force: true })
mkdirSync(FILES, { recursive: true })
npm('inherit', 'pack', '--pack-destination', FILES)
const [tarball = ''] = readdirSync(FILES)
const sbom = npm('pipe', 'sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application')
const committedAt = Number(process.env.SOURCE_DATE_EPOCH ?? git('log', '-1', '--format=%ct'))
write(tarball.replace(/\.tgz$/, '.cdx.json'), `${JSON.stringify(productionSbom(sbom, committedAt), null, 2)}\n`)
write('SHA256SUMS', checksums())
process.stdout.write(readFileSync(join(FILES, 'SHA256SUMS'), 'utf8'))

/** As `sha256sum --check` reads them. */
function checksums(): string {
  const sum = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(FILES, name)))
      .digest('hex')
  return readdirSync(FILES)
    .sort()
    .map(name => `${sum(name)}  ${name}\n`)
    .join('')
}

function write(name: string, text: string): void {
  writeFileSync(join(FILES, name), text)
}

/** Returns npm's output, or shows it on stderr. npm reports its own errors. */
function npm(says: 'inherit' | 'pipe', ...args: string[]): string {
  const stdout = says === 'pipe' ? says : process.stderr
  const { status, stdout: said } = spawnSync('npm', args, {
    cwd: ROOT,
    stdio: ['ignore', stdout, 'inherit'],
    maxBuffer: MAX_BYTES,
  })
  if (status !== 0) process.exit(status ?? 1)
  return String(said)
}

/** Empty if this is not a clone, because unpacked sources can be packed, too. */
function git(...args: string[]): string {
  try {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return ''
  }
}
