// Removes from the declarations of a build what no application can name: without it the package is a fifth smaller.
//
//   dist/index.d.ts   export type { Menshen } from './menshen.ts'      an entry of `exports` in package.json
//   dist/menshen.d.ts export interface Menshen extends Embedded {…}    stays, and so does what it names
//                     export declare function createCore(…): Core;     nothing public names it: removed

import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

interface Import {
  readonly file: string
  readonly name: string
}

interface Statement {
  readonly text: string
  /** The names that it declares. */
  readonly names: readonly string[]
}

interface Declarations {
  readonly statements: readonly Statement[]
  readonly byName: ReadonlyMap<string, Statement>
  /** What is imported from other files of the build, by local name. */
  readonly imports: ReadonlyMap<string, Import>
  readonly kept: Set<Statement>
}

export function keepPublicTypes(root: string, dist: string): void {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.values<{ types?: string }>(exports).flatMap(({ types }) => (types ? [join(root, types)] : []))
  const files = new Map<string, Declarations>()
  const open = (file: string): Declarations => {
    const known = files.get(file)
    if (known) return known
    const declarations = parse(file)
    files.set(file, declarations)
    // A module's augmentations apply as soon as it is loaded.
    for (const statement of declarations.statements)
      if (/^declare (global|module)\b/m.test(statement.text)) keep(file, statement)
    return declarations
  }

  function keep(file: string, statement: Statement): void {
    const { kept } = open(file)
    if (kept.has(statement)) return
    kept.add(statement)
    for (const [, path = '', name = ''] of statement.text.matchAll(/import\("(\.[^"]+)"\)\.(\w+)/g))
      keepName(fileOf(file, path), name)
    for (const [name] of statement.text.matchAll(/[A-Za-z_$][\w$]*/g)) keepName(file, name)
  }

  function keepName(file: string, name: string): void {
    const { byName, imports } = open(file)
    const statement = byName.get(name)
    const source = imports.get(name)
    if (statement) keep(file, statement)
    else if (source) keepName(source.file, source.name)
  }

  for (const file of entries) {
    for (const statement of open(file).statements) keep(file, statement)
    for (const { file: source, name } of reexportsIn(file)) keepName(source, name)
  }
  for (const name of globSync('**/*.d.ts', { cwd: dist })) {
    const file = join(dist, name)
    const declarations = files.get(file)
    if (entries.includes(file)) continue
    if (declarations && declarations.kept.size > 0) writeFileSync(file, print(file, declarations))
    else rmSync(file)
  }
}

/** A statement of the compiler's output begins in the first column, with the comment above it. */
function parse(file: string): Declarations {
  const text = readFileSync(file, 'utf8')
  const imports = new Map<string, Import>()
  const statements: Statement[] = []
  for (const piece of text.split(/^(?=\/\*\*|(?<!\*\/\n)(?:export|import|declare|interface|type)\b)/m)) {
    for (const [, names = '', path = ''] of piece.matchAll(/^import (?:type )?\{([^}]*)\} from ['"](\.[^'"]+)['"]/gm))
      for (const { local, name } of namesIn(names)) imports.set(local, { file: fileOf(file, path), name })
    if (!/^(import\b|export \{)/m.test(piece)) statements.push({ text: piece, names: declaredIn(piece) })
  }
  const byName = new Map(statements.flatMap(statement => statement.names.map(name => [name, statement] as const)))
  return { statements, byName, imports, kept: new Set() }
}

function declaredIn(text: string): string[] {
  const declaration = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|function|const|let|enum) (\w+)/gm
  return [...text.matchAll(declaration)].flatMap(([, name]) => (name ? [name] : []))
}

function reexportsIn(file: string): Import[] {
  const exported = readFileSync(file, 'utf8').matchAll(/^export (?:type )?\{([^}]*)\} from ['"](\.[^'"]+)['"]/gm)
  return [...exported].flatMap(([, names = '', path = '']) =>
    namesIn(names).map(({ name }) => ({ file: fileOf(file, path), name })),
  )
}

/** The names in a list such as `type A, B as C`. */
function namesIn(list: string): { readonly local: string; readonly name: string }[] {
  return list.split(',').flatMap(item => {
    const [name, local = name] = item
      .trim()
      .replace(/^type /, '')
      .split(' as ')
    return name && local ? [{ local, name }] : []
  })
}

function fileOf(importer: string, path: string): string {
  return resolve(dirname(importer), path.replace(/\.[jt]s$/, '.d.ts'))
}

/** The kept statements, after the imports that they still use. */
function print(file: string, { kept }: Declarations): string {
  const body = [...kept].map(({ text }) => text)
  const isNamed = (name: string) => body.some(text => new RegExp(`\\b${name}\\b`).test(text))
  const head = [
    ...readFileSync(file, 'utf8').matchAll(/^import (type )?\{([^}]*)\} from (['"][^'"]+['"]);$/gm),
  ].flatMap(([, kind = '', names = '', source]) => {
    const used = names.split(',').filter(item => namesIn(item).some(({ local }) => isNamed(local)))
    return used.length > 0 ? [`import ${kind}{${used.join(',')}} from ${source};\n`] : []
  })
  return `${head.join('')}${body.join('')}export {};\n`
}
