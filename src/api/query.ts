// The parameters of the API. A parameter that is unknown, repeated, empty, too long or invalid is refused: a misspelt `user` must not
// end the sessions of other users, or list those of all.

import { z } from 'zod'
import { closestName } from '../config/suggestions.ts'
import { AUDITED } from '../observe/audit-event.ts'
import { type Phrase, phrase } from '../text/text.ts'
import { MAX_CURSOR_LENGTH } from './cursors.ts'
import { type ApiProblem, apiProblem } from './problem.ts'

interface ParameterRow<Value> {
  readonly description: string
  /** For the OpenAPI document. */
  readonly schema: object
  readonly expected: Phrase
  /** `undefined` if it is invalid. */
  read(text: string): Value | undefined
}

export const DEFAULT_LIMIT = 50
export const MAX_LIMIT = 200
const MAX_NAME_LENGTH = 500
/** For the name of an unknown parameter. */
const MAX_SHOWN_LENGTH = 40

const time = z.union([z.iso.datetime({ offset: true }), z.iso.date()])

export const PARAMETERS = {
  user: {
    description:
      'The username, exactly as the provider sends it. With several providers: the users of that name at all of them.',
    schema: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH },
    expected: phrase('api.expected_user', { most: MAX_NAME_LENGTH }),
    // Bytes that are not UTF-8 become U+FFFD, which would be the name of another user.
    read: text => (text.length <= MAX_NAME_LENGTH && !text.includes('\uFFFD') ? text : undefined),
  } as ParameterRow<string>,
  limit: {
    description: 'How many there are on a page at most. A page can be shorter without being the last.',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
    expected: phrase('api.expected_limit', { most: MAX_LIMIT }),
    read: text => (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= MAX_LIMIT ? Number(text) : undefined),
  } as ParameterRow<number>,
  after: {
    description: 'The `next` of the page before, with the same other parameters.',
    schema: { type: 'string', minLength: 1, maxLength: MAX_CURSOR_LENGTH },
    expected: phrase('api.expected_after'),
    read: text => (text.length <= MAX_CURSOR_LENGTH ? text : undefined),
  } as ParameterRow<string>,
  event: {
    description: 'The code of an event of the audit trail.',
    schema: { type: 'string', enum: AUDITED },
    expected: phrase('api.expected_event'),
    read: text => AUDITED.find(code => code === text),
  } as ParameterRow<string>,
  since: {
    description: 'Only events from then on: a time with its offset, or a day in UTC.',
    schema: {
      anyOf: [
        { type: 'string', format: 'date-time' },
        { type: 'string', format: 'date' },
      ],
    },
    expected: phrase('api.expected_since'),
    read: text => (time.safeParse(text).success ? Date.parse(text) : undefined),
  } as ParameterRow<number>,
}

export type ParameterName = keyof typeof PARAMETERS

type ValueOf<Row> = Row extends ParameterRow<infer Value> ? Value : never

export type Query = { readonly [Name in ParameterName]?: ValueOf<(typeof PARAMETERS)[Name]> }

interface Accepted {
  readonly parameters?: readonly ParameterName[]
  readonly required?: readonly ParameterName[]
}

export function readQuery(search: string, { parameters = [], required = [] }: Accepted): Query | ApiProblem {
  const given = new URLSearchParams(search)
  const accepted: readonly ParameterName[] = [...required, ...parameters]
  const values: Partial<Record<ParameterName, unknown>> = {}
  for (const key of new Set(given.keys())) {
    const name = accepted.find(each => each === key)
    if (!name) return unknownParameter(key, accepted)
    const texts = given.getAll(name)
    const { read, expected } = PARAMETERS[name]
    const value = texts.length === 1 && texts[0] ? read(texts[0]) : undefined
    if (value === undefined) return invalidParameter(name, name === 'event' ? expectedEvent(texts[0]) : expected)
    values[name] = value
  }
  const missing = required.find(name => values[name] === undefined)
  return missing ? invalidParameter(missing, PARAMETERS[missing].expected) : (values as Query)
}

export function invalidParameter(name: ParameterName, expected = PARAMETERS[name].expected): ApiProblem {
  return apiProblem('bad_request', phrase('api.bad_parameter', { name, expected }))
}

function expectedEvent(given = ''): Phrase {
  const likely = closestName(given.slice(0, MAX_SHOWN_LENGTH), AUDITED)
  return likely === undefined ? PARAMETERS.event.expected : phrase('api.expected_event_likely', { likely })
}

function unknownParameter(key: string, accepted: readonly ParameterName[]): ApiProblem {
  const name = key.slice(0, MAX_SHOWN_LENGTH)
  return apiProblem(
    'bad_request',
    accepted.length === 0
      ? phrase('api.no_parameters', { name })
      : phrase('api.unknown_parameter', { name, known: accepted }),
  )
}
