// Work that waits for a store or a provider, and how it is measured.

type EntryVerb = 'create' | 'read' | 'replace' | 'remove' | 'take' | 'list' | 'newest' | 'count'

/** The kinds of measured work, and the names within each kind. */
export interface Work {
  readonly session: 'find'
  readonly refresh: 'tokens'
  readonly provider:
    | 'token'
    | 'pushed_request'
    | 'refresh'
    | 'token_exchange'
    | 'user_info'
    | 'sign_out'
    | 'introspection'
    | 'metadata'
    | 'keys'
  readonly store: EntryVerb | 'trail_append' | 'trail_read' | 'ready'
}

/** Does the work, and reports to the observers how long it took and how it ended. */
export type Measure = <Kind extends keyof Work, Result>(
  kind: Kind,
  what: Work[Kind],
  work: () => Promise<Result>,
) => Promise<Result>

/** For synchronous work. */
export type MeasureSync = <Kind extends keyof Work, Result>(kind: Kind, what: Work[Kind], work: () => Result) => Result

export const unmeasured: Measure = (_kind, _what, work) => work()

/** A call to a provider over HTTP. */
export interface ProviderCall {
  readonly method: string
  readonly url: string
}

/** Makes a call, and adds it to the trace of the request that waits for it. */
export type TraceCall = <Answer extends { readonly status: number }>(
  what: Work['provider'],
  call: ProviderCall,
  send: () => Promise<Answer>,
) => Promise<Answer>
