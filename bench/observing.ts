// What it costs to be observed: the same requests with the metrics on and off.

import { freePort } from '../test/kit/free-port.ts'
import { contest, median, ratio } from './contest.ts'
import { signIn, startMenshen, startProvider } from './menshen.ts'
import type { Bench } from './part.ts'
import { script, served, startUntil } from './processes.ts'
import { atLeast, type Findings, hundredths, type Mark, whole } from './report.ts'
import { openLmdb } from './stores.ts'

const DAY_SECONDS = 86_400
const LEAST = 0.95
const PATHS = ['/_menshen/check', '/']
const OFF = { METRICS_FROM: 'none' }

export async function benchObserving({ plan, cores, say }: Bench): Promise<Findings> {
  await using open = new AsyncDisposableStack()
  const provider = open.use(await startProvider(DAY_SECONDS))
  const port = await freePort()
  const upstream = open.use(served(port, await startUntil('ready', script('upstream.ts', port))))
  const start = async (more: Readonly<Record<string, string>>) => {
    const store = open.use(await openLmdb())
    const menshen = open.use(await startMenshen(store.address, provider, cores, { UPSTREAM: upstream.url, ...more }))
    return { url: menshen.url, cookie: await signIn(menshen, 'user') }
  }
  const [observed, alone] = [await start({}), await start(OFF)]

  const rows: string[][] = []
  const marks: Mark[] = []
  for (const path of PATHS) {
    say(`${path} with metrics and without`)
    const [ours, without] = await contest(
      [observed, alone].map(({ url, cookie }) => ({ url: url + path, cookie })),
      plan,
    )
    const share = ratio(ours, without)
    rows.push([path, whole(median(ours)), whole(median(without)), hundredths(share)])
    marks.push(atLeast(LEAST, `${path} with metrics, of the rate without`, share))
  }
  const columns = ['signed-in request', 'with metrics /s', 'without /s', 'ratio']
  return { table: { title: 'Being observed', columns, rows }, marks }
}
