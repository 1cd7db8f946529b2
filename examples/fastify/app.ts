import fastify from 'fastify'
import { createMenshen } from 'menshen'
import { menshen } from 'menshen/fastify'

const port = Number(process.env.PORT ?? 3000)
const auth = await createMenshen({ baseUrl: `http://localhost:${port}`, devProvider: true })
const app = fastify()
app.register(menshen, { auth })
app.get('/', async request => `Hello ${request.user?.userInfo.username}`)
await app.listen({ port })
