// The JSON Schema of the configuration, for editors and for CI: generated from the schema that checks it, with the sentences that
// editors show for the types. `npm run docs` writes it to menshen.schema.json.
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { configShape } from '../src/config/file.ts'
import { FIELD_ROWS } from '../src/config/provider-fields.ts'

interface Schema {
  properties?: Record<string, Schema>
  description?: string
  [keyword: string]: unknown
}

/** Keyed by the name of the member. */
type Descriptions = ReadonlyMap<string, string | undefined>

const CONFIG_FOLDER = fileURLToPath(new URL('../src/config/', import.meta.url))

export function configSchema(): string {
  const { $schema, ...schema } = z.toJSONSchema(configShape, { io: 'input', unrepresentable: 'any' }) as Schema
  const sources = globSync('*.ts', { cwd: CONFIG_FOLDER }).map(name => readFileSync(CONFIG_FOLDER + name, 'utf8'))
  const described = [...interfacesIn(sources.join('\n')), providerDescriptions(sources.join('\n'))]
  describe(schema, described)
  const title = 'The configuration of Menshen'
  return `${JSON.stringify({ $schema, title, ...schema }, null, 2)}\n`
}

/** Gives each object the sentences of the interface that has the same keys. */
function describe(schema: unknown, interfaces: readonly Descriptions[]): void {
  if (typeof schema !== 'object' || schema === null) return
  const { properties } = schema as Schema
  if (properties) {
    const names = Object.keys(properties)
    const found = interfaces.find(one => one.size === names.length && names.every(name => one.has(name)))
    for (const [name, property] of Object.entries(properties)) {
      const description = found?.get(name)
      if (description !== undefined) property.description ??= description
    }
  }
  for (const part of Object.values(schema)) describe(part, interfaces)
}

const INTERFACE = /^export interface (?<name>\w+)(?:<[^{]*?>)?(?: extends (?<base>\w+))? \{\n(?<body>[\s\S]*?)\n\}$/gm
const MEMBER = /(?:^ {2}\/\*\*(?<comment>(?:(?!\*\/)[\s\S])*)\*\/\n)?^ {2}readonly (?<name>[\w$]+)\??:/gm

function interfacesIn(source: string): Descriptions[] {
  const members = (body: string) =>
    [...body.matchAll(MEMBER)].map(({ groups }) => [groups?.name ?? '', sentenceOf(groups?.comment)] as const)
  const found = [...source.matchAll(INTERFACE)].map(({ groups }) => ({
    name: groups?.name,
    base: groups?.base,
    members: members(groups?.body ?? ''),
  }))
  return found.map(
    ({ base, members }) => new Map([...members, ...(found.find(({ name }) => name === base)?.members ?? [])]),
  )
}

/** The sentence of the setting that fills the field, or the comment before the row. */
function providerDescriptions(source: string): Descriptions {
  const comments = new Map(
    [...source.matchAll(/^ {2}\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n {2}(\w+): (?:field|group|request)\(/gm)].map(
      ([, comment, name = '']) => [name, sentenceOf(comment)] as const,
    ),
  )
  return new Map(
    FIELD_ROWS.filter(([, { schema }]) => schema).map(([name, { setting }]) => [
      name,
      sentenceOf(setting?.description) ?? comments.get(name),
    ]),
  )
}

/** On one line, and without the addresses of links. */
function sentenceOf(comment: string | undefined): string | undefined {
  return comment
    ?.replaceAll(/\n\s*\*/g, '\n')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
