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
import { exitCodesOf, optionForm } from '../src/cli/usage.ts'

export const COMMANDS_PAGE = new URL('../docs/commands.md', import.meta.url)

type Pair = readonly [name: string, sentence: string]

export function commandsPage(): string {
  const overview: Pair[] = [
    ['`menshen`', `${START.sentence}; \`npm start\` does the same`],
    ...COMMAND_NAMES.map((name): Pair => [`[\`menshen ${name}\`](#menshen-${name})`, COMMANDS[name].sentence]),
    ...GLOBAL_OPTIONS.map(({ names, sentence }): Pair => [names.map(name => `\`${name}\``).join(', '), sentence]),
  ]
  return `# Commands

\`npx menshen\` where the package is installed, and in a clone after \`npm ci\`. Settings come from the environment, from \`.env\` and
from \`menshen.config.ts\` in the folder where it is called: [settings](settings.md). What a command has to say goes to stdout, and
why it could not to stderr, one sentence a line. A command or an option that there is not names the nearest one. This page is made from
\`src/cli/command-table.ts\` by \`npm run docs\`, and so is \`--help\`.

${table('command', 'does', overview)}

## Exit codes
${table('code', 'means', Object.entries(EXIT_CODES))}

A start ends with 1 if ${START.fails}; a second signal while it is ending makes it end at once, with 1 too.

## The log
A start writes its [events](events.md) to stdout: with \`LOG_FORMAT=auto\` as lines for people on a terminal and as lines of JSON everywhere
else; \`pretty\` and \`json\` are the same everywhere. No name, path or address in them can move the cursor or forge a line. Colours are
for terminals: \`NO_COLOR=1\` and \`TERM=dumb\` turn them off, \`FORCE_COLOR=1\` has them in a pipe too.

${COMMAND_NAMES.map(commandPart).join('\n')}`
}

function commandPart(name: CommandName): string {
  const { sentence, usage, details, options, examples, fails }: CommandRow = COMMANDS[name]
  const rows = Object.entries(options).map(([option, row]): Pair => [`\`${optionForm(option, row)}\``, row.sentence])
  const parts = [
    `## menshen ${name}\n${capital(sentence)}.${details === undefined ? '' : ` ${details}`}`,
    `\`\`\`sh\n${usage.join('\n')}\n\`\`\``,
    ...(rows.length > 0 ? [table('option', 'means', rows)] : []),
    `\`\`\`sh\n${examples.map(([line, meaning]) => `${line}   # ${meaning}`).join('\n')}\n\`\`\``,
    table('exit code', 'means', exitCodesOf(fails)),
  ]
  return `${parts.join('\n\n')}\n`
}

function table(left: string, right: string, pairs: readonly Pair[]): string {
  const cell = (text: string) => text.replaceAll('|', '\\|')
  const rows = pairs.map(([name, sentence]) => `| ${cell(name)} | ${cell(sentence)} |`)
  return [`| ${left} | ${right} |`, '|---|---|', ...rows].join('\n')
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(COMMANDS_PAGE, commandsPage())
