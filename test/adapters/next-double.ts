// What the adapter uses of Next, in a few lines: the real one is too large for every run, and test/long/next.long.ts has it.
import { AsyncLocalStorage } from 'node:async_hooks'
import { registerHooks } from 'node:module'

/** The request that is being answered. */
export const current = new AsyncLocalStorage<Headers>()

export async function headers(): Promise<Headers> {
  return current.getStore() ?? Promise.reject(new Error('outside of a request'))
}

export class NextResponse extends Response {
  /** The headers that the page gets, where the proxy has changed them. */
  passedOn: Headers | undefined

  static next(init?: { request: { headers: Headers } }): NextResponse {
    const response = new NextResponse(null, { headers: { 'x-middleware-next': '1' } })
    response.passedOn = init?.request.headers
    return response
  }
}

export function redirect(path: string): never {
  throw new Error(`redirect ${path}`)
}

export function notFound(): never {
  throw new Error('not found')
}

/** From now on an import of Next's modules gives this one. */
export function takeThePlaceOfNext(): void {
  registerHooks({
    resolve: (specifier, context, next) =>
      /^next\/\w+\.js$/.test(specifier) ? { url: import.meta.url, shortCircuit: true } : next(specifier, context),
  })
}
