// What Node and libraries print goes to the log: every line of a JSON log is JSON, and a warning is seen by the metrics.

import { format } from 'node:util'
import type { Report } from '../events.ts'

const LONGEST_TEXT = 1000

/** Node prints its warnings, such as deprecations, with its own listener. */
export function reportWarnings(report: Report): void {
  process.removeAllListeners('warning')
  process.on('warning', warning => {
    const { name, message } = warning
    const { code } = warning as NodeJS.ErrnoException
    report('process_warning', { name, text: cut(message), ...(code !== undefined && { code }) })
  })
}

/** `console.dir` and the others stay: an exporter of traces may be meant to print. */
export function reportConsole(report: Report): void {
  for (const method of ['log', 'info', 'debug'] as const)
    console[method] = (...args: unknown[]) => report('console_output', { text: cut(format(...args)) })
  for (const method of ['warn', 'error'] as const)
    console[method] = (...args: unknown[]) =>
      report('process_warning', { name: `console.${method}`, text: cut(format(...args)) })
}

function cut(text: string): string {
  return text.slice(0, LONGEST_TEXT)
}
