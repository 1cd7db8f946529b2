// Writes test/package/api.md, part of `npm run docs`: every export as it is declared, and the types that it uses. A test fails
// when the page differs, so a change of the library's surface shows in the diff.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isIdentifier, isTypeAliasDeclaration, type Node, SyntaxKind } from 'typescript/unstable/ast'
import {
  API,
  type Checker,
  NodeBuilderFlags,
  type Project,
  type Symbol as Sym,
  SymbolFlags,
} from 'typescript/unstable/sync'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TSC = join(ROOT, 'node_modules/.bin/tsc')

/** An entry of `exports` in package.json, such as `menshen`, and the file with its types. */
interface Door {
  readonly name: string
  readonly types: string
}

interface Entry {
  readonly name: string
  readonly comment: string
  /** Empty if an earlier entry has it. */
  readonly code: string
}

interface Surface {
  readonly doors: readonly { readonly name: string; readonly entries: readonly Entry[] }[]
  /** Not exported, but used by the exported ones. */
  readonly inner: readonly Entry[]
}

/** A longer value is a table, such as that of the settings, which docs/settings.md has. */
const LONGEST_VALUE = 2000
const DECLARED: readonly SyntaxKind[] = [
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
  SyntaxKind.ClassDeclaration,
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.EnumDeclaration,
  SyntaxKind.VariableDeclaration,
]

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

/** Without a type check, which `npm test` makes, and with one checker, because several would each infer the same types. */
function emitTypes(folder: string): void {
  for (const [config, out] of [
    ['tsconfig.build.json', 'dist'],
    ['tsconfig.browser.json', 'dist/browser'],
  ] as const) {
    const options = ['--emitDeclarationOnly', '--noCheck', '--checkers', '1', '--outDir', join(folder, out)]
    const args = [TSC, '-p', config, ...options]
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
    if (status !== 0) throw new Error(stdout)
  }
}

function page({ doors, inner }: Surface): string {
  const chapters = doors.map(({ name, entries }) => `## ${name}\n\n${entries.map(entry).join('\n')}`)
  return `# API reference

Every export with its types, written by \`npm run docs\`. [library.md](../../docs/library.md) explains how to use it.

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

/** `folder` has the declarations. */
function readSurface(doors: readonly Door[], project: Project, folder: string): Surface {
  const { checker, program } = project
  /** Symbols by id, with the name that they are known by. */
  const known = new Map<number, string>()
  const firstDoor = new Map<number, string>()
  const found: Sym[] = []

  function exportsOf({ types }: Door): { name: string; symbol: Sym }[] {
    const file = program.getSourceFile(join(folder, types))
    const module = file && checker.getSymbolAtLocation(file)
    if (!module) throw new Error(`${types} is not a module`)
    const exported = checker.getExportsOfModule(module).map(symbol => ({ name: symbol.name, symbol: original(symbol) }))
    return exported.sort((one, other) => Number(isType(one.symbol)) - Number(isType(other.symbol)))
  }

  function original(symbol: Sym): Sym {
    return symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  }

  function declarationsOf(symbol: Sym): Node[] {
    return symbol.declarations.flatMap(handle => {
      const isOurs = handle.path.startsWith(folder) && DECLARED.includes(handle.kind)
      const node = isOurs ? handle.resolve(project) : undefined
      return node && isAtTop(node) ? [node] : []
    })
  }

  /** Adds what the declarations mention and no entry exports. */
  function collectInner(symbol: Sym): void {
    const names = declarationsOf(symbol)
      .filter(node => !isComputed(node))
      .flatMap(identifiersIn)
    for (const mentioned of checker.getSymbolAtLocation(names)) {
      if (!mentioned) continue
      const target = original(mentioned)
      if (known.has(target.id) || declarationsOf(target).length === 0) continue
      known.set(target.id, target.name)
      found.push(target)
      collectInner(target)
    }
  }

  function entryOf(name: string, symbol: Sym): Entry {
    const codes = declarationsOf(symbol).map(node =>
      isComputed(node) ? computed(symbol, checker) : tidy(statementOf(node).getText()),
    )
    return { name, comment: symbol.getDocumentationComment(checker), code: codes.join('\n') }
  }

  const exported = doors.map(door => ({ door, symbols: exportsOf(door) }))
  for (const { door, symbols } of exported)
    for (const { name, symbol } of symbols) {
      if (!known.has(symbol.id)) firstDoor.set(symbol.id, door.name)
      known.set(symbol.id, name)
    }
  for (const { symbols } of exported) for (const { symbol } of symbols) collectInner(symbol)

  const renamed = [...known].flatMap(([id, name]) => {
    const symbol = exported.flatMap(({ symbols }) => symbols).find(one => one.symbol.id === id)?.symbol
    return symbol && symbol.name !== name ? [[symbol.name, name] as const] : []
  })
  const withNames = ({ name, comment, code }: Entry): Entry => ({
    name,
    comment,
    code: renamed.reduce((text, [inner, outer]) => text.replaceAll(new RegExp(`\\b${inner}\\b`, 'g'), outer), code),
  })
  return {
    doors: exported.map(({ door, symbols }) => ({
      name: door.name,
      entries: symbols.map(({ name, symbol }) => {
        const first = firstDoor.get(symbol.id)
        return first === door.name
          ? withNames(entryOf(name, symbol))
          : { name, comment: `As in \`${first}\`.`, code: '' }
      }),
    })),
    inner: found
      .map(symbol => withNames(entryOf(symbol.name, symbol)))
      .filter(({ code }) => !code.startsWith('const ') || code.length <= LONGEST_VALUE)
      .sort((one, other) => (one.name < other.name ? -1 : 1)),
  }
}

function isType({ flags }: Sym): boolean {
  return (flags & SymbolFlags.Value) === 0
}

/** A declaration of the file itself, and not of a member, a parameter or a type's parameter. */
function isAtTop(node: Node): boolean {
  return statementOf(node).parent?.kind === SyntaxKind.SourceFile
}

function statementOf(node: Node): Node {
  return node.kind === SyntaxKind.VariableDeclaration ? (node.parent?.parent ?? node) : node
}

function identifiersIn(node: Node): Node[] {
  const found: Node[] = isIdentifier(node) ? [node] : []
  node.forEachChild(child => {
    found.push(...identifiersIn(child))
    return undefined
  })
  return found
}

/** A mapped type: readers want to see its result. */
function isComputed(node: Node): boolean {
  return isTypeAliasDeclaration(node) && !node.typeParameters && node.type.kind === SyntaxKind.MappedType
}

function computed(symbol: Sym, checker: Checker): string {
  const lines = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).map(property => {
    const type = checker.getTypeOfSymbol(property)
    const text = type ? checker.typeToString(type, undefined, NodeBuilderFlags.NoTruncation) : 'unknown'
    const isOptional = (property.flags & SymbolFlags.Optional) !== 0
    return isOptional ? `  ${property.name}?: ${text.replace(/ \| undefined$/, '')}` : `  ${property.name}: ${text}`
  })
  return `type ${symbol.name} = {\n${lines.join('\n')}\n}`
}

/** Two spaces, no semicolons, and nothing that every line would have. */
function tidy(text: string): string {
  return text
    .replace(/^(export )?(declare )?/, '')
    .replaceAll(/^( {4})+/gm, spaces => ' '.repeat(spaces.length / 2))
    .replaceAll(/;$/gm, '')
}
