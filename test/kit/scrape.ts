// What Prometheus would read, as numbers by name and labels.
import assert from 'node:assert/strict'
import { createClient, type Options } from './client.ts'

export type Scraped = Awaited<ReturnType<typeof scrape>>

export async function scrape(url: string, options: Options = {}) {
  const answer = await createClient(url).get('/_menshen/metrics', options)
  assert.equal(answer.status, 200, answer.text)
  return readMetrics(answer.text)
}

export function readMetrics(text: string) {
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, series, value] = /^([^#].*) (\S+)$/.exec(line) ?? []
    if (series === undefined) continue
    assert.ok(!samples.has(series), `${series} is there twice`)
    samples.set(series, Number(value))
  }
  return {
    text,
    samples,
    /** Of the series that is written this way; fails if there is none. */
    value(series: string): number {
      return samples.get(series) ?? assert.fail(`there is no ${series}`)
    },
    /** Of all series of this name. */
    sum(name: string): number {
      return [...samples].filter(([series]) => series.replace(/\{.*/, '') === name).reduce((sum, [, n]) => sum + n, 0)
    },
  }
}
