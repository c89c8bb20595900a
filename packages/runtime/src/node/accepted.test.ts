// oxlint-disable no-restricted-imports -- a test of the sockets underneath
import { once } from 'node:events'
import { connect, createServer, Socket, type AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { Connection, Listener } from '../network.ts'
import { acceptedConnection, takesHandles } from './accepted.ts'
import { nodeNetwork } from './index.ts'
import { sharedReadBuffer } from './socket-connection.ts'

/** What an accepted connection has heard, as views and as copies. */
class Heard {
  readonly connection: Connection
  readonly chunks: Uint8Array[] = []
  readonly bytes: number[] = []
  asked = 0
  keepsOpen = false
  closed: { cause: Error | undefined }[] = []
  #wake = (): void => {}

  constructor(connection: Connection) {
    this.connection = connection
  }

  listen(): this {
    this.connection.setHandler({
      data: (chunk) => {
        this.chunks.push(chunk)
        this.bytes.push(...chunk)
        this.#wake()
      },
      drain() {},
      ended: () => {
        this.asked++
        this.#wake()
        return this.keepsOpen
      },
      closed: (cause) => {
        this.closed.push({ cause })
        this.#wake()
      },
    })
    return this
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => (this.#wake = resolve))
  }
}

const isShared = sharedReadBuffer() !== undefined
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('accepted connections', () => {
  const clients: Socket[] = []
  const servers: Heard[] = []
  let listener: Listener | undefined

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    for (const { connection } of servers.splice(0)) connection.destroy()
    await listener?.close()
    listener = undefined
  })

  /** A client and what the server has accepted for it, which nobody listens to yet. */
  async function pair(): Promise<{ client: Socket; server: Heard }> {
    let told: (connection: Connection) => void = () => {}
    const accepted = new Promise<Connection>((resolve) => (told = resolve))
    await listener?.close()
    listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0, keepAlive: true }, (one) => told(one))
    const client = connect({ ...listener.address, noDelay: true, allowHalfOpen: true }).on('error', () => {})
    clients.push(client)
    await once(client, 'connect')
    const server = new Heard(await accepted)
    servers.push(server)
    return { client, server }
  }

  /** Another connection brings so many bytes, and with them whatever was sent before. */
  async function meanwhile(byte: number, length = 1000): Promise<void> {
    const { client, server } = await pair()
    server.listen()
    client.write(new Uint8Array(length).fill(byte))
    await server.until(() => server.bytes.length === length)
    await turn()
  }

  it.skipIf(!isShared)(
    'read into the array of all connections, so that a read allocates nothing',
    async () => {
      const [one, two] = [await pair(), await pair()]
      for (const { client, server } of [one, two]) {
        server.listen()
        client.write(Uint8Array.of(1, 2, 3))
        await server.until(() => server.bytes.length === 3)
      }
      expect(one.server.chunks[0]!.buffer).toBe(two.server.chunks[0]!.buffer)
      expect(one.server.chunks[0]!.buffer).toBe((sharedReadBuffer()!.buffer as Uint8Array).buffer)
      expect([one.server.bytes, two.server.bytes]).toEqual([
        [1, 2, 3],
        [1, 2, 3],
      ])
    },
  )

  it('know both addresses', async () => {
    const { client, server } = await pair()
    expect(server.connection.remote).toEqual({ host: '127.0.0.1', port: client.localPort })
    expect(server.connection.local).toEqual({ host: '127.0.0.1', port: client.remotePort })
  })

  it('keep what comes until somebody listens, however late', async () => {
    const { client, server } = await pair()
    client.write(Uint8Array.of(7))
    await meanwhile(9)
    server.listen()
    await server.until(() => server.bytes.length === 1)
    expect(server.bytes).toEqual([7])
  })

  it('that are paused after they went on hand nothing over, and lose nothing to others that read', async () => {
    const { client, server } = await pair()
    server.listen()
    server.connection.pause()
    client.write(Uint8Array.of(1, 2, 3))
    await meanwhile(9)
    // A platform may read once more when it goes on and is paused in one turn.
    server.connection.resume()
    server.connection.pause()
    await meanwhile(9)
    client.write(Uint8Array.of(4))
    await meanwhile(9)
    expect(server.bytes).toEqual([])
    server.connection.resume()
    await server.until(() => server.bytes.length === 4)
    expect(server.bytes).toEqual([1, 2, 3, 4])
  })

  it('are told of the end of the other side, and answer it when they wish', async () => {
    const { client, server } = await pair()
    server.keepsOpen = true
    server.listen()
    client.end(Uint8Array.of(1))
    await server.until(() => server.asked === 1)
    expect([server.bytes, server.closed]).toEqual([[1], []])
    const answer = once(client, 'data')
    server.connection.write(Uint8Array.of(2))
    server.connection.end()
    expect([...((await answer) as [Buffer])[0]]).toEqual([2])
    await server.until(() => server.closed.length > 0)
    expect(server.closed).toEqual([{ cause: undefined }])
  })

  it('are told why the other side is gone when it has reset the connection', async () => {
    const { client, server } = await pair()
    server.listen()
    client.write(Uint8Array.of(1))
    await server.until(() => server.bytes.length === 1)
    client.resetAndDestroy()
    await server.until(() => server.closed.length > 0)
    expect(server.closed).toMatchObject([{ cause: { code: 'ECONNRESET' } }])
  })

  it('that are paused are told of a reset when they go on, at the latest', async () => {
    const { client, server } = await pair()
    server.listen()
    server.connection.pause()
    client.resetAndDestroy()
    await once(client, 'close')
    await meanwhile(9)
    server.connection.resume()
    await server.until(() => server.closed.length > 0)
    expect(server.closed).toMatchObject([{ cause: { code: 'ECONNRESET' } }])
  })

  it('end by the thousand, each once', async () => {
    const all = 1000
    const accepted: Heard[] = []
    let isOver = (): void => {}
    const over = new Promise<void>((resolve) => (isOver = resolve))
    let left = all
    listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0 }, (connection) => {
      const heard = new Heard(connection).listen()
      accepted.push(heard)
      void heard.until(() => heard.closed.length > 0).then(() => (--left === 0 ? isOver() : undefined))
    })
    for (let i = 0; i < all; i++) {
      const client = connect(listener.address).on('error', () => {})
      await once(client, 'connect')
      client.write(Uint8Array.of(1))
      // One half leaves with an end and the other with a reset, amid its bytes.
      if (i % 2 === 0) client.end()
      else client.resetAndDestroy()
      client.resume()
    }
    await over
    expect(accepted.map(({ closed }) => closed.length)).toEqual(Array.from({ length: all }, () => 1))
    expect(accepted.filter(({ closed }) => closed[0]!.cause === undefined).length).toBeGreaterThanOrEqual(
      all / 2,
    )
  })
})

describe('an accepted socket', () => {
  /** What becomes of an accepted socket that `change` has touched, and whether its bytes come all the same. */
  async function accepted(change: (socket: Socket) => void): Promise<{
    socket: Socket
    heard: Heard
    count: number
  }> {
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
    try {
      const [socket] = (await once(server, 'connection')) as [Socket]
      change(socket)
      const heard = new Heard(acceptedConnection(socket)).listen()
      heard.connection.pause()
      client.write(Uint8Array.of(1, 2))
      await turn()
      heard.connection.resume()
      await heard.until(() => heard.bytes.length === 2)
      const count = await new Promise<number>((resolve) => server.getConnections((_, n) => resolve(n)))
      client.end()
      await heard.until(() => heard.closed.length > 0)
      return { socket, heard, count }
    } finally {
      client.destroy()
      server.close()
      // Only once nobody is counted any more.
      await once(server, 'close')
    }
  }

  it.skipIf(!isShared)('is closed for everybody else, and its server does not wait for it', async () => {
    let wasOpen = false
    const { socket, heard, count } = await accepted((one) => (wasOpen = !one.destroyed))
    expect([wasOpen, socket.destroyed, count]).toEqual([true, true, 0])
    expect(heard.chunks[0]).not.toBeInstanceOf(Buffer)
  })

  it('stays as it is where the platform reads in another way', async () => {
    const { heard, count } = await accepted((socket) => {
      const { _handle: handle } = socket as Socket & { _handle: object }
      Object.defineProperty(handle, 'useUserBuffer', { value: undefined })
    })
    expect(count).toBe(1)
    expect(heard.chunks[0]).toBeInstanceOf(Buffer)
    expect([heard.bytes, heard.closed]).toEqual([[1, 2], [{ cause: undefined }]])
  })

  it.skipIf(!isShared)('goes to another one only where that does as expected with it', () => {
    type Options = ConstructorParameters<typeof Socket>[0]
    class WithoutArray extends Socket {
      constructor(options: Options) {
        super({ ...options, onread: undefined } as Options)
      }
    }
    class WithoutHandle extends Socket {
      constructor(options: Options) {
        super({ ...options, handle: undefined } as Options)
      }
    }
    class Unpausing extends Socket {
      override pause(): this {
        return this
      }
    }
    class Throwing extends Socket {
      constructor() {
        super()
        throw new TypeError('no such option')
      }
    }
    const verdicts = [Socket, WithoutArray, WithoutHandle, Unpausing, Throwing].map((made) =>
      takesHandles(made),
    )
    expect(verdicts).toEqual([true, false, false, false, false])
  })
})
