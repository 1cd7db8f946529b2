// Our own routes as tables: each folder exports those that it answers.

import type { OwnAnswer } from './answers.ts'
import type { GatewayRequest } from './request.ts'

/** `form` is empty unless the method is POST. `Context` is what the handler needs. */
export type Handler<Context> = (context: Context, request: GatewayRequest, form: URLSearchParams) => Promise<OwnAnswer>

/** The key of a handler for all methods, which itself refuses those that it does not know. */
export const ANY_METHOD = '*'

/** Handlers by path, then by method. */
export type RouteTable<Context> = Readonly<Record<string, Readonly<Record<string, Handler<Context>>>>>
