// What the examples hold as comments, taken in: https, and an address of the proxy's own beside a Prometheus on the same machine.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { createClient } from '../kit/client.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority, makeCertificate } from './certificates.ts'
import { type FrontProxy, openBehind } from './proxies.ts'

/** With the lines that match taken in, and what matches `without` left out. */
function taken(config: string, lines: RegExp, without?: string): string {
  assert.match(config, lines)
  return (without === undefined ? config : config.replace(without, '')).replaceAll(lines, '$1')
}

/** `more` is what else the comment says to change. */
export function testOwnAddress(proxy: FrontProxy, lines: RegExp, more: [from: string, to: string][] = []): void {
  const { program } = proxy
  const config = more.reduce((changed, [from, to]) => changed.replace(from, to), taken(proxy.config, lines))
  const own = { ...proxy, address: '127.0.0.2', config }

  test(`behind ${program} with a separate proxy address, Prometheus on this machine can read the metrics directly`, async t => {
    const { user, client, directUrl } = await openBehind(t, own)
    assert.equal((await (await user()).get('/x')).text, 'page /x')
    assert.equal((await client().get('/x')).status, 302)
    assert.equal((await createClient(directUrl).get('/_menshen/metrics')).status, 200)
    assert.equal((await client().get('/_menshen/metrics')).status, 403)
  })

  test(`behind ${program} with the unchanged example, local Prometheus gets 403 and the log suggests TRUSTED_PROXIES=127.0.0.2`, async t => {
    const { scene, directUrl } = await openBehind(t, proxy)
    assert.equal((await createClient(directUrl).get('/_menshen/metrics')).status, 403)
    const [refused] = scene.lines.filter(({ event }) => event === 'metrics_refused')
    assert.match(String(refused?.fields?.remedy), /TRUSTED_PROXIES=127\.0\.0\.2/)
  })
}

export function testHttps(proxy: FrontProxy, lines: RegExp, http: string): void {
  const { program, config, replace } = proxy

  test(`behind ${program} with the https lines, the application receives the scheme and the host name`, async t => {
    const folder = tempFolder(t)
    const ca = makeAuthority(folder)
    const { certFile, keyFile } = makeCertificate(folder, 'app', ca, 'app.example.com')
    const both = join(folder, 'both.pem')
    writeFileSync(both, readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8'))
    const withHttps: FrontProxy = {
      ...proxy,
      config: taken(config, lines, http)
        .replaceAll('/etc/ssl/app.example.com.pem', certFile)
        .replaceAll('/etc/ssl/app.example.com.key', keyFile)
        .replaceAll('/etc/ssl/app.example.com.both.pem', both),
      replace: ports => [
        ...replace(ports).filter(([from]) => from !== http),
        [
          /(?:listen |bind :)443/.exec(config)?.[0] ?? '',
          `${http.slice(0, http.indexOf(' '))} 127.0.0.1:${ports.proxy}`,
        ],
      ],
    }
    const { scene, url } = await openBehind(t, withHttps)
    const address = `${url.replace('http:', 'https:')}/public`
    const options = { ca: readFileSync(ca.certFile), servername: 'app.example.com', agent: false }
    const [answer] = (await once(get(address, options), 'response')) as [IncomingMessage]
    assert.equal(await text(answer), 'page /public')
    const { headers } = scene.upstream.last()
    assert.equal(headers['x-forwarded-proto'], 'https')
    assert.equal(headers['x-forwarded-host'], `app.example.com:${new URL(url).port}`)
    assert.equal(headers.host, `app.example.com:${new URL(url).port}`)
  })
}
