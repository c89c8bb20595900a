// oxlint-disable no-restricted-imports -- a test of the sockets underneath
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { Connection, Listener } from '../network.ts'
import { nodeNetwork } from './index.ts'

/** Records the events of a connection. */
class Recorder {
  readonly connection: Connection
  readonly bytes: number[] = []
  endedCalls = 0
  keepsOpen = false
  closed: { cause: Error | undefined }[] = []
  #wake = (): void => {}

  constructor(connection: Connection) {
    this.connection = connection
  }

  listen(): this {
    this.connection.setHandler({
      data: (chunk) => {
        this.bytes.push(...chunk)
        this.#wake()
      },
      drain() {},
      ended: () => {
        this.endedCalls++
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

interface Pair {
  readonly peer: Socket
  readonly recorder: Recorder
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

function recorded(connection: Connection): Recorder {
  cleanups.push(() => connection.destroy())
  return new Recorder(connection)
}

/** Makes a connection that `nodeNetwork` has accepted. It has no handler yet. */
async function acceptedPair(): Promise<Pair> {
  let resolve: (connection: Connection) => void = () => {}
  const accepted = new Promise<Connection>((r) => (resolve = r))
  const listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0, keepAlive: true }, resolve)
  cleanups.push(() => listener.close())
  const peer = connect({ ...listener.address, noDelay: true, allowHalfOpen: true }).on('error', () => {})
  cleanups.push(() => peer.destroy())
  await once(peer, 'connect')
  return { peer, recorder: recorded(await accepted) }
}

/** Makes a connection that `nodeNetwork` has opened, which reads into the shared buffer. It has no handler yet. */
async function openedPair(): Promise<Pair> {
  const server = createServer({ noDelay: true, allowHalfOpen: true }).listen(0, '127.0.0.1')
  cleanups.push(() => server.close())
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const { port } = server.address() as AddressInfo
  const connection = await nodeNetwork.connect({ host: '127.0.0.1', port })
  const peer = ((await accepted) as [Socket])[0].on('error', () => {})
  cleanups.push(() => peer.destroy())
  return { peer, recorder: recorded(connection) }
}

describe.each([
  ['accepted', acceptedPair],
  ['opened', openedPair],
])('a connection that was %s', (_, makePair) => {
  /** Another connection receives bytes, and with that the event loop has read whatever was sent before. */
  async function meanwhile(byte: number, length = 1000): Promise<void> {
    const { peer, recorder } = await makePair()
    recorder.listen()
    peer.write(new Uint8Array(length).fill(byte))
    await recorder.until(() => recorder.bytes.length === length)
    await nextTurn()
  }

  it('knows the addresses of both sides', async () => {
    const { peer, recorder } = await makePair()
    expect(recorder.connection.remote).toEqual({ host: '127.0.0.1', port: peer.localPort })
    expect(recorder.connection.local).toEqual({ host: '127.0.0.1', port: peer.remotePort })
  })

  it('keeps bytes until it gets a handler, however late', async () => {
    const { peer, recorder } = await makePair()
    peer.write(Uint8Array.of(7))
    await meanwhile(9)
    recorder.listen()
    await recorder.until(() => recorder.bytes.length === 1)
    expect(recorder.bytes).toEqual([7])
  })

  it('delivers nothing while paused, also after resume and pause in one turn, and everything when resumed', async () => {
    const { peer, recorder } = await makePair()
    recorder.listen()
    recorder.connection.pause()
    peer.write(Uint8Array.of(1, 2, 3))
    await meanwhile(9)
    // A socket may read once more when it is resumed and paused in one turn.
    recorder.connection.resume()
    recorder.connection.pause()
    await meanwhile(9)
    peer.write(Uint8Array.of(4))
    await meanwhile(9)
    expect(recorder.bytes).toEqual([])
    recorder.connection.resume()
    await recorder.until(() => recorder.bytes.length === 4)
    expect(recorder.bytes).toEqual([1, 2, 3, 4])
  })

  it('closes with ECONNRESET when the peer resets it', async () => {
    const { peer, recorder } = await makePair()
    recorder.listen()
    peer.write(Uint8Array.of(1))
    await recorder.until(() => recorder.bytes.length === 1)
    peer.resetAndDestroy()
    await recorder.until(() => recorder.closed.length > 0)
    expect(recorder.closed).toMatchObject([{ cause: { code: 'ECONNRESET' } }])
  })

  it('closes with ECONNRESET when resumed at the latest, if the peer resets it while it is paused', async () => {
    const { peer, recorder } = await makePair()
    recorder.listen()
    recorder.connection.pause()
    peer.resetAndDestroy()
    await once(peer, 'close')
    await meanwhile(9)
    recorder.connection.resume()
    await recorder.until(() => recorder.closed.length > 0)
    expect(recorder.closed).toMatchObject([{ cause: { code: 'ECONNRESET' } }])
  })
})

describe('an accepted connection', () => {
  it('asks its handler when the peer ends, and can still write when the handler keeps it open', async () => {
    const { peer, recorder } = await acceptedPair()
    recorder.keepsOpen = true
    recorder.listen()
    peer.end(Uint8Array.of(1))
    await recorder.until(() => recorder.endedCalls === 1)
    expect([recorder.bytes, recorder.closed]).toEqual([[1], []])
    const reply = once(peer, 'data')
    recorder.connection.write(Uint8Array.of(2))
    recorder.connection.end()
    expect([...((await reply) as [Buffer])[0]]).toEqual([2])
    await recorder.until(() => recorder.closed.length > 0)
    expect(recorder.closed).toEqual([{ cause: undefined }])
  })
})

describe('a thousand accepted connections', () => {
  it('close once each when their peers end or reset them in the middle of their bytes', async () => {
    const count = 1000
    const recorders: Recorder[] = []
    let isDone = (): void => {}
    const done = new Promise<void>((resolve) => (isDone = resolve))
    let open = count
    const listener: Listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0 }, (connection) => {
      const recorder = recorded(connection).listen()
      recorders.push(recorder)
      void recorder.until(() => recorder.closed.length > 0).then(() => (--open === 0 ? isDone() : undefined))
    })
    cleanups.push(() => listener.close())
    for (let i = 0; i < count; i++) {
      const peer = connect(listener.address).on('error', () => {})
      await once(peer, 'connect')
      peer.write(Uint8Array.of(1))
      if (i % 2 === 0) peer.end()
      else peer.resetAndDestroy()
      peer.resume()
    }
    await done
    expect(recorders.map(({ closed }) => closed.length)).toEqual(Array.from({ length: count }, () => 1))
    expect(recorders.filter(({ closed }) => closed[0]!.cause === undefined).length).toBeGreaterThanOrEqual(
      count / 2,
    )
  })
})
