// The application behind the gateway, a process of its own: pages that say who reads them, uploads that it keeps as files,
// and event streams whose events are numbered. `node application.ts PORT FOLDER`

import { createHash } from 'node:crypto'
import { createWriteStream, renameSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import express from 'express'

const EVENT_EVERY_MS = 500

const [port, folder = ''] = process.argv.slice(2)
const app = express()

app.put('/uploads/:name', async (request, response) => {
  const path = join(folder, request.params.name)
  const hash = createHash('sha256')
  request.on('data', chunk => hash.update(chunk))
  await pipeline(request, createWriteStream(`${path}.part`))
  renameSync(`${path}.part`, path)
  response.status(201).send(hash.digest('hex'))
})

app.get('/events', (request, response) => {
  response.set('content-type', 'text/event-stream').flushHeaders()
  let n = 0
  const timer = setInterval(() => response.write(`data: ${n++}\n\n`), EVENT_EVERY_MS)
  request.on('close', () => clearInterval(timer))
})

app.use((request, response) => {
  response.send(`<p>${request.get('x-forwarded-user')} reads ${request.path}</p>`)
})

// With the test that started it.
process.once('disconnect', () => process.exit())
app.listen(Number(port), '127.0.0.1', () => process.send?.('listening'))
