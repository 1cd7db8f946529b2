// A page of 1 KB through the gateway, signed in, against what only forwards: the same undici bare, and Caddy.

import { freePort } from '../test/kit/free-port.ts'
import { ask } from './answer.ts'
import { startCaddy } from './caddy.ts'
import { contest, median, ratio } from './contest.ts'
import { firstEventDelay } from './first-event.ts'
import { signIn, startMenshen, startProvider } from './menshen.ts'
import type { Bench } from './part.ts'
import { type Served, script, served, startUntil } from './processes.ts'
import { atLeast, type Findings, hundredths, type Mark, milliseconds, whole } from './report.ts'
import { openLmdb } from './stores.ts'

const DAY_SECONDS = 86_400
/** How much of the rate of each a page through the gateway has to reach. */
const LEAST = { 'bare undici': 0.75, Caddy: 0.7 } as const
const MOST_EVENT_MS = 50

type Other = keyof typeof LEAST

export async function benchProxy({ plan, cores, say }: Bench): Promise<Findings> {
  await using open = new AsyncDisposableStack()
  const provider = open.use(await startProvider(DAY_SECONDS))
  const store = open.use(await openLmdb())
  const upstream = open.use(await startScript('upstream.ts', []))
  const menshen = open.use(await startMenshen(store.address, provider, cores, { UPSTREAM: upstream.url }))
  const cookie = await signIn(menshen, 'user')
  const bare = open.use(await startScript('bare-proxy.ts', cores.server, upstream.url))
  const caddy = await startCaddy(upstream, cores)
  if (caddy) open.use(caddy)
  else say('Caddy is left out: please install caddy')

  const others: [Other, Served][] = [['bare undici', bare], ...(caddy ? [['Caddy', caddy] as [Other, Served]] : [])]
  const all = [menshen, ...others.map(([, other]) => other)]
  for (const { url } of all) await expectPage(url, upstream, cookie)
  say(`a page through Menshen, ${others.map(([name]) => name).join(' and ')}`)
  const [ours, ...theirs] = await contest(
    all.map(({ url }) => ({ url, cookie })),
    plan,
  )
  say('event streams')
  const delay = await firstEventDelay(`${menshen.url}/events`, cookie)
  const direct = await firstEventDelay(`${upstream.url}/events`, cookie)

  const rows = [['Menshen, signed in', whole(median(ours)), '']]
  const marks: Mark[] = []
  for (const [index, [name]] of others.entries()) {
    const share = ratio(ours, theirs[index])
    rows.push([name, whole(median(theirs[index])), hundredths(share)])
    marks.push(atLeast(LEAST[name], `page through the gateway, of the rate of ${name}`, share))
  }
  marks.push({
    what: 'first event of a stream through the gateway',
    demanded: `within ${MOST_EVENT_MS} ms`,
    measured: `${milliseconds(delay)} (${milliseconds(direct)} without it)`,
    met: delay <= MOST_EVENT_MS,
  })
  return { table: { title: 'A page of 1 KB', columns: ['through', 'pages /s', "Menshen's ratio"], rows }, marks }
}

async function startScript(path: string, on: readonly string[], ...args: string[]): Promise<Served> {
  const port = await freePort()
  return served(port, await startUntil('ready', script(path, port, ...args), { on }))
}

/** The same page through all of them, or their rates mean nothing. */
async function expectPage(url: string, upstream: Served, cookie: string): Promise<void> {
  const [page, original] = [await ask(url, cookie), await ask(upstream.url)]
  if (page.status !== 200 || !page.body.equals(original.body)) throw new Error(`${url} answered ${page.status}`)
}
