// An application with strict types, as test/package/package.test.ts compiles it against the packed package.
import { createServer, type IncomingMessage } from 'node:http'
import { createMenshen, defineConfig, type Menshen, MenshenError, type MenshenOptions, readSettings } from 'menshen'
import { type Assertion, verifyAssertion } from 'menshen/assertion'
import { type Me, me, onEnded, signIn } from 'menshen/browser'

export const config = defineConfig({ rules: [{ path: '/reports', roles: ['developer'] }] })
export const settings = readSettings({ STORE: 'memory:' })

export async function serve(options: MenshenOptions): Promise<Menshen> {
  const menshen = await createMenshen(options)
  createServer(menshen.listener).on('upgrade', menshen.upgradeListener).listen(3000)
  return menshen
}

export async function greet(request: IncomingMessage): Promise<string> {
  try {
    const user: Assertion<'dept'> = await verifyAssertion<'dept'>(request, {
      issuer: 'https://app.example.com',
      audience: 'app',
    })
    const dept: string | undefined = user.dept
    // @ts-expect-error Nobody said that there is such a field.
    user.salary
    return `${user.username} ${dept}`
  } catch (error) {
    return error instanceof MenshenError && error.code === 'assertion_missing' ? 'visitor' : 'refused'
  }
}

// @ts-expect-error Without an audience nothing would be checked.
export const unchecked = () => verifyAssertion(new Request('http://a'), { issuer: 'https://app.example.com' })

export async function start(): Promise<Me | undefined> {
  const stop: () => void = onEnded(({ text }) => (document.title = text))
  const user = await me()
  if (!user) signIn()
  stop()
  return user
}
