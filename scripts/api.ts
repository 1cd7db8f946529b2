// Writes test/package/api.md from the types of everything that can be imported: `npm run docs`. A test fails when the two
// differ, so a change of the library's surface shows in the diff.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { API } from 'typescript/unstable/sync'
import { type Door, type Entry, readSurface, type Surface } from './api/surface.ts'

export const API_PAGE = new URL('../test/package/api.md', import.meta.url)

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TSC = join(ROOT, 'node_modules/.bin/tsc')

export function apiPage(): string {
  // Where the packages that the types mention are found.
  const folder = mkdtempSync(join(ROOT, 'node_modules', '.api-'))
  const api = new API({ cwd: folder })
  try {
    const doors = readDoors()
    emitTypes(folder)
    const config = join(folder, 'tsconfig.json')
    const files = doors.map(({ types }) => join(folder, types))
    writeFileSync(config, JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), files, include: [] }))
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config)
    if (!project) throw new Error('TypeScript did not open the project')
    return page(readSurface(doors, project, folder))
  } finally {
    api.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function readDoors(): Door[] {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  return Object.entries<{ types?: string }>(exports).flatMap(([name, { types }]) =>
    types ? [{ name: name.replace('.', 'menshen'), types }] : [],
  )
}

/** Without a check, which `npm test` and `npm run build` make. */
function emitTypes(folder: string): void {
  for (const [config, out] of [
    ['tsconfig.build.json', 'dist'],
    ['tsconfig.browser.json', 'dist/browser'],
  ] as const) {
    const args = [TSC, '-p', config, '--emitDeclarationOnly', '--noCheck', '--outDir', join(folder, out)]
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
    if (status !== 0) throw new Error(stdout)
  }
}

function page({ doors, inner }: Surface): string {
  const chapters = doors.map(({ name, entries }) => `## ${name}\n\n${entries.map(entry).join('\n')}`)
  return `# API reference

Every export with its types, written by \`npm run docs\`. [library.md](../../docs/library.md) and [assertion.md](../../docs/assertion.md) explain how to use it.

${chapters.join('\n')}
## What these are made of

Not exported by these names.

${inner.map(entry).join('\n')}`
}

function entry({ name, comment, code }: Entry): string {
  return [`### \`${name}\``, comment, code && `\`\`\`typescript\n${code}\n\`\`\``, '']
    .filter((part, n) => part || n === 3)
    .join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(API_PAGE, apiPage())
