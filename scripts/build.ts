// `npm run build`: the npm package's dist/, made from scratch so that nothing of an earlier build is packed.
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keepPublicTypes } from './public-types.ts'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')

// The package keeps the modes of its files, which must not depend on who builds it.
process.umask(0o022)
rmSync(DIST, { recursive: true, force: true })
// Code that runs needs no comments; the types that editors show do. `npm test` checks the types.
compile('tsconfig.build.json', '--removeComments', '--declaration', 'false', '--noCheck')
// Several checkers would each infer the same types, in twice the processor time.
for (const config of ['tsconfig.build.json', 'tsconfig.browser.json'])
  compile(config, '--emitDeclarationOnly', '--noCheck', '--checkers', '1')
for (const file of globSync('**/*.{css,svg}', { cwd: join(ROOT, 'src') }))
  cpSync(join(ROOT, 'src', file), join(DIST, file))
renameWorkers()
keepPublicTypes(ROOT, DIST)
// Tabs and long lines: the packed package is 13 KB smaller, and the lines of a stack trace can still be read.
const SHORT = ['--indent-style=tab', '--line-width=320', '--trailing-commas=none', '--bracket-spacing=false']
runTool('biome', 'format', '--write', '--vcs-enabled=false', '--log-level=error', ...SHORT, 'dist')

function compile(config: string, ...options: string[]): void {
  runTool('tsc', '-p', config, ...options)
}

function runTool(name: string, ...args: string[]): void {
  const { status } = spawnSync(process.execPath, [`node_modules/.bin/${name}`, ...args], {
    cwd: ROOT,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}

/** The compiler renames the files that are imported, but not those that threads are started with. */
function renameWorkers(): void {
  for (const file of globSync('**/*.js', { cwd: DIST })) {
    const text = readFileSync(join(DIST, file), 'utf8')
    const renamed = text.replace(/(new Worker\(new URL\('[^']+)\.ts'/g, "$1.js'")
    if (renamed !== text) writeFileSync(join(DIST, file), renamed)
  }
}
