// Prometheus: its HTTP API, promtool and its pages.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../free-port.ts'
import { type Application, answers, request, startProgram } from './application.ts'

export const prometheus: Application = {
  debian: ['prometheus'],

  async start(t, folder) {
    const address = `127.0.0.1:${await freePort()}`
    const file = join(folder, 'prometheus.yml')
    writeFileSync(
      file,
      `scrape_configs:\n  - job_name: self\n    scrape_interval: 1s\n    static_configs: [{ targets: ['${address}'] }]\n`,
    )
    const options = [`--config.file=${file}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${address}`]
    const program = startProgram(t, folder, ['prometheus', ...options])
    const url = new URL(`http://${address}`)
    await answers(program, new URL('/-/ready', url))
    return url
  },

  async task(entrance) {
    const { url, page } = entrance
    const deadline = Date.now() + 30_000
    const body = new URLSearchParams({ query: 'up{job="self"}' })
    for (;;) {
      const answer = await request(entrance, '/api/v1/query', { method: 'POST', body })
      assert.equal(answer.status, 200)
      const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } }
      if (data.result[0]?.value[1] === '1') break
      assert.ok(Date.now() < deadline, 'Prometheus has scraped itself')
    }
    await page.goto(`${url}/classic/graph?g0.expr=up%7Bjob%3D%22self%22%7D&g0.tab=1`)
    await page.getByText('job="self"').first().waitFor()
  },
}
