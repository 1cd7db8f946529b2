// How the result of a trial sign-in looks on a terminal.
import type { Mapping } from '../observe/doctor/mapping.ts'
import { terminalLines } from './terminal/terminal-lines.ts'

export function mappingLines(mapping: Mapping): string {
  const { provider, came, fields, role, groups, problem, remedy, notes = [] } = mapping
  const lines = [
    ...(came.length > 0 ? [`What came from the provider (${provider}):`] : []),
    ...came.map(({ source, name, type, value }) => `  ${source.padEnd(12)} ${name}: ${value ?? type}`),
    ...(fields.length > 0 ? ['How our fields were filled:'] : []),
    ...fields.map(fieldLine),
    ...(role === undefined ? [] : [`The role is ${role}; the groups are ${groups?.join(', ') || 'none'}.`]),
    ...(problem === undefined ? ['This user would be signed in.'] : [`Nobody would be signed in: ${problem}.`]),
    ...(remedy === undefined ? [] : [`→ ${remedy}`]),
    ...notes.map(note => `! ${note.seen} → ${note.remedy}`),
  ]
  // The provider wrote much of it.
  return terminalLines(lines.map(line => line.replace(/[\r\n]+/g, ' ')).join('\n'))
}

function fieldLine({ field, source, place, value }: Mapping['fields'][number]): string {
  const name = field.padEnd(12)
  if (source === undefined) return `  ${name} stays empty`
  return `  ${name} from ${place} of ${source}${value === undefined ? '' : `: ${value}`}`
}
