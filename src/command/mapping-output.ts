// How the result of a trial sign-in looks on a terminal.
import type { Mapping } from '../observe/doctor/mapping.ts'
import { type OperatorLanguage, type Phrase, phrase, phraseIn } from '../phrases.ts'
import { terminalLines } from './terminal/terminal-lines.ts'

export function mappingLines(mapping: Mapping, language: OperatorLanguage): string {
  const { provider, came, fields, role, groups, problem } = mapping
  const said = (given: Phrase) => phraseIn(language, given)
  const lines = [
    ...(came.length > 0 ? [said(phrase('mapping_came', { provider }))] : []),
    ...came.map(({ source, name, type, value }) => `  ${source.padEnd(12)} ${name}: ${value ?? type}`),
    ...(fields.length > 0 ? [said(phrase('mapping_filled'))] : []),
    ...fields.map(field => `  ${field.field.padEnd(12)} ${said(filling(field))}`),
    ...(role === undefined
      ? []
      : [said(phrase('mapping_role', { role, groups: groups?.join(', ') || phrase('mapping_none') }))]),
    said(problem === undefined ? phrase('mapping_admitted') : phrase('mapping_refused', { problem })),
  ]
  // The provider wrote much of it.
  return terminalLines(lines.map(line => line.replace(/[\r\n]+/g, ' ')).join('\n'))
}

function filling({ source, place = '', value }: Mapping['fields'][number]): Phrase {
  if (source === undefined) return phrase('mapping_empty')
  const from = phrase('mapping_from', { place, source })
  return value === undefined ? from : phrase('mapping_value', { from, value })
}
