// The example for Caddy, with Caddy itself.
import { readFileSync, writeFileSync } from 'node:fs'
import { readExample } from '../../examples/claims.ts'
import { testAttacks } from './attacks.ts'
import { testJourneys } from './journeys.ts'
import type { FrontProxy } from './proxies.ts'
import { testSockets } from './sockets.ts'
import { testTransfers } from './transfers.ts'

const proxy: FrontProxy = {
  program: 'caddy',
  mode: 'forward-auth',
  cannot: ['exceptions'],
  config: readExample('caddy/Caddyfile'),
  beside: 'caddy',
  replace: ({ proxy, menshen, application }) => [
    ['app.example.com {', `http://127.0.0.1:${proxy} {`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
    ['127.0.0.1:8080', `127.0.0.1:${application}`],
  ],
  prepare(_folder, config) {
    // Otherwise it would open a port of its own for administration.
    writeFileSync(config, `{\n\tadmin off\n}\n\n${readFileSync(config, 'utf8')}`)
    return ['run', '--adapter', 'caddyfile', '--config', config]
  },
}

testJourneys(proxy)
testAttacks(proxy)
testSockets(proxy)
testTransfers(proxy)
