// oxlint-disable no-restricted-imports -- a test of the sockets underneath
import { spawn } from 'node:child_process'
import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Connection, Listener } from '../network.ts'
import { Crew, type Shared } from './crew.ts'
import { underWay } from './gathering.ts'
import { nodeNetwork } from './index.ts'

/** What threads are given, and the end of each. */
const threads = vi.hoisted((): { given: Shared[]; ended: Promise<unknown>[] } => ({ given: [], ended: [] }))
vi.mock(import('node:worker_threads'), async (original) => {
  const actual = await original()
  class Watched extends actual.Worker {
    constructor(...[program, options]: ConstructorParameters<typeof actual.Worker>) {
      super(program, options)
      threads.given.push(options!.workerData as Shared)
      threads.ended.push(new Promise((resolve) => this.once('exit', resolve)))
    }
  }
  return { ...actual, Worker: Watched }
})

const text = (words: string): Uint8Array => new TextEncoder().encode(words)

/** Connections of one listener, and what each peer has been sent by number. */
class Peers {
  readonly ours: Connection[] = []
  readonly heard: string[] = []
  readonly ended = new Set<number>()
  readonly #theirs: Connection[] = []
  #listener: Listener | undefined
  #wake = (): void => {}

  static async make(count: number): Promise<Peers> {
    const peers = new Peers()
    peers.#listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0 }, (connection) => {
      peers.ours.push(connection)
      connection.setHandler({ data() {}, drain() {}, closed: () => peers.#wake() })
      peers.#wake()
    })
    for (let number = 0; number < count; number++) {
      const connection = await nodeNetwork.connect(peers.#listener.address)
      peers.heard.push('')
      peers.#theirs.push(connection)
      const decoder = new TextDecoder()
      connection.setHandler({
        data: (chunk) => {
          peers.heard[number] += decoder.decode(chunk, { stream: true })
          peers.#wake()
        },
        drain() {},
        ended: () => (peers.ended.add(number), peers.#wake(), false),
        closed: () => peers.#wake(),
      })
      await peers.until(() => peers.ours.length > number)
    }
    return peers
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => (this.#wake = resolve))
  }

  pause(number: number): void {
    this.#theirs[number]!.pause()
  }

  resume(number: number): void {
    this.#theirs[number]!.resume()
  }

  end(number: number): void {
    this.#theirs[number]!.end()
  }

  async close(): Promise<void> {
    for (const connection of [...this.ours, ...this.#theirs]) connection.destroy()
    await this.#listener?.close()
  }
}

/** Writes, and keeps the length of what is written by the thread that gathers. */
function counted(): { writes: number[]; write: typeof writeSync } {
  const writes: number[] = []
  const write: typeof writeSync = (descriptor, bytes, offset, length) => {
    writes.push(length as number)
    return writeSync(descriptor, bytes as Uint8Array, offset as number, length as number)
  }
  return { writes, write }
}

describe('a crew', () => {
  let peers: Peers | undefined
  afterEach(async () => {
    await peers?.close()
    expect(underWay.gathering).toBeUndefined()
  })

  it.each([0, 1, 3])(
    'with %i threads beside this one tells more connections than it has places, in rounds',
    async (threads) => {
      peers = await Peers.make(700)
      const crew = new Crew()
      for (let thread = 0; thread < threads; thread++) await crew.addThread()
      let expected: string[] = peers.ours.map(() => '')
      for (let round = 0; round < 20; round++) {
        const words = (number: number): string => `round ${round} of ${number};`
        crew.gather(() => peers!.ours.forEach((connection, number) => connection.write(text(words(number)))))
        expected = expected.map((before, number) => before + words(number))
      }
      await peers.until(() => peers!.heard.every((heard, number) => heard.length >= expected[number]!.length))
      expect(peers.heard).toEqual(expected)
    },
  )

  it('copies what it takes, so that arrays can be used again at once', async () => {
    peers = await Peers.make(20)
    const bytes = text('number 00')
    new Crew().gather(() =>
      peers!.ours.forEach((connection, number) => {
        bytes.set(text(String(number).padStart(2, '0')), 7)
        expect(connection.write(bytes)).toBe(true)
        expect(connection.canReuseBuffers).toBe(true)
      }),
    )
    await peers.until(() => peers!.heard.every((heard) => heard.length === 9))
    expect(peers.heard).toEqual(peers.ours.map((_, number) => `number ${String(number).padStart(2, '0')}`))
  })

  it('keeps the order of what one connection is given to write during it and behind it', async () => {
    peers = await Peers.make(2)
    const [one, other] = peers.ours
    new Crew().gather(() => {
      one!.write(text('a'))
      other!.write(text('A'))
      one!.write(text('b'))
      one!.write(text('c'))
    })
    one!.write(text('d'))
    await peers.until(() => peers!.heard[0]!.length === 4 && peers!.heard[1]!.length === 1)
    expect(peers.heard).toEqual(['abcd', 'A'])
  })

  it('keeps that order also when the system takes nothing at first, whatever it took before', async () => {
    peers = await Peers.make(2)
    let refused = 0
    const write: typeof writeSync = (descriptor, bytes, offset, length) => {
      if (Number(length) !== 4)
        return writeSync(descriptor, bytes as Uint8Array, offset as number, length as number)
      refused++
      throw Object.assign(new Error('It does not take anything now'), { code: 'EAGAIN' })
    }
    const crew = new Crew(write)
    crew.gather(() => peers!.ours.forEach((connection) => connection.write(text('one'))))
    crew.gather(() => {
      for (const connection of peers!.ours) {
        connection.write(text(' two'))
        connection.write(text(' three'))
      }
    })
    await peers.until(() => peers!.heard.every((heard) => heard.length === 13))
    expect(peers.heard).toEqual(['one two three', 'one two three'])
    expect(refused).toBe(2)
  })

  it.each([0, 2])(
    'with %i threads beside this one has written for a connection that is ended or closed during it before that happens',
    async (threads) => {
      peers = await Peers.make(40)
      const crew = new Crew()
      for (let thread = 0; thread < threads; thread++) await crew.addThread()
      crew.gather(() => {
        for (const connection of peers!.ours) connection.write(text('last words'))
        peers!.ours[0]!.end()
        peers!.ours[1]!.destroy()
        peers!.ours[2]!.write(text(' and'))
        peers!.ours[2]!.write(text(' more'))
        peers!.ours[2]!.end()
      })
      const expected = peers.ours.map((_, number) => (number === 2 ? 'last words and more' : 'last words'))
      await peers.until(
        () => peers!.ended.size === 3 && peers!.heard.join('').length === expected.join('').length,
      )
      expect(peers.ended).toEqual(new Set([0, 1, 2]))
      expect(peers.heard).toEqual(expected)
    },
  )

  it('ends a connection behind what the system did not take at once', async () => {
    peers = await Peers.make(1)
    const refuses: typeof writeSync = () => {
      throw Object.assign(new Error('It does not take anything now'), { code: 'EAGAIN' })
    }
    new Crew(refuses).gather(() => {
      peers!.ours[0]!.write(text('last words'))
      peers!.ours[0]!.end()
    })
    await peers.until(() => peers!.ended.has(0))
    expect(peers.heard).toEqual(['last words'])
  })

  it('writes before a connection is closed, whose descriptor may be that of another one then', async () => {
    peers = await Peers.make(1)
    const { writes, write } = counted()
    new Crew(write).gather(() => {
      peers!.ours[0]!.write(text('last words'))
      peers!.ours[0]!.destroy()
      expect(writes).toEqual([10])
      expect(peers!.ours[0]!.write(text('nothing'))).toBe(true)
    })
    expect(writes).toEqual([10])
    await peers.until(() => peers!.heard[0] === 'last words')
  })

  it('leaves to the socket what the system does not take at once, which nobody writes over', async () => {
    peers = await Peers.make(2)
    peers.pause(0)
    const crew = new Crew()
    const piece = 'x'.repeat(4001)
    let pieces = 0
    for (; peers.ours[0]!.bufferedBytes === 0 && pieces < 10_000; pieces++)
      crew.gather(() => peers!.ours[0]!.write(text(piece)))
    expect(peers.ours[0]!.bufferedBytes).toBeGreaterThan(0)
    crew.gather(() => peers!.ours[1]!.write(text('o'.repeat(4001))))
    crew.gather(() => peers!.ours[0]!.write(text('the end')))
    peers.resume(0)
    await peers.until(() => peers!.heard[0]!.length === pieces * piece.length + 7)
    expect(peers.heard[0] === `${piece.repeat(pieces)}the end`).toBe(true)
  })

  it('leaves to the socket what it cannot write, and what is left of a part that it could', async () => {
    peers = await Peers.make(3)
    const halves: typeof writeSync = (descriptor, bytes, offset, length) => {
      if (Number(length) === 4)
        throw Object.assign(new Error('It does not take anything now'), { code: 'EAGAIN' })
      return writeSync(descriptor, bytes as Uint8Array, offset as number, Math.ceil(Number(length) / 2))
    }
    new Crew(halves).gather(() =>
      ['none', 'a half', 'x'].forEach((words, number) => peers!.ours[number]!.write(text(words))),
    )
    await peers.until(() => peers!.heard.join('').length === 11)
    expect(peers.heard).toEqual(['none', 'a half', 'x'])
  })

  it.each([
    ['takes what is small', 4096, 2],
    ['does not take what is large, which is as fast without it', 4097, 0],
    ['does not take what is larger than all its room', 1_000_000, 0],
  ])('%s: %i bytes', async (_, length, taken) => {
    peers = await Peers.make(2)
    const words = 'y'.repeat(length)
    const { writes, write } = counted()
    new Crew(write).gather(() => peers!.ours.forEach((connection) => connection.write(text(words))))
    expect(writes).toHaveLength(taken)
    await peers.until(() => peers!.heard.every((heard) => heard.length === length))
  })

  it('knows what it has of a connection for which it has just made room', async () => {
    peers = await Peers.make(33)
    const { writes, write } = counted()
    new Crew(write).gather(() => {
      for (const connection of peers!.ours) connection.write(text('z'.repeat(4000)))
      expect(writes).toHaveLength(32)
      peers!.ours[32]!.destroy()
    })
    await peers.until(() => peers!.heard.every((heard) => heard.length === 4000))
  })

  it('writes as often as its room is full', async () => {
    peers = await Peers.make(100)
    const { writes, write } = counted()
    new Crew(write).gather(() => {
      for (const connection of peers!.ours) connection.write(text('z'.repeat(4000)))
      // The last ones wait for the end.
      expect(writes).toHaveLength(96)
    })
    expect(writes).toHaveLength(100)
    await peers.until(() => peers!.heard.every((heard) => heard === 'z'.repeat(4000)))
  })

  it('has its threads write too, each time anew', async () => {
    peers = await Peers.make(300)
    const { writes, write } = counted()
    const crew = new Crew(write)
    await crew.addThread()
    let helped = 0
    for (let round = 1; helped < 10; round++) {
      writes.length = 0
      crew.gather(() => peers!.ours.forEach((connection) => connection.write(text('told '))))
      if (writes.length < 300) helped++
      await peers.until(() => peers!.heard.every((heard) => heard.length === round * 5))
    }
  })

  it('is told at once when its threads have written', async () => {
    peers = await Peers.make(300)
    const crew = new Crew()
    await crew.addThread()
    const wait = vi.spyOn(Atomics, 'wait')
    for (let round = 1; !wait.mock.results.some(({ value }) => value === 'ok'); round++) {
      crew.gather(() => peers!.ours.forEach((connection) => connection.write(text('told '))))
      await peers.until(() => peers!.heard.every((heard) => heard.length === round * 5))
    }
    vi.restoreAllMocks()
  })

  it('waits to the end of each time with those that it has written for before', async () => {
    peers = await Peers.make(20)
    const { writes, write } = counted()
    const crew = new Crew(write)
    for (let round = 0; round < 2; round++)
      crew.gather(() => {
        for (const connection of peers!.ours) connection.write(text('told '))
        expect(writes).toHaveLength(20 * round)
      })
    await peers.until(() => peers!.heard.every((heard) => heard === 'told told '))
  })

  it('writes to few without its threads', async () => {
    peers = await Peers.make(8)
    const { writes, write } = counted()
    const crew = new Crew(write)
    await crew.addThread()
    for (let round = 1; round <= 200; round++)
      crew.gather(() => peers!.ours.forEach((connection) => connection.write(text('told '))))
    // But for one round: a thread that begins looks whether there is something to do.
    expect(writes.length).toBeGreaterThanOrEqual(8 * 199)
    await peers.until(() => peers!.heard.every((heard) => heard === 'told '.repeat(200)))
  })

  it('does not take what is written behind the end, which fails as ever', async () => {
    peers = await Peers.make(1)
    const closed = new Promise<Error | undefined>((resolve) =>
      peers!.ours[0]!.setHandler({ data() {}, drain() {}, ended: () => true, closed: resolve }),
    )
    new Crew().gather(() => {
      peers!.ours[0]!.end()
      peers!.ours[0]!.write(text('too late'))
    })
    expect(await closed).toMatchObject({ code: 'ERR_STREAM_WRITE_AFTER_END' })
    expect(peers.heard).toEqual([''])
  })

  it('writes to a peer that sends nothing more', async () => {
    peers = await Peers.make(1)
    const [ours] = peers.ours
    const ended = new Promise<void>((resolve) =>
      ours!.setHandler({ data() {}, drain() {}, ended: () => (resolve(), true), closed() {} }),
    )
    peers.end(0)
    await ended
    new Crew().gather(() => ours!.write(text('last words')))
    await peers.until(() => peers!.heard[0] === 'last words')
  })

  it('does not take anything for a socket without a descriptor', () => {
    expect(new Crew().take(new Socket(), text('nothing'))).toBe(false)
  })

  it('ends when its action fails, with what was written until then', async () => {
    peers = await Peers.make(1)
    const fails = (): void =>
      new Crew().gather(() => {
        peers!.ours[0]!.write(text('said'))
        throw new Error('no more')
      })
    expect(fails).toThrow('no more')
    await peers.until(() => peers!.heard[0] === 'said')
  })

  it('gives up connections of which a thread has taken bytes and does not answer, and takes nothing more', async () => {
    peers = await Peers.make(20)
    const crew = new Crew()
    const closed = peers.ours.map(
      (connection) =>
        new Promise<Error | undefined>((resolve) =>
          connection.setHandler({ data() {}, drain() {}, closed: resolve }),
        ),
    )
    // A thread takes on the last places, and dies.
    const { sub } = Atomics as { sub: (control: Int32Array, index: number, value: number) => number }
    vi.spyOn(Atomics as { sub: typeof sub }, 'sub').mockImplementationOnce((control, index, value) => {
      sub(control, index, value)
      return sub(control, index, value)
    })
    vi.spyOn(Atomics, 'wait').mockReturnValue('timed-out')
    const tell = (words: string): void =>
      crew.gather(() => peers!.ours.forEach((connection) => connection.write(text(words))))
    expect(() => tell('told')).toThrow('does not answer: 16 of 20 are written')
    vi.restoreAllMocks()
    for (const cause of await Promise.all(closed)) expect(cause?.message).toContain('does not answer')
    await peers.close()
    peers = await Peers.make(20)
    tell('more')
    await peers.until(() => peers!.heard.every((heard) => heard.length >= 4))
    expect(peers.heard).toEqual(Array(20).fill('more'))
  })

  it('leaves no descriptor to a thread that comes back after all, and ends its threads', async () => {
    peers = await Peers.make(20)
    const crew = new Crew()
    await crew.addThread()
    const [shared, ended] = [threads.given.at(-1)!, threads.ended.at(-1)!]
    vi.spyOn(Atomics as { load: (control: Int32Array, index: number) => number }, 'load').mockReturnValue(19)
    vi.spyOn(Atomics, 'wait').mockReturnValue('timed-out')
    const tell = (): void =>
      crew.gather(() => peers!.ours.forEach((connection) => connection.write(text('told'))))
    expect(tell).toThrow('does not answer: 19 of 20 are written')
    vi.restoreAllMocks()
    expect(new Set(shared.descriptors)).toEqual(new Set([-1]))
    await ended
  })

  it('ends its threads when it is told to', async () => {
    const crew = new Crew()
    const from = threads.ended.length
    await crew.addThread()
    await crew.addThread()
    const ended = threads.ended.slice(from)
    await crew.end()
    expect(await Promise.all(ended)).toHaveLength(2)
  })

  it('is one for actions within actions', async () => {
    peers = await Peers.make(2)
    const [outer, inner] = [new Crew(), new Crew()]
    outer.gather(() => {
      peers!.ours[0]!.write(text('out'))
      inner.gather(() => peers!.ours[1]!.write(text('in')))
      expect(underWay.gathering).toBe(outer)
    })
    await peers.until(() => peers!.heard.join() === 'out,in')
  })
})

describe('the network of the process', () => {
  let peers: Peers | undefined
  afterEach(() => peers?.close())

  it('writes together whether or not there is a crew yet', async () => {
    peers = await Peers.make(300)
    for (let round = 1; round <= 5; round++) {
      nodeNetwork.together!(() => peers!.ours.forEach((connection) => connection.write(text('told '))))
      await peers.until(() => peers!.heard.every((heard) => heard.length === round * 5))
    }
    expect(peers.heard.every((heard) => heard === 'told '.repeat(5))).toBe(true)
  })

  it('has a crew from some turn on, and does not stay for it when all else is over', async () => {
    const program = `
      import { nodeNetwork } from ${JSON.stringify(new URL('../../dist/node/index.js', import.meta.url))}
      const accepted = new Promise((resolve) => (globalThis.accept = resolve))
      const listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0 }, accept)
      const connection = await nodeNetwork.connect(listener.address)
      const peer = await accepted
      peer.listen({ data() {}, drain() {}, closed() {} })
      connection.listen({ data() {}, drain() {}, closed() {} })
      do {
        nodeNetwork.together(() => connection.write(new Uint8Array(1)))
        await new Promise((resolve) => setImmediate(resolve))
      } while (process.report.getReport().workers.length === 0)
      connection.destroy()
      peer.destroy()
      await listener.close()
      console.log('over')
    `
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0)
    expect(out).toBe('over\n')
  })
})
