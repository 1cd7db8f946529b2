// The example for HAProxy, with HAProxy itself.
import { fileURLToPath } from 'node:url'
import { readExample } from '../../examples/claims.ts'
import type { FrontProxy } from './proxies.ts'
import { testAttacks } from './proxy-attacks.ts'
import { testJourneys } from './proxy-journeys.ts'
import { testSockets } from './proxy-sockets.ts'

const proxy: FrontProxy = {
  program: 'haproxy',
  mode: 'forward-auth',
  config: readExample('haproxy/haproxy.cfg'),
  replace: ({ proxy, menshen, application }) => [
    ['bind :80', `bind 127.0.0.1:${proxy}`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
    ['127.0.0.1:8080', `127.0.0.1:${application}`],
    ['/etc/haproxy/', fileURLToPath(new URL('../../examples/haproxy/', import.meta.url))],
  ],
  prepare: (_folder, config) => ['-db', '-f', config],
}

testJourneys(proxy)
testAttacks(proxy)
testSockets(proxy)
