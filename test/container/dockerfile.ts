// Reads a Dockerfile: its stages, each with its instructions in order.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface Instruction {
  readonly name: string
  /** What stands behind it. */
  readonly text: string
}

export interface Stage {
  readonly base: string
  readonly name: string | undefined
  readonly instructions: readonly Instruction[]
}

export function readStages(): Stage[] {
  const lines = readFileSync(`${ROOT}/Dockerfile`, 'utf8')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = []
  for (const line of lines) {
    if (line === '' || line.startsWith('#')) continue
    const [, name = '', text = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? assert.fail(`no instruction: ${line}`)
    const [, base = '', stage] = (name === 'FROM' && /^(\S+)(?: AS (\S+))?$/.exec(text)) || []
    if (base) stages.push({ base, name: stage, instructions: [] })
    else stages.at(-1)?.instructions.push({ name, text })
  }
  return stages
}

/** What the last instruction of this name says; without its options, such as those of HEALTHCHECK. */
export function lastOf({ instructions }: Stage, name: string): string {
  const found = instructions.findLast(instruction => instruction.name === name) ?? assert.fail(`no ${name}`)
  return found.text.replace(/^(--\S+ )+/, '')
}

export function environmentOf(stage: Stage): Record<string, string> {
  const pairs = lastOf(stage, 'ENV').split(' ')
  return Object.fromEntries(pairs.map(pair => pair.split('=', 2)))
}

/** The files and folders at the top that reach the build: ours lets nothing through but what it names. */
export function readContext(): string[] {
  const patterns = readFileSync(`${ROOT}/.dockerignore`, 'utf8')
    .split('\n')
    .filter(line => line && !line.startsWith('#'))
  assert.equal(patterns[0], '*')
  const names = patterns.slice(1).map(pattern => /^!([\w./-]+)$/.exec(pattern)?.[1] ?? assert.fail(pattern))
  return names
}
