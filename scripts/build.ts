// `npm run build`: the npm package's dist/, made anew so that nothing of an earlier build is packed.
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')

// The package keeps the modes of its files: they must not depend on who builds it.
process.umask(0o022)
rmSync(DIST, { recursive: true, force: true })
// What runs needs no comments; what editors show to whoever imports it does.
compile('tsconfig.build.json', '--removeComments', '--declaration', 'false', '--noCheck')
for (const config of ['tsconfig.build.json', 'tsconfig.browser.json']) compile(config, '--emitDeclarationOnly')
for (const file of globSync('**/*.{css,svg}', { cwd: join(ROOT, 'src') }))
  cpSync(join(ROOT, 'src', file), join(DIST, file))
renameWorkers()
removeInnerTypes()

function compile(config: string, ...options: string[]): void {
  const { status } = spawnSync(process.execPath, ['node_modules/.bin/tsc', '-p', config, ...options], {
    cwd: ROOT,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

/** The compiler renames what is imported, and not what a thread is started with. */
function renameWorkers(): void {
  for (const file of globSync('**/*.js', { cwd: DIST })) {
    const text = readFileSync(join(DIST, file), 'utf8')
    const renamed = text.replace(/(new Worker\(new URL\('[^']+)\.ts'/g, "$1.js'")
    if (renamed !== text) writeFileSync(join(DIST, file), renamed)
  }
}

/** Nobody can import what `exports` does not lead to: its types would only make the package larger. */
function removeInnerTypes(): void {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const doors = Object.values<{ types?: string }>(exports).flatMap(({ types }) => (types ? [join(ROOT, types)] : []))
  const reached = new Set<string>()
  for (const file of doors) reach(file, reached)
  for (const file of globSync('**/*.d.ts', { cwd: DIST })) if (!reached.has(join(DIST, file))) rmSync(join(DIST, file))
}

function reach(file: string, reached: Set<string>): void {
  if (reached.has(file)) return
  reached.add(file)
  const imports = readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.[jt]s['"]/g)
  for (const [, path = ''] of imports) reach(join(dirname(file), `${path}.d.ts`), reached)
}
