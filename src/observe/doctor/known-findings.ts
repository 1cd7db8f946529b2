// What the doctor has found last, for pages that cannot wait for it.
import type { Finding } from './finding.ts'

export interface KnownFindings {
  /** Not older than a minute or two while somebody looks; empty before the first examination is done. */
  latest(): readonly Finding[]
}

const LOOK_AGAIN_MS = 60_000

export function createKnownFindings(examine: () => Promise<Finding[]>, now: () => number): KnownFindings {
  let known: readonly Finding[] = []
  let askedAt = Number.NEGATIVE_INFINITY
  return {
    latest() {
      // Also if the clock was set back.
      if (Math.abs(now() - askedAt) >= LOOK_AGAIN_MS) {
        askedAt = now()
        examine().then(
          findings => {
            known = findings
          },
          // Whoever looks at the page of the doctor is told.
          () => {},
        )
      }
      return known
    },
  }
}
