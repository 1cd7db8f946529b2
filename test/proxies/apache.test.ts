// The example for Apache, with Apache itself.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readExample } from '../../examples/claims.ts'
import { testAttacks } from './attacks.ts'
import { testJourneys } from './journeys.ts'
import { testOwnAddress } from './options.ts'
import type { FrontProxy } from './proxies.ts'
import { testSockets } from './sockets.ts'
import { testTransfers } from './transfers.ts'

const MODULES = ['mpm_event', 'authz_core', 'headers', 'proxy', 'proxy_http', 'rewrite']

const proxy: FrontProxy = {
  program: 'apache2',
  mode: 'gateway',
  config: readExample('apache/menshen.conf'),
  replace: ({ proxy, menshen }) => [
    ['<VirtualHost *:80>', `Listen 127.0.0.1:${proxy}\n<VirtualHost 127.0.0.1:${proxy}>`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
  ],
  prepare(folder, config) {
    const lines = [
      ...MODULES.map(name => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
      ...[`ServerRoot ${folder}`, 'ServerName app.example.com', `ErrorLog ${join(folder, 'log')}`],
      ...[`PidFile ${join(folder, 'pid')}`, `DefaultRuntimeDir ${folder}`],
      // It refuses to serve as root.
      ...(process.getuid?.() === 0 ? ['User nobody', 'Group nogroup'] : []),
      `Include ${config}`,
    ]
    writeFileSync(join(folder, 'httpd.conf'), `${lines.join('\n')}\n`)
    return ['-D', 'FOREGROUND', '-f', join(folder, 'httpd.conf')]
  },
}

testJourneys(proxy)
testAttacks(proxy)
testSockets(proxy)
testTransfers(proxy)
testOwnAddress(proxy, /#(ProxySourceAddress)/g)
