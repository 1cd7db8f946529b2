// What can be imported, read from its declarations: each export as it is declared, and what it is made of.
import { join } from 'node:path'
import { isIdentifier, isTypeAliasDeclaration, type Node, SyntaxKind } from 'typescript/unstable/ast'
import { type Checker, NodeBuilderFlags, type Project, type Symbol as Sym, SymbolFlags } from 'typescript/unstable/sync'

/** What `exports` of package.json leads to: `menshen`, and the file that its types are in. */
export interface Door {
  readonly name: string
  readonly types: string
}

export interface Entry {
  readonly name: string
  readonly comment: string
  /** Empty where an earlier one says it. */
  readonly code: string
}

export interface Surface {
  readonly doors: readonly { readonly name: string; readonly entries: readonly Entry[] }[]
  /** Not exported, but the exported ones are made of them. */
  readonly inner: readonly Entry[]
}

/** A longer one is a table, such as that of the settings: docs/settings.md has it. */
const LONGEST_VALUE = 2000
const DECLARED: readonly SyntaxKind[] = [
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
  SyntaxKind.ClassDeclaration,
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.EnumDeclaration,
  SyntaxKind.VariableDeclaration,
]

/** `folder` has the declarations. */
export function readSurface(doors: readonly Door[], project: Project, folder: string): Surface {
  const { checker, program } = project
  /** Symbols by id, with the name that they are known by. */
  const known = new Map<number, string>()
  const firstDoor = new Map<number, string>()
  const found: Sym[] = []

  function exportsOf({ types }: Door): { name: string; symbol: Sym }[] {
    const file = program.getSourceFile(join(folder, types))
    const module = file && checker.getSymbolAtLocation(file)
    if (!module) throw new Error(`${types} is no module`)
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

  /** Adds what the declarations mention and nobody exports. */
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

/** Made from something else, a name at a time: people want to see what comes out. */
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
