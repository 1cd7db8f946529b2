// Makes docs/events.md from the rows of src/events.ts: `npm run docs`. A test fails when the two differ.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { COMMON_FIELDS, EVENTS, type EventRow } from '../src/events.ts'

export const EVENTS_PAGE = new URL('../docs/events.md', import.meta.url)

export function eventsPage(): string {
  const fields = Object.entries(COMMON_FIELDS).map(([name, sentence]) => `| \`${name}\` | ${sentence} |`)
  const events = Object.entries(EVENTS).map(([code, row]) => eventRow(code, row))
  return `# Events

Everything that Menshen tells about itself is one of these events. The log on stdout has one line of JSON for each: \`time\`,
\`level\`, \`event\` (the code), \`msg\` (the sentence, for people), and the fields below; on a terminal, or with
\`LOG_FORMAT=pretty\`, the same in a line for people. Decide by the code; sentences may change. No line ever has a ticket, a code, a token or a query in it. This page is made from \`src/events.ts\` by \`npm run docs\`.

## Fields of any event
Each where it is known:

| field | means |
|---|---|
${fields.join('\n')}

## Repeats
The same event from the same \`address\` for the same \`user\` is written ten times a minute. What comes in the rest of that
minute becomes one line with the event, the address, the user and its \`count\`, when the minute is over or the process ends.
Where no user is known, the \`sub\` or the \`session\` takes their place. \`request\` is never thinned, and neither is the audit trail, except for sign-ins that fail ([audit.md](audit.md)).

## The access log
With \`ACCESS_LOG=true\` every request is one line, \`request\`, when it has ended; a socket or a stream when it is closed.
\`path\` is without its query, and empty where it could not be read; \`status\` is 499 if the client left before anything was
answered; \`bytes\` are what was written to the client's connection, the head of the answer included; \`ms\` are milliseconds from the arrival
of the request to its end; \`upstream\` is the application that it was forwarded to.

## All events
| event | level | means | fields of its own | audited |
|---|---|---|---|---|
${events.join('\n')}
`
}

function eventRow(code: string, { level, sentence, fields, audited }: EventRow): string {
  const own = fields.map(field => `\`${field}\``).join(', ')
  return `| \`${code}\` | ${level} | ${sentence} | ${own} | ${audited ? 'yes' : ''} |`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(EVENTS_PAGE, eventsPage())
