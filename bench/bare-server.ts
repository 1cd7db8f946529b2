// The fastest that plain node:http can be: the same answer to every request. `node bench/bare-server.ts PORT FILE`, where
// the file has the answer as `answer.ts` writes it.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { readAnswer } from './answer.ts'

const [port = '', file = ''] = process.argv.slice(2)
const { status, headers, body } = readAnswer(readFileSync(file, 'utf8'))

createServer((_request, response) => {
  response.writeHead(status, headers)
  if (body.length > 0) response.end(body)
  else response.end()
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
