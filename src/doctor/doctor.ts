// The doctor: everything that a sign-in needs, looked at without changing anything. The command and the console show what
// it finds.

import { phrase } from '../text/text.ts'
import { createCachedValue } from '../util/cached-value.ts'
import type { ExamineOptions } from './examine.ts'
import { type Finding, good, warning } from './finding.ts'

/** What a question to a provider costs: a second look within this time shows the same. */
const FRESH_MS = 10_000

/** For the console: however many look at once, one examination is made. */
export function createExamination(examined: ExamineOptions): () => Promise<Finding[]> {
  return createCachedValue({
    load: async () => (await import('./examine.ts')).examine(examined),
    freshMs: FRESH_MS,
    now: examined.now,
  }).get
}

// What the doctor has found last, for pages that cannot wait for it.

export interface KnownFindings {
  /** Results of the last ten minutes while the page is open; empty before the first run is done. */
  latest(): readonly Finding[]
}

/** A page that is left open does not call provider and application more often than this. */
const LOOK_AGAIN_MS = 600_000

export function createKnownFindings(examine: () => Promise<Finding[]>, now: () => number): KnownFindings {
  const findings = createCachedValue({
    load: examine,
    freshMs: LOOK_AGAIN_MS,
    retryMs: LOOK_AGAIN_MS,
    staleWhileReloading: true,
    now,
  })
  return {
    latest() {
      // The page of the doctor shows what failed.
      findings.get().catch(() => {})
      return findings.latest() ?? []
    },
  }
}

// What became of the last reload, for the console.

/** Times are milliseconds since 1970. */
export interface ReloadStatus {
  /** When the last reload was put in use. */
  reloadedAt?: number
  /** One that was refused since then. */
  refused?: { readonly at: number; readonly file: string; readonly detail: string } | undefined
}

/** Nothing where nothing was read since the start. */
export function reloadFindings({ reloadedAt, refused }: ReloadStatus): Finding[] {
  const timeOf = (at: number) => new Date(at).toISOString()
  if (refused)
    return [
      warning(
        'reload',
        phrase('reload_refused', { time: timeOf(refused.at), file: refused.file, detail: refused.detail }),
        phrase('correct_file'),
      ),
    ]
  return reloadedAt === undefined ? [] : [good('reload', phrase('reloaded', { time: timeOf(reloadedAt) }))]
}
