// The image as far as it goes without a registry: the stages of the Dockerfile are carried out in empty folders, and the last of them is
// started as the root of a process of its own.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { until } from '../kit/until.ts'
import { environmentOf, lastOf, ROOT, readContext, readStages, type Stage } from './dockerfile.ts'

const NPM = { npm_config_prefer_offline: 'true', npm_config_update_notifier: 'false' }

export interface Image {
  readonly folder: string
  readonly stage: Stage
}

/** Carries out every instruction that makes files. The base is what this machine has, with our own Node. */
export function buildImage(folder: string): Image {
  const context = join(folder, 'context')
  for (const name of readContext()) cpSync(join(ROOT, name), join(context, name), { recursive: true })
  const made = readStages().map((stage, n) => {
    const root = join(folder, stage.name ?? `stage-${n}`)
    for (const { name, text } of stage.instructions) {
      const workdir = join(root, lastOf(stage, 'WORKDIR'))
      mkdirSync(workdir, { recursive: true })
      if (name === 'RUN') run(text, root, workdir)
      if (name === 'COPY') copy(text, { folder, context, workdir })
    }
    return { folder: root, stage }
  })
  return made.at(-1) ?? assert.fail()
}

function run(command: string, root: string, cwd: string): void {
  const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
  const inRoot = command.replaceAll(/(?<=\s)\/(?=\w)/g, `${root}/`)
  execFileSync('sh', ['-ec', inRoot], {
    cwd,
    env: { ...process.env, ...NPM, PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

function copy(text: string, { folder, context, workdir }: { folder: string; context: string; workdir: string }): void {
  const [, stage, paths = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(text) ?? []
  const names = paths.split(' ')
  const target = names.pop() ?? ''
  const from = stage ? join(folder, stage) : context
  for (const name of names) {
    const isInto = target.endsWith('/') && name !== '.'
    cpSync(join(from, name), join(workdir, isInto ? join(target, name) : target), {
      recursive: true,
      verbatimSymlinks: true,
    })
  }
}

/** A root that holds the system's programs, the image and nothing else; all of it read-only but the volume /data. */
const ENTER = `
set -e
image=$1 node=$2 user=$3; shift 3
root=$image/root
mount --make-rprivate /
mount -t tmpfs tmpfs "$root"
for name in usr etc dev; do mkdir "$root/$name"; mount --rbind "/$name" "$root/$name"; done
for name in bin sbin lib lib64; do [ ! -L "/$name" ] || cp -P "/$name" "$root/$name"; done
mkdir "$root/app" "$root/data" "$root/proc" "$root/tmp" "$root/opt"
touch "$root/opt/node"
mount --bind "$node" "$root/opt/node"
mount --bind "$image/app" "$root/app"
mount --bind "$image/data" "$root/data"
mount -t proc proc "$root/proc"
for name in usr etc app opt/node; do mount -o remount,bind,ro "$root/$name"; done
mount -o remount,ro "$root"
cd /
exec chroot --userspec="$user" --groups= "$root" /usr/bin/env -i -C /app PATH=/opt:/usr/bin:/bin "$@"
`

/** As process number 1, as in a container. */
export async function startImage(t: TestContext, { folder, stage }: Image, given: Record<string, string>) {
  mkdirSync(join(folder, 'root'), { recursive: true })
  const variables = Object.entries({ ...environmentOf(stage), ...given }).map(([name, value]) => `${name}=${value}`)
  const command = [...variables, ...JSON.parse(lastOf(stage, 'ENTRYPOINT'))]
  const own = [folder, process.execPath, lastOf(stage, 'USER')]
  const child = spawn('unshare', ['--mount', '--pid', '--fork', 'sh', '-c', ENTER, 'sh', ...own, ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', line => lines.push(line))
  const closed = once(child, 'close')
  const first = () => Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'))
  t.after(() => {
    if (child.exitCode === null && existsSync(`/proc/${child.pid}`)) process.kill(first(), 'SIGKILL')
    return closed
  })
  await until(() => {
    assert.equal(child.exitCode, null, lines.join('\n'))
    return lines.some(line => line.includes('"event":"started"'))
  })
  return { pid: first(), lines, closed }
}
