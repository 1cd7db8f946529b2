// Makes docs/commands.md from the rows of src/cli/command-table.ts: `npm run docs`. A test fails when the two differ.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  COMMAND_NAMES,
  COMMANDS,
  type CommandName,
  type CommandRow,
  EXIT_CODES,
  GLOBAL_OPTIONS,
  START,
} from '../src/cli/command-table.ts'
import { optionForm } from '../src/cli/usage.ts'

export const COMMANDS_PAGE = new URL('../docs/commands.md', import.meta.url)

/** `menshen help` needs no section: the overview says it all. */
const EXPLAINED = COMMAND_NAMES.filter(name => name !== 'help')

type Pair = readonly [name: string, sentence: string]

export function commandsPage(): string {
  const overview: Pair[] = [
    ['`menshen`', `${START.sentence}; \`npm start\` does the same`],
    ...EXPLAINED.map((name): Pair => [`[\`menshen ${name}\`](#menshen-${name})`, COMMANDS[name].sentence]),
    ['`menshen help`', COMMANDS.help.sentence],
    ...GLOBAL_OPTIONS.map(({ names, sentence }): Pair => [names.map(name => `\`${name}\``).join(', '), sentence]),
  ]
  return `# Commands

Run \`npx menshen\` where the package is installed, or in a clone after \`npm ci\`. Commands read the environment, \`.env\` and \`menshen.config.ts\` of
the working directory ([configuring](configuring.md)). Results go to stdout, errors to stderr.

${table('command', 'does', overview)}

## Exit codes
${table('code', 'means', Object.entries(EXIT_CODES))}

A start ends with 1 if ${START.fails}; a second signal while it is ending makes it end at once, with 1 too.

\`NO_COLOR=1\` and \`TERM=dumb\` turn colours off, \`FORCE_COLOR=1\` turns them on in a pipe. \`npm run docs\` writes this page from
\`src/cli/command-table.ts\`.

${EXPLAINED.map(commandPart).join('\n')}`
}

function commandPart(name: CommandName): string {
  const { usage, details, options, examples, fails }: CommandRow = COMMANDS[name]
  const rows = Object.entries(options).map(([option, row]): Pair => [`\`${optionForm(option, row)}\``, row.sentence])
  const parts = [
    `## menshen ${name}${details === undefined ? '' : `\n${details}`}`,
    `\`\`\`sh\n${usage.join('\n')}\n\`\`\``,
    ...(rows.length > 0 ? [table('option', 'means', rows)] : []),
    `\`\`\`sh\n${examples.map(([line, meaning]) => `${line}   # ${meaning}`).join('\n')}\n\`\`\``,
    ...(fails === undefined ? [] : [`Exit code 1: ${fails}.`]),
  ]
  return `${parts.join('\n\n')}\n`
}

function table(left: string, right: string, pairs: readonly Pair[]): string {
  const cell = (text: string) => text.replaceAll('|', '\\|')
  const rows = pairs.map(([name, sentence]) => `| ${cell(name)} | ${cell(sentence)} |`)
  return [`| ${left} | ${right} |`, '|---|---|', ...rows].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(COMMANDS_PAGE, commandsPage())
