import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { createMenshen } from 'menshen'
import { menshen } from 'menshen/hono'

const port = Number(process.env.PORT ?? 3000)
const auth = await createMenshen({ baseUrl: `http://localhost:${port}`, devProvider: true })
const app = new Hono().use(menshen(auth)).get('/', c => c.text(`Hello ${c.get('user')?.userInfo.username}`))
serve({ fetch: app.fetch, port })
