import { createRequire } from 'node:module'
import { connect as connectSocket, type Socket } from 'node:net'
import { join } from 'node:path'

/** A client library under measurement. Calls `done` with an error, or without one on success. */
export interface BenchClient {
  get(path: string, done: (error?: unknown) => void): void
  set(path: string, data: Buffer, done: (error?: unknown) => void): void
  create(path: string, data: Buffer): Promise<void>
  close(): Promise<void>
}

/** `node:net` is the lower bound: the cost of a bare socket. */
export const libraries = [
  '@zabra/client',
  '@zabra/client, batchReads',
  'node-zookeeper-client',
  'zookeeper',
  'node:net',
] as const
export type Library = (typeof libraries)[number]

/** Opens a session with a library. Third-party libraries are loaded from the `node_modules` of `folder`. */
export function open(library: Library, port: number, folder: string): Promise<BenchClient> {
  if (library === '@zabra/client') return openZabra(port, false)
  if (library === '@zabra/client, batchReads') return openZabra(port, true)
  if (library === 'node:net') return openSocket(port)
  const load = createRequire(join(folder, 'package.json'))
  return library === 'zookeeper'
    ? openBinding(load('zookeeper'), port)
    : openPlain(load('node-zookeeper-client'), port)
}

async function openZabra(port: number, batchReads: boolean): Promise<BenchClient> {
  // Imported dynamically, so that a process loads only the library that it measures.
  const { connect } = await import('@zabra/client')
  const client = await connect({ servers: `127.0.0.1:${port}`, batchReads })
  return {
    get: (path, end) => void client.getData(path).then(() => end(), end),
    set: (path, data, end) => void client.setData(path, data).then(() => end(), end),
    create: async (path, data) => void (await client.create(path, { data })),
    close: () => client.close(),
  }
}

/** All sockets share one read buffer and one callback: the least memory that Node allows. */
const sharedRead = { buffer: new Uint8Array(65_536), callback: emitHandshake }

function emitHandshake(this: Socket | void): boolean {
  return (this as Socket).emit('handshake')
}

/** A framed ConnectRequest for a new session with a timeout of 30 seconds. */
const connectRequest = new Uint8Array(49)
for (const [at, value] of [
  [0, 45],
  [16, 30_000],
  [28, 16],
] as const)
  new DataView(connectRequest.buffer).setInt32(at, value)

const noRequests = (): never => {
  throw new Error('Expected the work "memory": node:net supports no other')
}

/** Opens a bare socket with a session that is never pinged. */
function openSocket(port: number): Promise<BenchClient> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket({ port, host: '127.0.0.1', noDelay: true, onread: sharedRead })
    socket.once('error', reject)
    socket.once('connect', () => socket.write(connectRequest))
    socket.once('handshake', () => {
      socket.removeListener('error', reject).on('error', noRequests)
      const close = (): Promise<void> => Promise.resolve(void socket.destroy())
      resolve({ get: noRequests, set: noRequests, create: noRequests, close })
    })
  })
}

/** The part of `node-zookeeper-client` that the bench uses. */
interface PlainModule {
  createClient(servers: string): PlainClient
}
interface PlainClient {
  once(event: 'connected', listener: () => void): void
  connect(): void
  getData(path: string, done: (error?: unknown) => void): void
  setData(path: string, data: Buffer, done: (error?: unknown) => void): void
  create(path: string, data: Buffer, done: (error?: unknown) => void): void
  close(): void
}

function openPlain(module: PlainModule, port: number): Promise<BenchClient> {
  const client = module.createClient(`127.0.0.1:${port}`)
  return new Promise((resolve) => {
    client.once('connected', () =>
      resolve({
        get: (path, done) => client.getData(path, (error) => done(error ?? undefined)),
        set: (path, data, done) => client.setData(path, data, (error) => done(error ?? undefined)),
        create: (path, data) =>
          new Promise((created, failed) =>
            client.create(path, data, (error) => (error ? failed(error as Error) : created())),
          ),
        close: () => {
          client.close()
          return Promise.resolve()
        },
      }),
    )
    client.connect()
  })
}

/** The part of `zookeeper`, the binding of the C client, that the bench uses. */
interface BindingModule {
  constants: { ZOO_LOG_LEVEL_ERROR: number }
  Promise?: BindingClass
  default: BindingClass
}
type BindingClass = new (options: object) => BindingClient
interface BindingClient {
  on_connected(): Promise<void>
  init(options: object): void
  a_get(path: string, watch: boolean, done: (code: number) => void): void
  a_set(path: string, data: Buffer, version: number, done: (code: number) => void): void
  a_create(path: string, data: Buffer, flags: number, done: (code: number) => void): void
  once(event: string, listener: () => void): void
  close(): void
}

function openBinding(module: BindingModule | BindingClass, port: number): Promise<BenchClient> {
  const Client = typeof module === 'function' ? module : module.default
  const options = {
    connect: `127.0.0.1:${port}`,
    timeout: 30_000,
    debug_level: 1,
    host_order_deterministic: false,
  }
  const client = new Client(options)
  const failure = (code: number): Error | undefined =>
    code === 0 ? undefined : new Error(`zookeeper answered with ${code}`)
  return new Promise((resolve) => {
    client.once('connect', () =>
      resolve({
        get: (path, done) => client.a_get(path, false, (code) => done(failure(code))),
        set: (path, data, done) => client.a_set(path, data, -1, (code) => done(failure(code))),
        create: (path, data) =>
          new Promise((created, failed) =>
            client.a_create(path, data, 0, (code) => (code === 0 ? created() : failed(failure(code)!))),
          ),
        close: () => {
          client.close()
          return Promise.resolve()
        },
      }),
    )
    client.init(options)
  })
}
