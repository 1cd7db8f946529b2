// The example for nginx, with nginx itself.
import { readExample } from '../../examples/claims.ts'
import { prepareNginx } from './nginx.ts'
import type { FrontProxy } from './proxies.ts'
import { testAttacks } from './proxy-attacks.ts'
import { testJourneys } from './proxy-journeys.ts'
import { testSockets } from './proxy-sockets.ts'

const proxy: FrontProxy = {
  program: 'nginx',
  mode: 'forward-auth',
  cannot: ['patterns', 'set-cookie'],
  config: readExample('nginx/menshen.conf'),
  beside: 'nginx',
  replace: ({ proxy, menshen, application }) => [
    ['listen 80;', `listen 127.0.0.1:${proxy};`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
    ['127.0.0.1:8080', `127.0.0.1:${application}`],
  ],
  prepare: prepareNginx,
}

testJourneys(proxy)
testAttacks(proxy)
testSockets(proxy)
