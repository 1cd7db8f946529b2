// A large answer of an application, at the reader's speed: it waits while nobody reads.
import type { ServerResponse } from 'node:http'

const CHUNK = Buffer.alloc(64 * 1024, 'menshen')

export function sendLarge(response: ServerResponse, bytes: number): void {
  response.writeHead(200, { 'content-length': bytes })
  let sent = 0
  const more = () => {
    while (sent < bytes && !response.destroyed) {
      sent += CHUNK.length
      if (!response.write(CHUNK)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}
