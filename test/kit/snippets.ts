// The snippets of the documentation: every fenced block of every page, with its language and where it stands.
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Snippet {
  /** From the project's root. */
  readonly page: string
  /** Of its first fence. */
  readonly line: number
  /** What stands behind the first fence, in lower case. */
  readonly language: string
  readonly text: string
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** README and its kin, docs/ and what the examples say about themselves. */
export function pages(): string[] {
  return globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: ROOT }).sort()
}

export function readPage(page: string): string {
  return readFileSync(`${ROOT}/${page}`, 'utf8')
}

export function readSnippets(): Snippet[] {
  return pages().flatMap(page => snippetsIn(page, readPage(page)))
}

export function snippetsIn(page: string, markdown: string): Snippet[] {
  const fences =
    /^(?<indent>[ \t]*)(?<fence>`{3,}|~{3,})(?<language>[^\n`]*)\n(?<text>[\s\S]*?)^[ \t]*\k<fence>[ \t]*$/gm
  return [...markdown.matchAll(fences)].map(({ index, groups = {} }) => ({
    page,
    line: markdown.slice(0, index).split('\n').length,
    language: (groups.language ?? '').trim().toLowerCase(),
    text: (groups.text ?? '').replaceAll(new RegExp(`^${groups.indent}`, 'gm'), ''),
  }))
}
