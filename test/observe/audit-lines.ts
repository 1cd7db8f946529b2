// What `menshen audit --json` prints, and what is in AUDIT_FILE.

import assert from 'node:assert/strict'
import { createCommandRunner } from '../kit/command-runner.ts'
import type { Environment } from '../kit/instance.ts'

const commands = createCommandRunner()

export type AuditLine = Readonly<Record<string, unknown>> & { readonly time: string; readonly event: string }

export async function auditOf(cwd: string, env: Environment, ...args: string[]): Promise<AuditLine[]> {
  const { code, output } = await commands.run(env, { cwd, args: ['audit', '--json', ...args] })
  assert.equal(code, 0, output)
  return auditLines(output)
}

export function auditLines(text: string): AuditLine[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
}
