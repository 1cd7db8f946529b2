// How an nginx is started for a test: in the foreground, with all its files in one folder.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

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
