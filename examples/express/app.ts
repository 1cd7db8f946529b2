import express from 'express'
import { createMenshen } from 'menshen'
import { menshen } from 'menshen/express'

const { PORT = '3000' } = process.env
const auth = await createMenshen({ baseUrl: `http://localhost:${PORT}`, devProvider: true })
const app = express()
app.use(menshen(auth))
app.get('/', (req, res) => void res.send(`Hello ${req.user?.userInfo.username}`))
app.listen(Number(PORT))
