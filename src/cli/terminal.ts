// Output on a terminal: colours, log lines for people, and text that cannot move the cursor.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isatty } from 'node:tty'
import { styleText } from 'node:util'
import { type DestinationStream, type Logger, pino } from 'pino'
import { z } from 'zod'
import type { Environment, Settings } from '../config/settings.ts'
import { type OperatorLanguage, type Phrase, phraseIn } from '../text/text.ts'
import { safeJson, safeText, withoutControls } from '../util/safe-text.ts'

export type Colour = 'red' | 'yellow' | 'green' | 'dim' | 'bold'
export type Paint = (colour: Colour, text: string) => string

/** FORCE_COLOR wins over NO_COLOR, as it does in Node itself. Empty, NO_COLOR means nothing (no-color.org). */
export function wantsColours({ FORCE_COLOR, NO_COLOR, TERM }: Environment, isTerminal: boolean): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  return isTerminal && !NO_COLOR && TERM !== 'dumb'
}

export function createPaint(colours: boolean): Paint {
  return colours ? (colour, text) => styleText(colour, text, { validateStream: false }) : (_colour, text) => text
}

// The log of a start on stdout: lines for people or lines of JSON, the same from every worker.

const STDOUT = 1

export type LogSettings = Pick<Settings, 'LOG_LEVEL' | 'LOG_FORMAT'>

/** Whether people read the log. Workers have the stdout of the first process. */
export function isPretty({ LOG_FORMAT }: LogSettings, isTerminal = isatty(STDOUT)): boolean {
  return LOG_FORMAT === 'pretty' || (LOG_FORMAT === 'auto' && isTerminal)
}

/** `worker` is the number of this process if there are several. */
export function openLog(settings: LogSettings, environment: Environment, worker?: number): Logger {
  const isTerminal = isatty(STDOUT)
  if (!isPretty(settings, isTerminal)) return createLog(settings, jsonTo(pino.destination(STDOUT)), worker)
  // Synchronous, so that lines keep their order with other output.
  const stdout = pino.destination({ dest: STDOUT, sync: true })
  return createLog(settings, prettyTo(stdout, wantsColours(environment, isTerminal)), worker)
}

export function createLog(
  { LOG_LEVEL }: Pick<LogSettings, 'LOG_LEVEL'>,
  destination: DestinationStream,
  worker?: number,
): Logger {
  const options = {
    level: LOG_LEVEL,
    base: worker === undefined ? null : { worker },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  }
  return pino(options, destination)
}

export function prettyTo(stdout: DestinationStream, colours: boolean): DestinationStream {
  const paint = createPaint(colours)
  return { write: line => stdout.write(prettyLine(line, paint)) }
}

/** JSON leaves some characters unescaped that a terminal obeys, and a log file may be shown on a terminal. */
export function jsonTo(stdout: DestinationStream): DestinationStream {
  return { write: line => stdout.write(withoutControls(line)) }
}

// One line for people: a time, a few words in columns, and the other fields as name=value.

type FieldValue = string | number | boolean | undefined

export function plainLine(
  time: number | undefined,
  words: readonly string[],
  fields: Readonly<Record<string, FieldValue>>,
  paint: Paint,
): string {
  const others = Object.entries(fields).flatMap(([name, fact]) => (fact === undefined ? [] : `${name}=${word(fact)}`))
  const at = time === undefined ? '-' : new Date(time).toISOString()
  const known = others.length > 0 ? ` ${paint('dim', others.join(' '))}` : ''
  return `${paint('dim', at)} ${words.join(' ')}${known}\n`
}

/** In quotes if it could be taken for several words. */
export function word(value: string | number | boolean): string {
  const text = safeText(String(value))
  return /^[^\s"=]+$/u.test(text) ? text : JSON.stringify(text)
}

// A line of the log for people: the local time, the level, the message, and the other fields dimmed. Text from others in it
// cannot move the cursor, change a colour or begin a line.

const lineShape = z.looseObject({ time: z.string(), level: z.string(), msg: z.string(), event: z.string().optional() })
const COLOURS: Readonly<Record<string, Colour>> = { info: 'green', warn: 'yellow', error: 'red', fatal: 'red' }
const LEVEL_WIDTH = 5

/** `json` is one line from pino. */
export function prettyLine(json: string, paint: Paint): string {
  const { data } = lineShape.safeParse(parsed(json))
  if (!data) return `${safeText(json.trimEnd())}\n`
  const { time, level, msg, event, err, ...fields } = data
  const known = [...(event === undefined ? [] : [safeText(event)]), ...Object.entries(fields).map(formatField)]
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

function formatField([name, value]: [string, unknown]): string {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return `${safeText(name)}=${isPlain ? word(value) : safeJson({ value }).slice('{"value":'.length, -1)}`
}

/** The stack, on lines below the first. */
function errorLines(err: unknown, paint: Paint): string {
  if (err === undefined) return ''
  const { stack, message } = Object(err) as { stack?: unknown; message?: unknown }
  const lines = String(stack ?? message ?? safeJson({ err })).split('\n')
  return lines.map(line => `    ${paint('dim', safeText(line.trim()))}\n`).join('')
}

/** In the local time zone. */
function localTime(time: string): string {
  const at = new Date(time)
  const two = (number: number) => String(number).padStart(2, '0')
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`
}

// Writes the output of a command to stdout, until the reader closes it. A failure to write is reported once: see main.ts.

/** Line by line as they come, or all in one piece. Resolves when everything is written or the reader is gone. */
export async function print(lines: AsyncIterable<string> | Iterable<string>): Promise<void> {
  let failure: unknown
  const noteFailure = (error: unknown) => {
    failure = error
  }
  process.stdout.once('error', noteFailure)
  try {
    await pipeline(Readable.from(lines), process.stdout, { end: false })
  } catch (error) {
    if (error !== failure) throw error
  } finally {
    process.stdout.off('error', noteFailure)
  }
}

// Messages of a command, in the reader's language.

export interface Printer {
  readonly toStdout: (given: Phrase) => void
  /** Not on stdout, which another program may read. */
  readonly toStderr: (given: Phrase) => void
}

export function createPrinter(language: OperatorLanguage): Printer {
  const line = (given: Phrase) => `${safeText(phraseIn(language, given))}\n`
  return {
    toStdout: given => void process.stdout.write(line(given)),
    toStderr: given => void process.stderr.write(line(given)),
  }
}

// Messages for a terminal, one per line. They may quote text from others, which must not control the terminal.

export function terminalLines(text: string): string {
  return text
    .split('\n')
    .map(line => `${safeText(line)}\n`)
    .join('')
}
