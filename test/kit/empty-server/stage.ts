// Runs blocks of commands on the empty server of enter.sh, one after the other, and prints what each of them wrote. Beside them are a real
// provider at https://sso.example.com:8443/realms/office and an application at 127.0.0.1:8080, which greets its user.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { startOidcProvider } from '../live/oidc-provider.ts'
import { createPerson } from '../live/person.ts'
import { until } from '../until.ts'

export interface Block {
  readonly command: string
  /** Whether it is run once more, in Chinese. */
  readonly isRepeated: boolean
  /** Whether a user signs in before. */
  readonly isAfterSignIn: boolean
  /** It is repeated until it has written so many. */
  readonly awaitedLines: number
}

export interface Result {
  readonly status: number | null
  readonly output: string
  readonly chinese?: string
}

const SECRET = 'a-secret-that-keycloak-generated'
const GATEWAY = 'https://app.example.com'
const [, , folder = '', root = '', path = ''] = process.argv
const blocks: Block[] = JSON.parse(readFileSync(join(folder, 'blocks.json'), 'utf8'))

const PEOPLE: Readonly<Record<string, object>> = {
  zhangsan: { preferred_username: 'zhangsan', name: '张三', groups: ['finance'] },
}

await startOidcProvider({
  gateway: GATEWAY,
  host: 'sso.example.com',
  port: 8443,
  path: '/realms/office',
  tls: { cert: readFileSync(join(folder, 'sso.crt')), key: readFileSync(join(folder, 'sso.key')) },
  registered: { client_id: 'reports', client_secret: SECRET, token_endpoint_auth_method: 'client_secret_basic' },
  configuration: {
    claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'groups'] },
    issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...PEOPLE[id] }) }),
  },
})
const application = createServer(({ url, headers }, response) => {
  response.writeHead(url === '/' ? 200 : 404).end(`Hello, ${headers['x-forwarded-user']}\n`)
})
await once(application.listen(8080, '127.0.0.1'), 'listening')
installStandIns()

const results: Result[] = []
for (const { command, isRepeated, isAfterSignIn, awaitedLines } of blocks) {
  if (isAfterSignIn) {
    const page = await createPerson(GATEWAY, { username: 'zhangsan', password: 'any' }).signIn()
    if (page.text !== 'Hello, zhangsan\n') throw new Error(`the sign-in ended at ${page.url}: ${page.text}`)
  }
  const result = await (awaitedLines > 0 ? runUntilLines(command, awaitedLines) : run(command))
  results.push(isRepeated ? { ...result, chinese: (await run(command, 'zh_CN.UTF-8')).output } : result)
  if (result.status === 0) continue
  process.stderr.write(await logs())
  break
}
process.stdout.write(JSON.stringify(results), () => process.exit())

async function run(command: string, LC_ALL = 'C.UTF-8'): Promise<Result> {
  // A pasted secret is the only input: a descriptor that /dev/stdin can open again.
  const script = `exec 2>&1 < ${join(folder, 'pasted')}\nset -e\n${command}`
  const child = spawn('bash', ['-c', script], { cwd: '/root', env: { PATH: path, HOME: '/root', LC_ALL } })
  const [output, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  return { status, output }
}

async function runUntilLines(command: string, lines: number): Promise<Result> {
  let result = await run(command)
  await until(async () => {
    if (result.status === 0 && result.output.trim().split('\n').length >= lines) return true
    result = await run(command)
    return false
  })
  return result
}

/** What the services wrote last. */
async function logs(): Promise<string> {
  return (await run('for file in /var/log/menshen*.log /var/log/nginx*.log; do tail -n 5 $file; done')).output
}

/** Programs that would change a real server. They come first on PATH. */
function installStandIns(): void {
  const node = process.execPath
  const [bin] = path.split(':')
  const standIns = {
    systemctl: `exec ${node} --disable-warning=ExperimentalWarning ${join(import.meta.dirname, 'systemctl.ts')} "$@"`,
    // Debian starts the services that it installs.
    'apt-get': `[ "$1" = update ] || systemctl -q enable --now nginx redis-server prometheus`,
    npm: `mkdir -p /opt/menshen/node_modules/node/bin /opt/menshen/source
      mount --bind ${root} /opt/menshen/source && ln -s ../source /opt/menshen/node_modules/menshen
      touch /opt/menshen/node_modules/node/bin/node
      mount --bind ${node} /opt/menshen/node_modules/node/bin/node`,
    certbot: `place=/etc/letsencrypt/live/app.example.com
      mkdir -p $place && cp ${folder}/app.crt $place/fullchain.pem && cp ${folder}/app.key $place/privkey.pem
      echo 'Successfully received certificate.'`,
  }
  mkdirSync(bin ?? '', { recursive: true })
  for (const [name, script] of Object.entries(standIns))
    writeFileSync(join(bin ?? '', name), `#!/bin/sh\nset -eu\n${script}\n`, { mode: 0o755 })
  writeFileSync(join(folder, 'pasted'), `${SECRET}\n`)
}
