// What happened in the day, second by second: answers, errors, faults and what the processes held. It decides which errors
// a fault explains; every other one is a violation.

export interface Sample {
  /** Seconds since the beginning, as all times here. */
  readonly at: number
  readonly site: string
  /** Of all its processes, in bytes. */
  readonly memory: number
  readonly descriptors: number
  /** In bytes. */
  readonly store: number
}

export interface FaultRun {
  readonly name: string
  /** Its name, or `both`. */
  readonly site: string
  /** What a client may see during it. */
  readonly expected: readonly string[]
  readonly began: number
  /** When its cause was gone; from then on the time to recover counts. */
  causeGone: number
  /** When all was well again; until then it explains errors. */
  over: number
  readonly errors: Map<string, number>
  lastError: number
}

interface Answer {
  readonly began: number
  readonly ended: number
  readonly isPage: boolean
}

export interface RequestError {
  readonly began: number
  readonly site: string
  readonly user: string
  /** A status, the code of a socket's error, or words. */
  readonly kind: string
  readonly action: string
}

export type DayRecord = ReturnType<typeof createRecord>

export function createRecord() {
  const start = performance.now()
  const answers: Answer[] = []
  const samples: Sample[] = []
  const faults: FaultRun[] = []
  const errors: { readonly at: number }[] = []
  const violations: string[] = []
  const now = () => (performance.now() - start) / 1000

  function violated(sentence: string): void {
    violations.push(`${now().toFixed(1)} s: ${sentence}`)
  }

  return {
    now,
    answers,
    samples,
    faults,
    errors,
    violations,
    violated,

    answered(began: number, isPage: boolean): void {
      answers.push({ began, ended: now(), isPage })
    },

    failed({ began, site, user, kind, action }: RequestError): void {
      const at = now()
      errors.push({ at })
      const isHere = (fault: FaultRun) => fault.site === site || fault.site === 'both'
      const running = faults.filter(fault => isHere(fault) && fault.over >= began && fault.began <= at)
      const cause = running.find(fault => fault.expected.includes(kind))
      if (!cause) {
        const during = running.map(({ name, site }) => `${name} (${site})`).join(', ') || 'no fault'
        violated(`${user} of ${site}, ${action}: ${kind} during ${during}`)
        return
      }
      cause.errors.set(kind, (cause.errors.get(kind) ?? 0) + 1)
      cause.lastError = at
    },

    beginFault(name: string, site: string, expected: readonly string[]): FaultRun {
      const began = now()
      const [causeGone, over] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
      const fault = { name, site, expected, began, causeGone, over, errors: new Map(), lastError: 0 }
      faults.push(fault)
      return fault
    },
  }
}

/** Since its cause was gone until the last error. */
export function recoverySeconds({ lastError, causeGone }: FaultRun): number {
  return Math.max(0, lastError - causeGone)
}

export function isQuiet(faults: readonly FaultRun[], from: number, to: number): boolean {
  return faults.every(({ began, over }) => over < from || began > to)
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
