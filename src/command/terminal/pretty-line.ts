// A line of the log for people: the time here, how bad it is, the sentence, and dimmed what else is known. Whatever others
// have written in it moves no cursor, changes no colour and begins no line.
import { z } from 'zod'
import { safeJson, safeText } from '../../observe/audit/safe-text.ts'
import type { Colour, Paint } from './colours.ts'
import { word } from './plain-line.ts'

const lineShape = z.looseObject({ time: z.string(), level: z.string(), msg: z.string(), event: z.string().optional() })
const COLOURS: Readonly<Record<string, Colour>> = { info: 'green', warn: 'yellow', error: 'red', fatal: 'red' }
const LEVEL_WIDTH = 5

/** `json` is one line as pino writes it. */
export function prettyLine(json: string, paint: Paint): string {
  const { data } = lineShape.safeParse(parsed(json))
  if (!data) return `${safeText(json.trimEnd())}\n`
  const { time, level, msg, event, err, ...facts } = data
  const known = [...(event === undefined ? [] : [safeText(event)]), ...Object.entries(facts).map(factOf)]
  const head = `${paint('dim', localTime(time))} ${paint(COLOURS[level] ?? 'dim', safeText(level).padEnd(LEVEL_WIDTH))}`
  const tail = known.length > 0 ? `  ${paint('dim', known.join(' '))}` : ''
  return `${head} ${safeText(msg)}${tail}\n${errorLines(err, paint)}`
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function factOf([name, value]: [string, unknown]): string {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return `${safeText(name)}=${isPlain ? word(value) : safeJson({ value }).slice('{"value":'.length, -1)}`
}

/** The stack has lines of its own, each of them below the first. */
function errorLines(err: unknown, paint: Paint): string {
  if (err === undefined) return ''
  const { stack, message } = Object(err) as { stack?: unknown; message?: unknown }
  const lines = String(stack ?? message ?? safeJson({ err })).split('\n')
  return lines.map(line => `    ${paint('dim', safeText(line.trim()))}\n`).join('')
}

/** By the clock on the wall of whoever looks. */
function localTime(time: string): string {
  const at = new Date(time)
  const two = (number: number) => String(number).padStart(2, '0')
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`
}
