// Makes docs/settings.md from the rows of src/config/settings.ts: `npm run docs`. A test fails when the two differ.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Row, TOPIC_NAMES, TOPICS, type Topic } from '../src/config/settings.ts'
import { en } from '../src/pages/words/en.ts'

export const SETTINGS_PAGE = new URL('../docs/settings.md', import.meta.url)

export function settingsPage(): string {
  const topics = TOPIC_NAMES.map(topicPart)
  return `# Settings

Set them in the environment or in \`.env\` in the working directory. The environment wins where it is not empty.

\`\`\`sh
BASE_URL=https://app.example.com
UPSTREAM=http://127.0.0.1:8080
\`\`\`

- A value in \`.env\` ends at the end of its line, or at a \`#\` after a space: \`CLIENT_SECRET=ab#cd\` is one value. Quotes around a value are removed.
- An invalid value stops the start with one sentence that names the setting, the expected value and an example. A likely misspelt name gets a warning.
- ↻: changes in \`.env\` apply [without a restart](configuring.md#what-changes-without-a-restart).

\`npm run docs\` writes this page from \`src/config/settings.ts\`.

${topics.join('\n')}`
}

function topicPart(topic: Topic): string {
  const rows = Object.entries(TOPICS[topic]).map(([name, row]) => settingRow(name, row))
  return `## ${en[`topic.${topic}`]}

| name | default | expected | meaning |
|---|---|---|---|
${rows.join('\n')}
`
}

function settingRow(name: string, row: Row<unknown>): string {
  const standard = row.defaultNote ?? (row.default === undefined ? 'none' : `\`${row.default}\``)
  const isKnown = row.example === String(row.default) || row.expected.split(/[ ,]+/).includes(row.example)
  const example = isKnown ? '' : `, e.g. \`${row.example}\``
  return `| \`${name}\` | ${standard} | ${row.expected}${example} | ${row.reloads ? '↻ ' : ''}${row.sentence} |`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(SETTINGS_PAGE, settingsPage())
