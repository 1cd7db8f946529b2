// What the tricks of the fast path do where Node is not as they expect.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import test from 'node:test'
import { promisify } from 'node:util'
import { CommonHeaders } from '../../src/http/answers.ts'
import { createSendPrepared, type PreparedResponse } from '../../src/server/fast-path.ts'

const MODULE = new URL('../../src/server/fast-path.ts', import.meta.url)

test('a response without Node’s internal fields gets every head by writeHead', () => {
  const sendPrepared = createSendPrepared(() => 1_000_000)
  const common = new CommonHeaders({ 'cache-control': 'no-store' })
  const calls: unknown[] = []
  const response = {
    shouldKeepAlive: true,
    writeHead: (...args: unknown[]) => void calls.push(args),
    end: () => void calls.push('end'),
  } as unknown as PreparedResponse
  for (const requestId of ['a', 'b']) {
    const answer = { outcome: 'admitted', status: 200, common, identity: undefined, requestId, more: [] } as const
    sendPrepared(response, answer)
  }
  const head = (requestId: string) => [200, ['cache-control', 'no-store', 'x-request-id', requestId]]
  assert.deepEqual(calls, [head('a'), 'end', head('b'), 'end'])
})

test('if headers is an own field of Node’s IncomingMessage, ServerRequest keeps it', async () => {
  const script = `
    import http from 'node:http'
    import { syncBuiltinESMExports } from 'node:module'
    http.IncomingMessage = class { headers = 'of Node' }
    syncBuiltinESMExports()
    const { ServerRequest } = await import('${MODULE}')
    process.stdout.write(new ServerRequest().headers)
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script])
  assert.equal(stdout, 'of Node')
})
