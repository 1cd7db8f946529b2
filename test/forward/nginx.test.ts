// The example for nginx, with nginx itself.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FrontProxy } from './proxies.ts'
import { testAttacks } from './proxy-attacks.ts'
import { testJourneys } from './proxy-journeys.ts'
import { testSockets } from './proxy-sockets.ts'

const proxy: FrontProxy = {
  program: 'nginx',
  mode: 'forward-auth',
  knowsPatterns: false,
  example: 'nginx/menshen.conf',
  replace: ({ proxy, menshen, application }) => [
    ['listen 80;', `listen 127.0.0.1:${proxy};`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
    ['127.0.0.1:8080', `127.0.0.1:${application}`],
  ],
  prepare(folder, config) {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      kind => `${kind}_temp_path ${join(folder, kind)};`,
    )
    const lines = ['daemon off;', 'master_process off;', 'error_log stderr;', `pid ${join(folder, 'pid')};`]
    const http = `http { access_log off; ${temporary.join(' ')} include ${config}; }`
    writeFileSync(join(folder, 'nginx.conf'), [...lines, 'events {}', http, ''].join('\n'))
    return ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
  },
}

testJourneys(proxy)
testAttacks(proxy)
testSockets(proxy)
