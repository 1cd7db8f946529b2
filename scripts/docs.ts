// `npm run docs`: writes what is generated from the code: pages, tables of pages, and lists of headers in the examples.
// A test fails when a file differs from what this makes of it.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { EXAMPLES, exampleWithLists } from '../examples/claims.ts'
import {
  COMMAND_NAMES,
  COMMANDS,
  type CommandName,
  type CommandRow,
  EXIT_CODES,
  GLOBAL_OPTIONS,
  START,
} from '../src/cli/commands/table.ts'
import { optionForm } from '../src/cli/usage.ts'
import { type Row, SETTINGS, TOPIC_NAMES, TOPICS, type Topic } from '../src/config/settings.ts'
import { COMMON_FIELDS, EVENTS, type EventRow } from '../src/events.ts'
import { METRICS } from '../src/observe/metrics.ts'
import type { MetricRow } from '../src/observe/series.ts'
import { optionName, SECRET_SETTINGS, SPECIAL_SETTINGS } from '../src/setting-options.ts'
import { en } from '../src/text/en.ts'
import type { Key } from '../src/text/text.ts'
import { zhCN } from '../src/text/zh-CN.ts'
import { productionDependencies } from './dependencies.ts'
import { configSchema } from './schema.ts'

/** Each generated file, and how its text becomes the new one. `scripts/api.ts` makes test/package/api.md. */
export const GENERATED: Readonly<Record<string, (text: string) => string>> = {
  'docs/settings.md': settingsPage,
  'docs/commands.md': commandsPage,
  'docs/logging.md': withEvents,
  'docs/monitoring.md': withMetrics,
  'docs/customizing.md': withWords,
  'docs/releasing.md': withLicences,
  'src/setting-options.ts': withOptions,
  'menshen.schema.json': configSchema,
  ...Object.fromEntries(
    Object.keys(EXAMPLES).map(name => [`examples/${name}`, (text: string) => exampleWithLists(name, text)]),
  ),
}

/** The texts that operators change most. */
const OFTEN_CHANGED = [
  'app.name',
  'login.title',
  'login.use_account',
  'login.choose',
  'login.button',
  'login.hint',
  'login.missing',
  'login.signed_out_here',
  'home.title',
] as const satisfies readonly Key[]

/** `menshen help` needs no section: the overview says it all. */
const EXPLAINED = COMMAND_NAMES.filter(name => name !== 'help')

export function settingsPage(): string {
  const topics = TOPIC_NAMES.map(topicPart)
  return `# Settings

Set them in the environment or in \`.env\` in the working directory. The environment wins where it is not empty.

\`\`\`sh
BASE_URL=https://app.example.com
UPSTREAM=http://127.0.0.1:8080
\`\`\`

- A value in \`.env\` ends at the end of its line, or at a \`#\` after a space: \`CLIENT_SECRET=ab#cd\` is one value. Quotes around a value are removed. Any other line that is not a comment stops the start with its number.
- An invalid value stops the start with one sentence that names the setting, the expected value and an example. A likely misspelt name gets a warning.
- ↻: changes in \`.env\` apply [without a restart](configuring.md#what-changes-without-a-restart).

\`npm run docs\` writes this page from \`src/config/settings.ts\`.

${topics.join('\n')}`
}

function topicPart(topic: Topic): string {
  const rows = Object.entries(TOPICS[topic]).map(([name, row]) => settingRow(name, row))
  return `## ${en[`topic.${topic}`]}

${table(['name', 'default', 'expected', 'meaning'], rows)}`
}

function settingRow(name: string, row: Row<unknown>): string[] {
  const standard = row.defaultNote ?? (row.default === undefined ? 'none' : `\`${row.default}\``)
  const isKnown = row.example === String(row.default) || row.expected.split(/[ ,]+/).includes(row.example)
  const example = isKnown ? '' : `, e.g. \`${row.example}\``
  return [`\`${name}\``, standard, `${row.expected}${example}`, `${row.reloads ? '↻ ' : ''}${row.description}`]
}

/** Documentation comments for editors, in the interface of the options. */
function withOptions(script: string): string {
  const options = Object.entries<Row<unknown>>(SETTINGS)
    .filter(([name]) => !SPECIAL_SETTINGS.includes(name))
    .map(
      ([name, row]) =>
        `${optionComment(row)}  readonly ${optionName(name)}?: OptionValue<CheckedSettings['${name}']>${SECRET_SETTINGS.includes(name) ? ' | SecretReference' : ''}\n`,
    )
  const [head] = script.split('export interface SettingOptions')
  return `${head}export interface SettingOptions {\n${options.join('')}}\n`
}

/** The columns of a comment, without its indentation and star. */
const COMMENT_WIDTH = 115

export function optionComment({
  description,
  expected,
  example,
  defaultNote,
  default: standard,
}: Row<unknown>): string {
  const value = `Expected: ${expected}, for example \`${example}\`.`
  const initial = defaultNote ?? (standard === undefined ? 'none' : `\`${standard}\``)
  // Links lead to pages that lie beside docs/settings.md.
  const text = `${description} ${value} Default: ${initial}.`.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
  const lines = text.match(new RegExp(`.{1,${COMMENT_WIDTH}}(?: |$)`, 'g')) ?? []
  return `  /**\n${lines.map(line => `   * ${line.trimEnd()}\n`).join('')}   */\n`
}

function commandsPage(): string {
  const overview = [
    ['`menshen`', `${START.description}; \`npm start\` does the same`],
    ...EXPLAINED.map(name => [`[\`menshen ${name}\`](#menshen-${name})`, COMMANDS[name].description]),
    ['`menshen help`', COMMANDS.help.description],
    ...GLOBAL_OPTIONS.map(({ names, description }) => [names.map(name => `\`${name}\``).join(', '), description]),
  ]
  return `# Commands

Run \`npx menshen\` where the package is installed, or in a clone after \`npm ci\`. Commands read the environment, \`.env\` and the configuration file of
the working directory ([configuring](configuring.md)). Results go to stdout, errors to stderr.

${table(['command', 'does'], overview)}
## Exit codes
${table(['code', 'means'], Object.entries(EXIT_CODES))}
A start ends with 1 if ${START.fails}.
A second \`SIGTERM\` or \`SIGINT\`, more than a second after the first, stops Menshen immediately, also with 1.

\`NO_COLOR=1\` and \`TERM=dumb\` turn colours off, \`FORCE_COLOR=1\` turns them on in a pipe. \`npm run docs\` writes this page from
\`src/cli/commands/table.ts\`.

${EXPLAINED.map(commandPart).join('\n')}`
}

function commandPart(name: CommandName): string {
  const { usage, details, options, examples, fails }: CommandRow = COMMANDS[name]
  const rows = Object.entries(options).map(([option, row]) => [`\`${optionForm(option, row)}\``, row.description])
  const parts = [
    `## menshen ${name}${details === undefined ? '' : `\n${details}`}\n`,
    `\`\`\`sh\n${usage.join('\n')}\n\`\`\`\n`,
    ...(rows.length > 0 ? [table(['option', 'means'], rows)] : []),
    `\`\`\`sh\n${examples.map(([line, meaning]) => `${line}   # ${meaning}`).join('\n')}\n\`\`\`\n`,
    ...(fails === undefined ? [] : [`Exit code 1: ${fails}.\n`]),
  ]
  return parts.join('\n')
}

function withEvents(page: string): string {
  const fields = Object.entries(COMMON_FIELDS).map(([name, sentence]) => [`\`${name}\``, sentence])
  const events = Object.entries(EVENTS).map(eventRow)
  return withTable(withTable(page, ['field', 'means'], fields), ['event', 'level', 'means'], events)
}

function eventRow([code, { level, message, fields, audited }]: [string, EventRow]): string[] {
  const own = fields.map(field => `\`${field}\``).join(', ')
  return [`\`${code}\`${audited ? '*' : ''}`, level, own ? `${message} (${own})` : message]
}

function withMetrics(page: string): string {
  return withTable(page, ['metric', 'type', 'labels', 'meaning'], Object.entries(METRICS).map(metricRow))
}

function metricRow([name, { type, labels = {}, shownLabels, help }]: [string, MetricRow]): string[] {
  const shown = Object.entries(labels).map(([label, values]) => `\`${label}\`: ${values.join(', ')}`)
  return [`\`${name}\``, type, shownLabels ?? (shown.join('; ') || '–'), help]
}

function withWords(page: string): string {
  const rows = OFTEN_CHANGED.map(key => [`\`${key}\``, zhCN[key], en[key]])
  return withTable(page, ['name', 'zh-CN', 'en'], rows)
}

function withLicences(page: string): string {
  const byLicence = Map.groupBy(productionDependencies(), ({ licence }) => licence)
  const rows = [...byLicence]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([licence, packages]) => [licence, packages.map(({ name, version }) => `${name}@${version}`).join(', ')])
  return withTable(page, ['licence', 'packages'], rows)
}

/** Replaces a table of a page, which is found by its columns and ends with the first empty line. */
function withTable(page: string, columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const start = page.indexOf(table(columns, []))
  if (start < 0) throw new Error(`no table begins with ${tableRow(columns)}`)
  const end = page.indexOf('\n\n', start)
  return `${page.slice(0, start)}${table(columns, rows)}${end < 0 ? '' : page.slice(end + 1)}`
}

function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  return `${tableRow(columns)}|${'---|'.repeat(columns.length)}\n${rows.map(tableRow).join('')}`
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { apiPage } = await import('./api.ts')
  const generated: typeof GENERATED = { ...GENERATED, 'test/package/api.md': apiPage }
  for (const [path, generate] of Object.entries(generated)) {
    const file = new URL(`../${path}`, import.meta.url)
    writeFileSync(file, generate(readFileSync(file, 'utf8')))
  }
}
