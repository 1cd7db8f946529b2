// docs/mcp.md, as it is written: the official MCP client finds the way from a 401 to a tool of a server that knows nothing of
// sign-in, with oidc-provider as the provider.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { decodeJwt } from 'jose'
import { loadConfiguration } from '../../src/config/load.ts'
import { freePort } from '../kit/free-port.ts'
import { listen } from '../kit/listen.ts'
import { openLiveGateway } from '../kit/live/live-set-up.ts'
import { ALICE, CLIENTS, startOidcProvider } from '../kit/live/oidc-provider.ts'
import { createPerson } from '../kit/live/person.ts'
import { readPage, snippetsIn } from '../kit/snippets.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The snippets of the page in a folder where their packages are found, with the addresses of this test. */
function writeSnippets(t: TestContext, addresses: Readonly<Record<string, string>>) {
  const [server, config, provider] = snippetsIn('docs/mcp.md', readPage('docs/mcp.md')).filter(({ language }) =>
    ['js', 'ts'].includes(language),
  )
  const folder = tempFolder(t)
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  const write = (name: string, text = ''): string => {
    const file = join(folder, name)
    const own = Object.entries(addresses).reduce((text, [from, to]) => text.replaceAll(from, to), text)
    writeFileSync(file, own)
    return file
  }
  return {
    server: write('server.js', server?.text),
    config: write('menshen.config.ts', config?.text),
    provider: write('provider.js', provider?.text),
  }
}

async function runServer(t: TestContext, file: string, address: string): Promise<void> {
  const child = spawn(process.execPath, [file], { stdio: 'inherit' })
  t.after(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const isThere = () =>
    fetch(address).then(
      () => true,
      () => false,
    )
  await until(isThere, 30_000)
}

/** One with a session, which says something on its own: it answers a GET with a stream. */
function createTalkativeServer(): Server {
  const server = new McpServer({ name: 'talkative', version: '1.0.0' })
  server.registerTool('grow', { description: 'Adds a tool' }, () => {
    server.registerTool('grown', {}, () => ({ content: [] }))
    return { content: [{ type: 'text', text: 'grown' }] }
  })
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => 'one' })
  const connected = server.connect(transport as Transport)
  return createServer(async (request, response) => {
    await connected
    await transport.handleRequest(request, response)
  })
}

/** What an MCP client on a desktop keeps, and where it waits for the code. */
function createMemory(redirectUrl: string) {
  const kept: { client?: OAuthClientInformationMixed; tokens?: OAuthTokens; verifier?: string; asked?: URL } = {}
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: 'A desktop client',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client,
    saveClientInformation(client) {
      kept.client = client
    },
    tokens: () => kept.tokens,
    saveTokens(tokens) {
      kept.tokens = tokens
    },
    redirectToAuthorization(url) {
      kept.asked = url
    },
    saveCodeVerifier(verifier) {
      kept.verifier = verifier
    },
    codeVerifier: () => kept.verifier ?? '',
  }
  return { kept, provider }
}

test('the official MCP client proceeds from a 401 to the result of a tool with the setup of docs/mcp.md', async t => {
  const [gatewayPort, serverPort] = [await freePort(), await freePort()]
  const url = `http://localhost:${gatewayPort}`
  const files = writeSnippets(t, { 'https://app.example.com': url, '3001': String(serverPort) })
  const { configuration } = await import(pathToFileURL(files.provider).href)
  const { features } = configuration
  const live = `${url}/live`
  const known = features.resourceIndicators.getResourceServerInfo
  const resourceIndicators = {
    ...features.resourceIndicators,
    getResourceServerInfo: (context: unknown, resource: string) =>
      known(context, resource === live ? `${url}/mcp` : resource),
  }
  const provider = await startOidcProvider({
    gateway: url,
    configuration: { ...configuration, features: { ...features, resourceIndicators } },
  })
  t.after(() => provider.close())
  const environment = { AUTH_URL: provider.issuer, PROVIDER: 'oidc', CLIENT_ID: 'x', CLIENT_SECRET: 'y'.repeat(40) }
  const { config } = await loadConfiguration({ environment, config: files.config })
  const { url: talkative } = await listen(t, createTalkativeServer())
  const gateway = await openLiveGateway(t, {
    port: gatewayPort,
    issuer: provider.issuer,
    client: CLIENTS.basic,
    config: {
      ...config,
      upstreams: { ...config.upstreams, '/live': talkative },
      rules: [...(config.rules ?? []), { path: '/live', roles: ['*'], bearer: true, scopes: ['mcp:tools'] }],
    },
  })
  await runServer(t, files.server, `http://127.0.0.1:${serverPort}`)
  const { url: home } = await listen(
    t,
    createServer((_, response) => response.end('You can close this tab.')),
  )
  const alice = createPerson(home, ALICE)
  const { kept, provider: memory } = createMemory(`${home}/done`)
  /** Of every answer. */
  const answers: string[] = []
  const watched: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    const { pathname } = new URL(String(input))
    const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
    answers.push(`${init?.method ?? 'GET'} ${pathname} ${answer.status} ${type}`)
    return answer
  }

  async function connect(address: string): Promise<Client> {
    const transport = () =>
      new StreamableHTTPClientTransport(new URL(address), { authProvider: memory, fetch: watched })
    const first = transport()
    await assert.rejects(new Client({ name: 'desktop', version: '1' }).connect(first as Transport), UnauthorizedError)
    const back = await alice.finish(await alice.open(kept.asked?.href ?? assert.fail('nobody was asked')))
    await first.finishAuth(new URL(back.url).searchParams.get('code') ?? assert.fail(back.url))
    const client = new Client({ name: 'desktop', version: '1' })
    await client.connect(transport() as Transport)
    t.after(() => client.close())
    return client
  }

  const client = await connect(`${url}/mcp`)
  const { content } = await client.callTool({ name: 'whoami', arguments: {} })
  assert.deepEqual(content, [{ type: 'text', text: 'You are alice' }])
  assert.deepEqual(answers.slice(0, 4), [
    'POST /mcp 401 application/json',
    'GET /.well-known/oauth-protected-resource/mcp 200 application/json',
    'GET /.well-known/oauth-authorization-server 200 application/json',
    'POST /reg 201 application/json',
  ])
  assert.equal(answers.at(-1), 'POST /mcp 200 text/event-stream')
  assert.partialDeepStrictEqual(decodeJwt(kept.tokens?.access_token ?? ''), {
    sub: 'alice',
    aud: `${url}/mcp`,
    scope: 'mcp:tools',
  })

  // Another resource of the same gateway wants a token of its own, and its stream comes through.
  answers.length = 0
  const other = await connect(live)
  assert.equal(answers[0], 'POST /live 401 application/json', 'the token for /mcp is not for /live')
  assert.equal(decodeJwt(kept.tokens?.access_token ?? '').aud, live)
  const told = new Promise<void>(resolve =>
    other.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve()),
  )
  await until(() => answers.includes('GET /live 200 text/event-stream'))
  await other.callTool({ name: 'grow', arguments: {} })
  await told
  assert.deepEqual(
    (await other.listTools()).tools.map(({ name }) => name),
    ['grow', 'grown'],
  )
  assert.ok(gateway.events().includes('token_refused'))
  assert.ok(!JSON.stringify(gateway.lines).includes(kept.tokens?.access_token ?? ''))
})
