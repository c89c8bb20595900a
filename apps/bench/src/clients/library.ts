import { createRequire } from 'node:module'
import { join } from 'node:path'
import { connect } from '@zabra/client'

/** A client library under measurement. Calls end in `done`, which gets an error or nothing. */
export interface BenchClient {
  get(path: string, done: (error?: unknown) => void): void
  set(path: string, data: Buffer, done: (error?: unknown) => void): void
  create(path: string, data: Buffer): Promise<void>
  close(): Promise<void>
}

export const libraries = ['@zabra/client', 'node-zookeeper-client', 'zookeeper'] as const
export type Library = (typeof libraries)[number]

/** Opens a session with a library; those of others come from `folder`, which has them in its `node_modules`. */
export function open(library: Library, port: number, folder: string): Promise<BenchClient> {
  if (library === '@zabra/client') return openZabra(port)
  const load = createRequire(join(folder, 'package.json'))
  return library === 'zookeeper'
    ? openBinding(load('zookeeper'), port)
    : openPlain(load('node-zookeeper-client'), port)
}

async function openZabra(port: number): Promise<BenchClient> {
  const client = await connect({ servers: `127.0.0.1:${port}` })
  return {
    get: (path, end) => void client.getData(path).then(() => end(), end),
    set: (path, data, end) => void client.setData(path, data).then(() => end(), end),
    create: async (path, data) => void (await client.create(path, data)),
    close: () => client.close(),
  }
}

/** What is used of `node-zookeeper-client`. */
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

/** What is used of `zookeeper`, the binding of the C client. */
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
