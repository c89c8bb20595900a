import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ENDS_PER_TURN, PacedSocket, SLICE_BYTES } from './paced-socket.ts'

const sockets: { destroy(): unknown }[] = []
let server: Server | undefined
afterEach(() => {
  vi.restoreAllMocks()
  for (const socket of sockets.splice(0)) socket.destroy()
  server?.close()
})

/** Opens a connection. Resolves to its ends, of which one is paced. */
async function pair(isHalfOpen = true): Promise<[peer: Socket, paced: PacedSocket]> {
  server ??= createServer({ allowHalfOpen: true })
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  const peer = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [accepted] = (await once(server, 'connection')) as [Socket]
  accepted.allowHalfOpen = isHalfOpen
  const paced = new PacedSocket(accepted)
  sockets.push(peer, paced)
  return [peer.on('error', () => {}), paced]
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Resolves once so many bytes wait in the socket below. */
async function received(paced: PacedSocket, bytes: number): Promise<void> {
  paced.read(0)
  while (paced.heldBytes < bytes) await nextTurn()
}

it('bytes arrive in slices, in order, and their end after them', async () => {
  const [peer, paced] = await pair()
  const sent = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251))
  const chunks: Buffer[] = []
  paced.on('data', (chunk: Buffer) => chunks.push(chunk))
  peer.end(sent)
  await once(paced, 'end')
  expect(Buffer.concat(chunks).equals(sent)).toBe(true)
  expect(Math.max(...chunks.map(({ length }) => length))).toBe(SLICE_BYTES)
})

it('slices that take long are read over several turns, between which those of other connections are read', async () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const ends = [await pair(), await pair()] as const
  const order: number[] = []
  for (const [peer, paced] of ends) {
    peer.write(Buffer.alloc(10 * SLICE_BYTES))
    await received(paced, 10 * SLICE_BYTES)
  }
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  count()
  await Promise.all(
    ends.map(
      ([, paced], index) =>
        new Promise<void>((resolve) => {
          let bytes = 0
          paced.on('data', (chunk: Buffer) => {
            now += 1
            order.push(index)
            bytes += chunk.length
            if (bytes === 10 * SLICE_BYTES) resolve()
          })
        }),
    ),
  )
  isDone = true
  expect(turns).toBeGreaterThan(4)
  const doubles = order.filter((each, index) => each === order[index + 1])
  expect(doubles.length).toBeLessThan(6)
})

it('slices of requests end with a blank line after 128 bytes, and lose nothing', async () => {
  const [peer, paced] = await pair()
  paced.hasRequests = true
  const texts = ['\r\n\r\n', '\n\n'].map((end) => `GET / HTTP/1.1\r\nHost:a${end}`.repeat(500))
  const text = `${'x'.repeat(3000)}\r\n\r\n${texts.join('')}end`
  const slices: string[] = []
  paced.on('data', (chunk: Buffer) => slices.push(chunk.toString('latin1')))
  peer.end(text)
  await once(paced, 'end')
  expect(slices.join('')).toBe(text)
  const requests = slices.filter((slice) => slice.startsWith('GET'))
  expect(Math.max(...requests.map((slice) => slice.split('GET').length - 1))).toBeLessThanOrEqual(6)
  expect(Math.max(...slices.map(({ length }) => length))).toBe(SLICE_BYTES)
  expect(requests.length).toBeGreaterThan(150)
})

it('a connection whose reader pauses holds back what its peer sends', async () => {
  const [peer, paced] = await pair()
  paced.pause()
  peer.write(Buffer.alloc(8 << 20))
  await received(paced, SLICE_BYTES)
  for (let i = 0; i < 50; i++) await nextTurn()
  expect(paced.heldBytes).toBeLessThan(1 << 20)
  let bytes = 0
  const whole = new Promise<void>((resolve) =>
    paced.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes === 8 << 20) resolve()
    }),
  )
  paced.resume()
  await whole
})

it('what was received is not passed on once the connection is destroyed', async () => {
  const [peer, paced] = await pair()
  peer.write(Buffer.alloc(10 * SLICE_BYTES))
  await received(paced, 10 * SLICE_BYTES)
  let reads = 0
  paced.on('data', () => {
    reads++
    paced.destroy()
  })
  await once(peer, 'close')
  // A second slice was in the stream already.
  expect(reads).toBeLessThanOrEqual(2)
})

it('what is written arrives before the end, and a reset of the peer is reported', async () => {
  const [peer, paced] = await pair()
  paced.cork()
  paced.write('a')
  paced.write('b')
  paced.uncork()
  paced.end('c')
  let text = ''
  peer.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(peer, 'end')
  expect(text).toBe('abc')
  const [other, broken] = await pair()
  broken.resume()
  const failed = once(broken, 'error') as Promise<[NodeJS.ErrnoException]>
  other.resetAndDestroy()
  expect((await failed)[0].code).toBe('ECONNRESET')
})

it.each([true, false])(
  'what a peer sends before its end is passed on after a pause, and then its end (half open: %s)',
  async (isHalfOpen) => {
    const [peer, paced] = await pair(isHalfOpen)
    const sent = Buffer.from(Array.from({ length: SLICE_BYTES + 100 }, (_, i) => i % 251))
    paced.pause()
    paced.read(0)
    const ended = once(paced.source, 'end')
    peer.end(sent)
    // Part of it is in the stream, the rest in the socket below, which ends once that has been read too.
    await received(paced, sent.length)
    paced.once('data', () => void paced.pause())
    paced.resume()
    await ended
    for (let i = 0; i < 10; i++) await nextTurn()
    const rest: Buffer[] = []
    paced.on('data', (chunk: Buffer) => rest.push(chunk))
    const isEnd = once(paced, 'end')
    paced.resume()
    await isEnd
    expect(Buffer.concat(rest).equals(sent.subarray(SLICE_BYTES))).toBe(true)
    // The other direction ends with it unless it may be half open.
    if (isHalfOpen) paced.end('answer')
    let answer = ''
    peer.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    await once(peer, 'end')
    expect(answer).toBe(isHalfOpen ? 'answer' : '')
    if (!paced.destroyed) await once(paced, 'close')
  },
)

it('what a peer sends before its end is passed on after a pause where the other direction has ended before', async () => {
  const [peer, paced] = await pair()
  paced.pause()
  paced.end()
  peer.end('body')
  paced.read(0)
  if (!paced.source.destroyed) await once(paced.source, 'close')
  expect(paced.destroyed).toBe(false)
  let text = ''
  paced.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const closed = once(paced, 'close')
  paced.resume()
  await closed
  expect(text).toBe('body')
})

describe('many connections that are closed at once', () => {
  /** Takes the turns of the event loop. Returns a function that runs them, and returns how many of some events there were in each. */
  function takeTurns(): (events: () => number) => Promise<number[]> {
    const due: (() => void)[] = []
    vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    vi.spyOn(globalThis, 'setImmediate').mockImplementation(((turn: () => void) => due.push(turn)) as never)
    return async (events) => {
      const counts: number[] = []
      for (let before = events(); due.length > 0; before = events()) {
        due.shift()!()
        await new Promise<void>((resolve) => process.nextTick(resolve))
        counts.push(events() - before)
      }
      return counts
    }
  }

  it.each([
    ['ends', 'end', (peer: Socket): void => void peer.end()],
    ['failures', 'error', (peer: Socket): void => void peer.resetAndDestroy()],
  ] as const)('have their %s passed on in a few turns, some in each', async (_, event, close) => {
    const pairs: Awaited<ReturnType<typeof pair>>[] = []
    for (let i = 0; i < 2 * ENDS_PER_TURN + 3; i++) pairs.push(await pair())
    let passed = 0
    for (const [, paced] of pairs)
      paced
        .resume()
        .on('error', () => {})
        .on(event, () => passed++)
    for (let i = 0; i < 10; i++) await nextTurn()
    const runTurns = takeTurns()
    const arrived = pairs.map(
      ([, { source }]) =>
        new Promise((resolve) => void source.on(event === 'end' ? 'end' : 'close', resolve)),
    )
    for (const [peer] of pairs) close(peer)
    await Promise.all(arrived)
    expect(passed).toBe(0)
    const counts = await runTurns(() => passed)
    expect(counts.filter((count) => count > 0)).toEqual([ENDS_PER_TURN, ENDS_PER_TURN, 3])
  })

  it('say why they failed, also where a write has failed before that was passed on', async () => {
    const [peer, paced] = await pair()
    const failed = once(paced.resume(), 'error') as Promise<[NodeJS.ErrnoException]>
    for (let i = 0; i < 10; i++) await nextTurn()
    const runTurns = takeTurns()
    const lost = new Promise((resolve) => paced.source.on('close', resolve))
    peer.resetAndDestroy()
    await lost
    paced.write('x')
    expect((await failed)[0].code).toBe('ECONNRESET')
    await runTurns(() => 0)
  })
})
