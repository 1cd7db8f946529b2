// The doctor checks everything that a sign-in needs, without changing anything. The command and the console show its
// findings.

import { phrase } from '../text/text.ts'
import { createCachedValue } from '../util/cached-value.ts'
import type { ExamineOptions } from './examine.ts'
import { type Finding, good, warning } from './finding.ts'

/** Asking a provider is costly: a second look within this time shows the same findings. */
const FRESH_MS = 10_000

/** For the console: views at the same time share one examination. */
export function createExamination(examined: ExamineOptions): () => Promise<Finding[]> {
  return createCachedValue({
    load: async () => (await import('./examine.ts')).examine(examined),
    freshMs: FRESH_MS,
    now: examined.now,
  }).get
}

// The doctor's latest findings, for pages that cannot wait for it.

export interface KnownFindings {
  /** Results of the last ten minutes while the page is open; empty before the first run is done. */
  latest(): readonly Finding[]
}

/** A page that is left open does not call the provider and the application more often than this. */
const REFRESH_MS = 600_000

export function createKnownFindings(examine: () => Promise<Finding[]>, now: () => number): KnownFindings {
  const findings = createCachedValue({
    load: examine,
    freshMs: REFRESH_MS,
    retryMs: REFRESH_MS,
    staleWhileReloading: true,
    now,
  })
  return {
    latest() {
      // The doctor's page shows what failed.
      findings.get().catch(() => {})
      return findings.latest() ?? []
    },
  }
}

// The result of the last reload, for the console.

/** Times are milliseconds since 1970. */
export interface ReloadStatus {
  /** When the last reload took effect. */
  reloadedAt?: number
  /** A reload that has been refused since then. */
  refused?: { readonly at: number; readonly file: string; readonly detail: string } | undefined
}

/** Empty if there was no reload since the start. */
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
