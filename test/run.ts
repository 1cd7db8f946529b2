// `npm test`: everything that CI runs, in order, up to the first failure.
// `npm test -- test/stores/*.test.ts` runs only these files, without format, lint and types.
// `npm run test:long -- applications` runs test/long/applications.long.ts; without a name, every file there.
// Options of `node --test` are passed on: `npm run test:long -- applications --test-name-pattern=Jupyter`.

import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { installMissingPackages, linkPrograms } from './kit/packages.ts'

const [isLong, given] = process.argv[2] === '--long' ? [true, process.argv.slice(3)] : [false, process.argv.slice(2)]
const options = given.filter(arg => arg.startsWith('--'))
const chosen = given.filter(arg => !arg.startsWith('--'))
const files = isLong ? longFiles(chosen) : chosen.length > 0 ? chosen : ['test/**/*.test.ts']

announce('system packages')
// Where servers are, which not every user's PATH has.
process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter)
const missing = installMissingPackages()
if (missing) {
  process.stderr.write(`${missing}\n`)
  process.exit(1)
}
const programs = mkdtempSync(join(tmpdir(), 'menshen-programs-'))
process.on('exit', () => rmSync(programs, { recursive: true, force: true }))
linkPrograms(programs)
process.env.PATH = programs

if (!isLong && chosen.length === 0) {
  // `biome ci` colours its words even in a log file.
  const colours = process.stdout.isTTY ? [] : ['--colors=off']
  runNode('format and lint', ['node_modules/.bin/biome', 'ci', ...colours])
  runNode('types', ['node_modules/.bin/tsc'])
}
runNode('tests', [
  '--import=./test/kit/keep-compiled.ts',
  '--test',
  '--test-reporter=spec',
  // One more than there are cores: half of the time a test waits for a process, a browser or a deadline.
  `--test-concurrency=${availableParallelism() + 1}`,
  // A test that hangs fails, instead of hanging all.
  '--test-timeout=300000',
  ...options,
  ...files,
])

function longFiles(names: readonly string[]): string[] {
  const paths = (names.length > 0 ? names : ['*']).map(name => `test/long/${name}.long.ts`)
  for (const path of paths)
    if (globSync(path).length === 0) {
      process.stderr.write(`There is no ${path}.\n`)
      process.exit(1)
    }
  return paths
}

function runNode(step: string, args: string[]): void {
  announce(step)
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

function announce(step: string): void {
  process.stdout.write(`== ${step}\n`)
}
