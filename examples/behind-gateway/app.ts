// An application behind Menshen. It has no sign-in code: it greets the user whom the signed assertion names.
import express, { type NextFunction, type Request, type Response } from 'express'
import { type Assertion, verifyAssertion } from 'menshen/assertion'

const { PORT = '8080', MENSHEN_URL = 'http://localhost:3000' } = process.env
/** This application, as Menshen's UPSTREAM names it: an assertion for another application must not be accepted here. */
const { AUDIENCE = `http://127.0.0.1:${PORT}` } = process.env

async function authenticate(request: Request, response: Response, next: NextFunction): Promise<void> {
  try {
    response.locals.user = await verifyAssertion(request, { issuer: MENSHEN_URL, audience: AUDIENCE })
    next()
  } catch {
    // A request that reached this port without passing through Menshen.
    response.status(401).send('请通过统一登录访问。')
  }
}

function page(title: string, { nickname, username }: Assertion): string {
  return `<!doctype html>
<html lang="zh-CN">
<meta charset="utf-8">
<title>${title}</title>
<script type="module" src="/_menshen/assets/session.js"></script>
<h1>${escapeHtml(nickname || username)}，您好！</h1>
<p><a href="/reports">报表</a> · <a href="/logout">退出登录</a></p>`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => `&#${character.codePointAt(0)};`)
}

const app = express()
app.disable('x-powered-by')
// Public, by the rules in menshen.config.ts.
app.get('/status', (_request, response) => void response.json({ status: 'ok' }))
app.use(authenticate)
app.get('/', (_request, response) => void response.send(page('首页', response.locals.user)))
app.get('/reports', (_request, response) => void response.send(page('报表', response.locals.user)))
// Only Menshen, which runs on the same machine, can reach it.
app.listen(Number(PORT), '127.0.0.1')
