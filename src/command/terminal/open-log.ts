// The log of a start, on stdout: lines for people or lines of JSON, the same from every worker.
import cluster from 'node:cluster'
import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, pino } from 'pino'
import { withoutControls } from '../../observe/audit/safe-text.ts'
import type { Environment, Settings } from '../../settings/read.ts'
import { createPaint, wantsColours } from './colours.ts'
import { prettyLine } from './pretty-line.ts'

const STDOUT = 1

export type LogSettings = Pick<Settings, 'LOG_LEVEL' | 'LOG_FORMAT'>

/** Whether the log is read by people. Workers have the stdout of the first process. */
export function isForPeople({ LOG_FORMAT }: LogSettings, isTerminal = isatty(STDOUT)): boolean {
  return LOG_FORMAT === 'pretty' || (LOG_FORMAT === 'auto' && isTerminal)
}

export function openLog(settings: LogSettings, environment: Environment): Logger {
  const isTerminal = isatty(STDOUT)
  if (!isForPeople(settings, isTerminal)) return createLog(settings, jsonTo(pino.destination(STDOUT)))
  // At once, so that it stands in order with what else is said on the terminal.
  const stdout = pino.destination({ dest: STDOUT, sync: true })
  return createLog(settings, prettyTo(stdout, wantsColours(environment, isTerminal)))
}

export function createLog({ LOG_LEVEL }: Pick<LogSettings, 'LOG_LEVEL'>, destination: DestinationStream): Logger {
  const options = {
    level: LOG_LEVEL,
    base: cluster.worker ? { worker: cluster.worker.id } : null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  }
  return pino(options, destination)
}

export function prettyTo(stdout: DestinationStream, colours: boolean): DestinationStream {
  const paint = createPaint(colours)
  return { write: line => stdout.write(prettyLine(line, paint)) }
}

/** JSON leaves some characters as they are that a terminal obeys. A file of it may be shown on one, too. */
export function jsonTo(stdout: DestinationStream): DestinationStream {
  return { write: line => stdout.write(withoutControls(line)) }
}
