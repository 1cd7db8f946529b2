// What was typed cannot be understood. It is told apart from everything else that can be wrong by its exit code.
import { safeText } from '../../observe/audit/safe-text.ts'
import { nearest } from '../../settings/nearest.ts'

export class UsageError extends Error {
  constructor(message: string) {
    super(safeText(message))
    this.name = 'UsageError'
  }
}

/** What was probably meant; `undefined` if nothing is near. */
export function likelyMeant(given: string, known: readonly string[]): string | undefined {
  return nearest(given, known, letters => letters * 2 < given.length)
}
