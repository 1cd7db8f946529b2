// Sends to the log what Node and libraries print: every line of a JSON log is JSON, and metrics count warnings.

import { format } from 'node:util'
import type { Report } from '../events.ts'

const MAX_TEXT_LENGTH = 1000

/** Replaces Node's own listener, which prints warnings such as deprecations. */
export function reportWarnings(report: Report): void {
  process.removeAllListeners('warning')
  process.on('warning', warning => {
    const { name, message } = warning
    const { code } = warning as NodeJS.ErrnoException
    report('process_warning', { name, text: cut(message), ...(code !== undefined && { code }) })
  })
}

/** `console.dir` and the others are left alone: a trace exporter may be meant to print. */
export function reportConsole(report: Report): void {
  for (const method of ['log', 'info', 'debug'] as const)
    console[method] = (...args: unknown[]) => report('console_output', { text: cut(format(...args)) })
  for (const method of ['warn', 'error'] as const)
    console[method] = (...args: unknown[]) =>
      report('process_warning', { name: `console.${method}`, text: cut(format(...args)) })
}

function cut(text: string): string {
  return text.slice(0, MAX_TEXT_LENGTH)
}
