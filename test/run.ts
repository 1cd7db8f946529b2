// `npm test`: everything that CI runs. It installs the Debian packages that are missing. Format, lint and types are checked while
// the tests run, which wait for other things half of their time.
// `npm test -- quick` runs every test that starts no other program, and installs nothing.
// `npm test -- test/stores/*.test.ts` runs only these files, without format, lint and types. It installs nothing and skips
// what the machine lacks; `--install` before the files makes both an error, as in the full run.
// `npm run test:long -- applications` runs test/long/applications.long.ts, and without a name every file there. It installs
// what is missing, too. Options of `node --test` are passed on: `npm run test:long -- applications --test-name-pattern=Tomcat`.
// The options of a long test itself reach it as variables: `npm run test:long -- day --minutes 5 --seed 7 --keep`.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { reservePorts } from './kit/free-port.ts'
import { installMissingPackages, linkPrograms } from './kit/packages.ts'
import { canShare, filesNotRun, type Share, startsPrograms, writeShares } from './kit/shared-process.ts'
import { createWatchdog } from './kit/watchdog.ts'

const MINUTE_MS = 60_000
/** Compiled code is kept from one process of the tests to the next. Threads use it by the variable alone. */
const COMPILED = resolve('node_modules/.cache/menshen-compiled')
/** More than there are cores: a test waits most of its time for a process, a browser or a deadline. */
const FILES_AT_A_TIME = 3 * availableParallelism()
/** Enough that all take about as long as the longest file. */
const PROCESSES_WITH_PROGRAMS = 12
/**
 * Files that take long, that start something while they are loaded, or that wait while they are loaded, which mixes up suites. The
 * longest come first.
 */
const OWN_PROCESS = [
  'browser/pages',
  'browser/journeys',
  'browser/page-variants',
  'cli/commands/records',
  'docs-first-production-day',
  'browser/portal',
  'browser/console-axe',
  'browser/session-script',
  'package/package',
  'docs-snippets',
  'cli/crash',
  'browser/console',
  'browser/providers',
  'browser/sign-in-again',
  'stores/redis/limits',
  'cli/worker-start',
  'observe/prometheus',
  'provider/connections',
].map(name => `test/${name}.test.ts`)
/** Of the files in shared processes, those that take longest: every process begins with some of them. */
const LONGEST_SHARED = [
  'server/slow-clients',
  'relying-party/mix-up',
  'provider/faults',
  'access/interpretations',
  'faults/lease',
  'session/identity-refresh',
  'identify/bearer',
  'proxy/expect-continue',
  'security/everywhere',
  'sign-in/user-session',
  'security/randomness',
  'relying-party/bad-id-tokens',
  'observe/audit-trail',
  'sign-in/session-ends',
  'live/oidc-provider',
  'console/sessions',
  'security/limits',
  'access/servers',
].map(name => `test/${name}.test.ts`)
const isLong = process.argv.includes('--long')
const given = isLong ? takeLongOptions(process.argv.slice(2)) : process.argv.slice(2)
const options = given.filter(argument => argument.startsWith('--') && !['--install', '--long'].includes(argument))
const chosen = given.filter(argument => !argument.startsWith('--'))
const isFull = !isLong && chosen.length === 0
const isQuick = chosen.join() === 'quick'
const isStrict = isFull || isLong || given.includes('--install')

// Debian has servers there, and not every user's PATH does.
process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter)
if (isStrict) {
  announce('system packages')
  const missing = installMissingPackages()
  if (missing) {
    process.stderr.write(`${missing}\n`)
    process.exit(1)
  }
  // test/kit/requirements.ts skips nothing.
  process.env.TEST_RUN = 'full'
}
const folder = mkdtempSync(join(tmpdir(), 'menshen-tests-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const programs = join(folder, 'programs')
mkdirSync(programs)
linkPrograms(programs)
process.env.PATH = programs

const checks: Promise<void>[] = []
if (isFull) {
  // `biome ci` colours its words even in a log file.
  const colours = process.stdout.isTTY ? [] : ['--colors=off']
  checks.push(check('format and lint', ['node_modules/.bin/biome', 'ci', ...colours]))
  // Several checkers would infer the same types, each for itself: 33 s of processor time instead of 21.
  checks.push(check('types', ['node_modules/.bin/tsc', '--checkers', '1']))
}
const shares: Share[] = []
// A day measures how long pages take, and is alone on the machine.
const isAlone = (file: string) => file === 'test/long/day.long.ts'
const files = isLong ? longFiles(chosen) : isFull || isQuick ? allFiles() : chosen
for (const group of [files.filter(file => !isAlone(file)), files.filter(isAlone)])
  if (group.length > 0 && !process.exitCode) await runTests(group)
// A file that blocks or ends its process takes those after it along; each round has one such file less.
for (let left = filesNotRun(shares.splice(0)); left.length > 0; left = filesNotRun(shares.splice(0))) {
  announce(`${left.length} files whose shared process ended before them`)
  await runTests(share(left, 1, 'left-over'))
}
await Promise.all(checks)

/** Most files are there in shared processes. */
function allFiles(): string[] {
  const names = globSync('test/**/*.test.ts').sort()
  const all = [...LONGEST_SHARED, ...names.filter(file => !LONGEST_SHARED.includes(file))]
  const shared = all.filter(file => canShare(file) && !OWN_PROCESS.includes(file))
  const simple = shared.filter(file => !startsPrograms(file))
  const paths = share(simple, FILES_AT_A_TIME, 'shared-process')
  if (isQuick) return paths
  const withPrograms = shared.filter(file => !simple.includes(file))
  // Loading their modules takes as long as their tests.
  const inBrowsers = all.filter(file => dirname(file) === 'test/browser' && !OWN_PROCESS.includes(file))
  const others = all.filter(file => !shared.includes(file) && !inBrowsers.includes(file) && !OWN_PROCESS.includes(file))
  const alone = [...OWN_PROCESS, ...share(inBrowsers, 2, 'shared-browser'), ...others]
  const programs = share(withPrograms, PROCESSES_WITH_PROGRAMS, 'shared-programs')
  // Files that wait and files that compute alternate. Those that only compute come last, so that no core is idle at the end.
  const turns = alone.flatMap((file, n) => [file, ...programs.slice(n, n + 1)])
  return inThisOrder([...turns, ...programs.slice(alone.length), ...paths])
}

/** The runner sorts all files by their paths. */
function inThisOrder(testFiles: readonly string[]): string[] {
  const links = mkdtempSync(join(folder, 'files-'))
  return testFiles.map((file, n) => {
    const link = join(links, `${String(n).padStart(3, '0')}-${basename(file)}`)
    symlinkSync(resolve(file), link)
    return link
  })
}

/** Returns the files for the runner. */
function share(testFiles: readonly string[], processes: number, name: string): string[] {
  const written = writeShares(folder, testFiles, processes, name)
  shares.push(...written)
  return written.map(({ path }) => path)
}

function longFiles(names: readonly string[]): string[] {
  const patterns = (names.length > 0 ? names : ['*']).map(name => `test/long/${name}.long.ts`)
  const missing = patterns.find(pattern => globSync(pattern).length === 0)
  if (missing) {
    process.stderr.write(`There is no ${missing}.\n`)
    process.exit(1)
  }
  return globSync(patterns)
}

/** Returns the other arguments. */
function takeLongOptions(args: readonly string[]): string[] {
  const own = { minutes: { type: 'string' }, seed: { type: 'string' }, keep: { type: 'boolean' } } as const
  const { values, tokens } = parseArgs({ args: [...args], options: own, strict: false, tokens: true })
  for (const name of Object.keys(own))
    if (values[name] !== undefined) process.env[`LONG_${name.toUpperCase()}`] = String(values[name])
  return tokens.flatMap(token => {
    if (token.kind === 'positional') return [token.value]
    if (token.kind !== 'option' || Object.hasOwn(own, token.name)) return []
    return [token.value === undefined ? token.rawName : `${token.rawName}=${token.value}`]
  })
}

async function runTests(paths: readonly string[]): Promise<void> {
  announce('tests')
  using watchdog = createWatchdog({
    blockedAfterMs: 2 * MINUTE_MS,
    fileTimeoutMs: isLong ? 120 * MINUTE_MS : 15 * MINUTE_MS,
    checkEveryMs: 5000,
    print(text) {
      process.stderr.write(text)
      // Said again at the end, where other tests may have passed.
      if (text.startsWith('✖')) process.once('exit', () => process.stderr.write(text))
    },
  })
  const args = [
    ...watchdog.nodeOptions,
    '--import=./test/kit/resolve-quickly.js',
    '--test',
    `--test-reporter=${isStrict ? 'spec' : './test/kit/reporter.ts'}`,
    '--test-reporter-destination=stdout',
    ...(isFull || isQuick ? ['--test-reporter=./test/kit/slowest-files.ts', '--test-reporter-destination=stdout'] : []),
    // Long tests measure, and pack the package in the same folder.
    `--test-concurrency=${isLong ? 1 : FILES_AT_A_TIME}`,
    // A test that hangs fails.
    '--test-timeout=300000',
    ...options,
    ...paths,
  ]
  const ports = await reservePorts()
  const runner = spawn(process.execPath, args, {
    stdio: 'inherit',
    env: { ...process.env, ...watchdog.env, ...ports.env, NODE_COMPILE_CACHE: COMPILED },
  })
  const ended = new AbortController()
  const watching = watchdog.watch(runner.pid ?? 0, ended.signal)
  const [status] = await once(runner, 'exit')
  ended.abort()
  await watching
  ports.close()
  if (status !== 0) process.exitCode = status ?? 1
}

/** Shows what it says in one piece, so that it does not mix with the lines of the tests. */
async function check(step: string, args: string[]): Promise<void> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [[status], ...output] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)])
  announce(`${step}: ${status === 0 ? 'passed' : 'failed'}`)
  process.stdout.write(output.join(''))
  if (status === 0) return
  process.exitCode = status ?? 1
  // Said again at the end, where the tests may have passed.
  process.once('exit', () => announce(`${step}: failed`))
}

function announce(step: string): void {
  process.stdout.write(`== ${step}\n`)
}
