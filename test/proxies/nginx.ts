// nginx as our examples configure it, and how it is started for a test: in the foreground, with all its files in one folder.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readExample } from '../../examples/claims.ts'
import type { FrontProxy } from './proxies.ts'

export const NGINX_EXAMPLE: FrontProxy = {
  program: 'nginx',
  mode: 'forward-auth',
  cannot: ['patterns', 'set-cookie'],
  earlyHints: 'taken for the answer',
  config: readExample('nginx/menshen.conf'),
  beside: 'nginx',
  replace: ({ proxy, menshen, application }) => [
    ['listen 80;', `listen 127.0.0.1:${proxy};`],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
    ['127.0.0.1:8080', `127.0.0.1:${application}`],
  ],
  prepare: prepareNginx,
}

export const NGINX_AND_GATEWAY: FrontProxy = {
  program: 'nginx',
  name: 'nginx and the gateway',
  mode: 'gateway',
  address: '127.0.0.2',
  earlyHints: 'taken for the answer',
  // Without TLS, port 80 and the second instance, which test/docs-first-production-day.test.ts has.
  config: readExample('nginx/gateway.conf')
    .replaceAll(/ssl_certificate.*;/g, '')
    .replace(/^server \{\n {2}listen 80;.*?^\}$/ms, ''),
  replace: ({ proxy, menshen }) => [
    ['listen 443 ssl;', `listen 127.0.0.1:${proxy};`],
    ['server 127.0.0.1:3001 max_fails=0;', ''],
    ['127.0.0.1:3000', `127.0.0.1:${menshen}`],
  ],
  prepare: prepareNginx,
}

/** Its arguments, for a configuration of servers. */
export function prepareNginx(folder: string, config: string): string[] {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${join(folder, kind)};`,
  )
  const lines = ['daemon off;', 'master_process off;', 'error_log stderr;', `pid ${join(folder, 'pid')};`]
  const http = `http { access_log off; ${temporary.join(' ')} include ${config}; }`
  writeFileSync(join(folder, 'nginx.conf'), [...lines, 'events {}', http, ''].join('\n'))
  return ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
}
