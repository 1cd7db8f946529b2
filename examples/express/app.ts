import express from 'express'
import { createMenshen } from 'menshen'
import { menshen } from 'menshen/express'

const port = Number(process.env.PORT ?? 3000)
const auth = await createMenshen({ baseUrl: `http://localhost:${port}`, devProvider: true })
const app = express()
app.use(menshen(auth))
app.get('/', (req, res) => void res.send(`Hello ${req.user?.userInfo.username}`))
app.listen(port)
