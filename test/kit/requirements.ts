// What a developer's machine may lack. A test that needs it is skipped with one sentence; in the full run it fails.
import { spawnSync } from 'node:child_process'
import { getTestContext, test } from 'node:test'
import { findProgram, PYTHON } from './packages.ts'

/** The path of a program that the running test starts. */
export function requireProgram(name: string): string {
  return findProgram(name) ?? lack(`${name} is not installed`)
}

/** For helpers that a file also calls outside of its tests, to start what all of them need. */
export async function requirePrograms(...names: readonly string[]): Promise<void> {
  const missing = names.find(name => !findProgram(name))
  if (!missing) return
  if (isFullRun() || getTestContext()) lack(`${missing} is not installed`)
  test('every test of this file', { skip: `${missing} is not installed` })
  // The rest of the file is not evaluated. Node calls a promise that stays pending an error, unless the process has ended.
  process.once('beforeExit', () => setTimeout(() => process.exit(0), 1))
  await new Promise(() => {})
}

/** Options that the program of the same name on macOS does not have. */
export function requireUtilLinux(name: string): string {
  const path = requireProgram(name)
  return spawnSync(path, ['--version']).status === 0 ? path : lack(`${name} is not the one of util-linux`)
}

export function requirePython(...modules: readonly string[]): string {
  const { status } = spawnSync(PYTHON, ['-c', ['import sys', ...modules.map(name => `import ${name}`)].join('\n')])
  if (status === 0) return PYTHON
  return lack(`${PYTHON} is not installed${modules.length > 0 ? `, or its modules ${modules.join(', ')}` : ''}`)
}

/** `/proc`, or every address of 127.0.0.0/8. */
export function requireLinux(what: string): void {
  if (process.platform !== 'linux') lack(`${what} is only there on Linux`)
}

/** Node counts a test that is skipped and then throws as skipped. */
function lack(sentence: string): never {
  const context = getTestContext()
  if (context && 'skip' in context && !isFullRun()) context.skip(sentence)
  throw new Error(sentence)
}

/** `npm test` without files: test/run.ts has installed everything before. */
function isFullRun(): boolean {
  return process.env.TEST_RUN === 'full'
}
