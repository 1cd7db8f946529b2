import type { Client } from './client.ts'

/** Signs a visitor in at the development provider of the application. */
export async function signInAtDevProvider(visitor: Client, username: string): Promise<void> {
  const { text } = await visitor.get('/login', { headers: { accept: 'text/html' } })
  const address = /data-authorize="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&')
  const body = new URLSearchParams({ username })
  const back = await fetch(`${address}&state=abc_idp`, { method: 'POST', body, redirect: 'manual' })
  const { pathname, search } = new URL(back.headers.get('location') ?? '')
  await visitor.get(pathname + search)
}
