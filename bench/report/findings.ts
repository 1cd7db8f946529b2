// What a part of the benchmarks has found: tables, and marks that were reached or missed.

export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

type Verdict = 'met' | 'missed' | 'proves nothing'

/** A figure that has to be reached. It is shown as it was measured, reached or not. */
export interface Mark {
  readonly what: string
  readonly demanded: string
  readonly measured: string
  readonly verdict: Verdict
}

export interface Findings {
  readonly tables: readonly Table[]
  readonly marks: readonly Mark[]
  /** The costs that the simulation of larger installations uses, by name. */
  readonly costs?: Readonly<Record<string, number>>
}
