// A real gRPC server and client, without generated code: messages are bytes.

import {
  type Client,
  credentials,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  makeClientConstructor,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js'

const asIs = (message: Buffer): Buffer => message

function method(path: string, requestStream: boolean, responseStream: boolean) {
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  }
}

const SERVICE: ServiceDefinition = {
  echo: method('/menshen.Test/Echo', false, false),
  fail: method('/menshen.Test/Fail', false, false),
  wait: method('/menshen.Test/Wait', false, false),
  collect: method('/menshen.Test/Collect', true, false),
  count: method('/menshen.Test/Count', false, true),
  chat: method('/menshen.Test/Chat', true, true),
}

export interface GrpcServer {
  readonly port: number
  /** The metadata of the latest call, by name. */
  last(): Metadata
  /** How many are open. */
  readonly open: number
  close(): void
}

export async function startGrpcServer(secure?: { cert: Buffer; key: Buffer }): Promise<GrpcServer> {
  let latest = new Metadata()
  let open = 0
  const note = (call: { metadata: Metadata }) => {
    latest = call.metadata
    open++
  }
  const echo: handleUnaryCall<Buffer, Buffer> = (call, done) => {
    note(call)
    const metadata = new Metadata()
    metadata.set('answered', 'yes')
    metadata.set('raw-bin', Buffer.from([0, 255, 7]))
    const trailer = new Metadata()
    trailer.set('at-the-end', 'of it')
    call.sendMetadata(metadata)
    open--
    done(null, call.request, trailer)
  }
  const fail: handleUnaryCall<Buffer, Buffer> = (call, done) => {
    note(call)
    open--
    done({ code: status.FAILED_PRECONDITION, details: '门 is shut' })
  }
  const wait: handleUnaryCall<Buffer, Buffer> = call => {
    note(call)
    call.on('cancelled', () => open--)
  }
  const collect: handleClientStreamingCall<Buffer, Buffer> = (call, done) => {
    note(call)
    const chunks: Buffer[] = []
    call.on('data', chunk => chunks.push(chunk))
    call.on('end', () => {
      open--
      done(null, Buffer.concat(chunks))
    })
  }
  const count: handleServerStreamingCall<Buffer, Buffer> = call => {
    note(call)
    const most = Number(call.request.toString())
    for (let n = 1; n <= most; n++) call.write(Buffer.from(String(n)))
    open--
    call.end()
  }
  const chat: handleBidiStreamingCall<Buffer, Buffer> = call => {
    note(call)
    call.on('data', chunk => call.write(chunk))
    call.on('end', () => call.end())
    call.on('close', () => open--)
    call.on('error', () => {})
  }
  const server = new Server()
  server.addService(SERVICE, { echo, fail, wait, collect, count, chat })
  const how = secure
    ? ServerCredentials.createSsl(null, [{ private_key: secure.key, cert_chain: secure.cert }])
    : ServerCredentials.createInsecure()
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', how, (error, port) => (error ? reject(error) : resolve(port))),
  )
  return {
    port,
    last: () => latest,
    get open() {
      return open
    },
    close: () => server.forceShutdown(),
  }
}

const TestClient = makeClientConstructor(SERVICE, 'menshen.Test')

/** Over TLS, with this authority. Metadata goes with each call. */
export function createGrpcClient(url: string, ca: Buffer): Client & Record<string, (...args: never[]) => never> {
  return new TestClient(new URL(url).host, credentials.createSsl(ca), {
    'grpc.enable_retries': 0,
  }) as never
}

export function metadataOf(entries: Readonly<Record<string, string | Buffer>>): Metadata {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value)
  return metadata
}

export { status }
