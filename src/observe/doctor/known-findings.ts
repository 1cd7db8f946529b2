// What the doctor has found last, for pages that cannot wait for it.
import type { Finding } from './finding.ts'

export interface KnownFindings {
  /** Of the last ten minutes while somebody looks; empty before the first examination is done. */
  latest(): readonly Finding[]
}

/** Provider and application are not bothered more often by a page that somebody leaves open. */
const LOOK_AGAIN_MS = 600_000

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
