// What the API needs besides the gateway, and the types of its operations.

import type { z } from 'zod'
import type { ApiScope } from '../config/machines.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { KeyCaller, KeyCallers } from '../keys/callers.ts'
import type { KeyListing } from '../keys/personal.ts'
import type { KeyUse } from '../keys/use.ts'
import type { Cursors } from './cursors.ts'
import type { ApiProblem } from './problem.ts'
import type { ParameterName, Query } from './query.ts'

export interface ApiContext extends GatewayContext {
  readonly api: {
    readonly machines: Pick<KeyCallers, 'identifyMachine'>
    readonly use: Pick<KeyUse, 'note'>
    readonly keys: KeyListing
    readonly cursors: Cursors
  }
}

/** One row per method and path. The OpenAPI document is generated from them. */
export interface Operation {
  readonly method: 'GET' | 'DELETE'
  /** Below the API's own path; `{id}` is one segment. */
  readonly path: string
  readonly id: string
  readonly summary: string
  /** Absent if any machine with an `api` may call it. */
  readonly scope?: ApiScope
  readonly parameters?: readonly ParameterName[]
  readonly required?: readonly ParameterName[]
  /** The schema of its answer; absent for 204. */
  readonly answer?: z.ZodType
  run(call: Call): Promise<object | ApiProblem | undefined>
}

export interface Call {
  readonly context: ApiContext
  readonly request: GatewayRequest
  readonly machine: KeyCaller
  readonly query: Query
  /** The `{id}` of the path, as received; empty if there is none. */
  readonly id: string
}
