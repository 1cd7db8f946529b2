// The body of a request that nobody reads.
import type { IncomingMessage } from 'node:http'

/** It is thrown away, so that the next request on the connection is heard; its deadline is the client's. */
export function drain(request: IncomingMessage): void {
  if (!request.complete) request.resume()
}
