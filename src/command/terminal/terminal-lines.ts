// Sentences for a terminal, one a line. They may quote what others wrote, which must not paint it.
import { safeText } from '../../observe/audit/safe-text.ts'

export function terminalLines(text: string): string {
  return text
    .split('\n')
    .map(line => `${safeText(line)}\n`)
    .join('')
}
