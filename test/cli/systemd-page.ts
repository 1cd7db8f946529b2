// The commands of docs/deploying.md, carried out below another root: /etc and /opt of this machine stay as they are.
import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { readPage, snippetsIn } from '../kit/snippets.ts'
import { CLIENT_SECRET } from '../kit/strict-provider.ts'

export function readCommands(): string[] {
  const page = 'docs/deploying.md'
  const snippet = snippetsIn(page, readPage(page)).find(({ text }) => text.startsWith('apt-get'))
  assert.ok(snippet)
  return snippet.text.trim().split('\n')
}

/** With an editor that changes one line, and the secret of our provider that is pasted. */
export function runBelow(
  folder: string,
  commands: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): SpawnSyncReturns<string> {
  const script = commands
    .join('\n')
    .replaceAll(/(?<=\s)\/(?=etc\/|opt\/|usr\/local\/)/g, `${folder}/`)
    .replaceAll('systemd-sysusers', `systemd-sysusers --root=${folder}`)
  const env = { PATH: process.env.PATH, ...environment, EDITOR: 'sed -i s/app.example.com/edited.example.com/' }
  // Node's own input for a process is a socket, which cannot be opened as /dev/stdin.
  return spawnSync('sh', ['-c', `echo ${CLIENT_SECRET} | sh -ec '${script}'`], { env, encoding: 'utf8' })
}
