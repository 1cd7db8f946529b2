// RabbitMQ with its management pages: virtual host `/`, queues whose names have `/`, `;` and Chinese in them.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../free-port.ts'
import { type Application, answers, request, startProgram } from './application.ts'

const GUEST = { authorization: `Basic ${btoa('guest:guest')}`, 'content-type': 'application/json' }

export const rabbitmq: Application = {
  debian: ['rabbitmq-server'],

  async start(t, folder) {
    const [port, amqp, epmd, distribution] = [await freePort(), await freePort(), await freePort(), await freePort()]
    writeFileSync(join(folder, 'plugins'), '[rabbitmq_management].\n')
    writeFileSync(
      join(folder, 'rabbitmq.conf'),
      [
        `listeners.tcp.1 = 127.0.0.1:${amqp}`,
        'management.tcp.ip = 127.0.0.1',
        `management.tcp.port = ${port}`,
        'vm_memory_high_watermark.absolute = 512MB',
        'disk_free_limit.absolute = 50MB',
      ].join('\n'),
    )
    const env = {
      ERL_EPMD_PORT: String(epmd),
      ERL_EPMD_ADDRESS: '127.0.0.1',
      RABBITMQ_NODENAME: `menshen-${port}@localhost`,
      RABBITMQ_DIST_PORT: String(distribution),
      RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
      RABBITMQ_LOG_BASE: join(folder, 'log'),
      RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
      RABBITMQ_CONF_ENV_FILE: '/dev/null',
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 2:2',
    }
    // Otherwise Erlang starts one that outlives the test.
    startProgram(t, folder, ['epmd'], env)
    const program = startProgram(t, folder, ['/usr/lib/rabbitmq/bin/rabbitmq-server'], env)
    const url = new URL(`http://127.0.0.1:${port}`)
    await answers(program, url)
    return url
  },

  async task(entrance) {
    const { name, url, page } = entrance
    const queue = `orders/${name};v=1 队列`
    const path = `/api/queues/%2F/${encodeURIComponent(queue)}`
    const call = async (method: string, path: string, body?: object) => {
      const answer = await request(entrance, path, {
        method,
        headers: GUEST,
        ...(body && { body: JSON.stringify(body) }),
      })
      assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${answer.statusText}`)
      return answer.text()
    }
    await call('PUT', path, { durable: true })
    await call('POST', '/api/exchanges/%2F/amq.default/publish', {
      ...{ routing_key: queue, payload: '你好', payload_encoding: 'string', properties: {} },
    })
    const got = await call('POST', `${path}/get`, { count: 1, ackmode: 'ack_requeue_true', encoding: 'auto' })
    assert.equal(JSON.parse(got)[0].payload, '你好')

    await page.goto(url)
    await page.locator('input[name=username]').fill('guest')
    await page.locator('input[name=password]').fill('guest')
    await page.locator('input[type=submit]').click()
    await page.locator('#tabs a', { hasText: 'Queues' }).click()
    await page.locator('.list a', { hasText: queue }).first().click()
    await page.locator('h1', { hasText: queue }).waitFor()
    await page.locator('h2', { hasText: 'Get messages' }).click()
    await page.locator('input[value="Get Message(s)"]').click()
    await page.locator('#msg-wrapper', { hasText: '你好' }).waitFor()
    await call('DELETE', path)
  },
}
