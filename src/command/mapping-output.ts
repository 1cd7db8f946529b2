// How the result of a trial sign-in looks on a terminal.
import type { Mapping } from '../observe/doctor/mapping.ts'
import { type OperatorLanguage, type Phrase, phrase, phraseIn } from '../phrases.ts'
import { terminalLines } from './terminal/terminal-lines.ts'

export function mappingLines(mapping: Mapping, language: OperatorLanguage): string {
  const { provider, came, fields, role, groups, problem, remedy, notes = [] } = mapping
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
    ...(remedy === undefined ? [] : [`→ ${said(remedy)}`]),
    ...notes.map(note => `! ${said(note.seen)} → ${said(note.remedy)}`),
  ]
  // The provider wrote much of it.
  return terminalLines(lines.map(line => line.replace(/[\r\n]+/g, ' ')).join('\n'))
}

/** The same for programs. */
export function mappingIn(mapping: Mapping, language: OperatorLanguage): object {
  const { problem, remedy, notes } = mapping
  const said = (given: Phrase) => phraseIn(language, given)
  return {
    ...mapping,
    ...(problem && { problem: said(problem) }),
    ...(remedy && { remedy: said(remedy) }),
    ...(notes && { notes: notes.map(note => ({ seen: said(note.seen), remedy: said(note.remedy) })) }),
  }
}

function filling({ source, place = '', value }: Mapping['fields'][number]): Phrase {
  if (source === undefined) return phrase('mapping_empty')
  const from = phrase('mapping_from', { place, source })
  return value === undefined ? from : phrase('mapping_value', { from, value })
}
