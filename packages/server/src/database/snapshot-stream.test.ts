import { ProtocolError, Reader, Writer } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { LaterTurns } from '../core/later-turns.ts'
import { SessionMap } from '../core/session-map.ts'
import { createOf } from '../core/testing/create-of.ts'
import { Tree } from '../core/tree/index.ts'
import { DamageError } from '../persistence/index.ts'
import { SnapshotReceiver, type ReceivedSnapshot } from './snapshot-receiver.ts'
import { spendTime } from '../testing/many-connections.ts'
import { SnapshotStream } from './snapshot-stream.ts'

const SESSIONS = [[7n, 4000]] as const

/** A tree of a leader with that many nodes below its own. */
function treeOf(nodes: number, bytes = 0): Tree {
  const tree = new Tree({ digest: true, extendedTypes: false })
  for (let zxid = 1; zxid <= nodes; zxid++)
    tree.apply(
      { sessionId: 1n, cxid: 1, zxid, time: 1 },
      createOf(`/${zxid}`, { data: new Uint8Array(bytes) }),
    )
  return tree
}

/** A clock on which a turn of the event loop begins when the test, or nothing else, runs. */
class TurnClock extends ManualClock {
  turns = 0
  override immediate(action: () => void): void {
    this.turns++
    queueMicrotask(action)
  }
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await Promise.resolve()
}

/** Returns the bytes of a stream. */
async function bytesOf(tree: Tree): Promise<Uint8Array> {
  const writer = new Writer()
  for await (const chunk of new SnapshotStream(tree, SESSIONS, new TurnClock())) writer.raw(chunk)
  return writer.take()
}

describe('SnapshotStream', () => {
  it.each([
    [500, 1],
    [501, 2],
    [1500, 3],
  ])('of %i nodes has %i chunks, each in a turn of its own', async (nodes, chunks) => {
    const clock = new TurnClock()
    let count = 0
    // The tree has four nodes of its own.
    for await (const chunk of new SnapshotStream(treeOf(nodes - 4), SESSIONS, clock).chunks)
      if (chunk.length > 0) count++
    expect([count, clock.turns]).toEqual([chunks, chunks - 1])
  })

  it('shares 2 ms of a turn with other streams, each of which has its chunk in turn', async () => {
    const clock = new ManualClock()
    const spend = spendTime(clock)
    const turns = new LaterTurns({ clock })
    const made: number[] = []
    let most = 0
    const immediate = clock.immediate.bind(clock)
    clock.immediate = (action) =>
      immediate(() => {
        const before = made.length
        action()
        most = Math.max(most, made.length - before)
      })
    await Promise.all([
      ...Array.from({ length: 10 }, async (_, index) => {
        const tree = treeOf(5, 65_536)
        const writeStored = tree.writeStored.bind(tree)
        tree.writeStored = (node, writer) => {
          made.push(index)
          spend(0.5)
          return writeStored(node, writer)
        }
        for await (const _chunk of new SnapshotStream(tree, [], clock, turns));
      }),
      clock.untilIdle(),
    ])
    await clock.untilIdle()
    expect([made.length > 40, most]).toEqual([true, 4])
    expect(made.slice(-10).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, index) => index))
  })

  it('ends a chunk at 64 KiB', async () => {
    const sizes: number[] = []
    for await (const chunk of new SnapshotStream(treeOf(4, 65_536), [], new TurnClock()))
      sizes.push(Math.floor(chunk.length / 65_536))
    expect(sizes).toEqual([1, 1, 1, 1])
  })

  it('has the sessions and the zxid of the moment at which it was made', async () => {
    const tree = treeOf(3)
    const sessions = new SessionMap([[7n, 4000]])
    const stream = new SnapshotStream(tree, sessions, new TurnClock())
    sessions.clear()
    tree.apply({ sessionId: 1n, cxid: 1, zxid: 4, time: 1 }, createOf('/4'))
    const { value } = (await stream.next()) as { value: Uint8Array }
    const reader = new Reader(value)
    expect([stream.zxid, reader.int(), reader.long(), reader.int()]).toEqual([3, 1, 7n, 4000])
  })

  it('has a thousand sessions in a chunk', async () => {
    const sessions = new SessionMap(Array.from({ length: 2500 }, (_, id) => [BigInt(id), 4000] as const))
    const stream = new SnapshotStream(treeOf(0), sessions, new TurnClock())
    const lengths: number[] = []
    for await (const chunk of stream) lengths.push(chunk.length)
    expect(lengths.map((length) => Math.round(length / 12_000))).toEqual([1, 1, 1])
  })

  it('ends when a loop over it is left', async () => {
    const stream = new SnapshotStream(treeOf(2000), [], new TurnClock())
    for await (const chunk of stream) {
      expect(chunk.length).toBeGreaterThan(0)
      break
    }
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    expect(await stream.return()).toEqual({ done: true, value: undefined })
  })
})

describe('SnapshotReceiver', () => {
  function receiver() {
    const received: ReceivedSnapshot[] = []
    const tree = new Tree({ digest: true, extendedTypes: false })
    const clock = new TurnClock()
    const sink = new SnapshotReceiver(clock, tree, 9, (one) => received.push(one))
    return { sink, tree, received, clock }
  }

  it('takes the bytes up to the signature, cut anywhere, and counts them', async () => {
    const bytes = await bytesOf(treeOf(5))
    const { sink, tree, received } = receiver()
    expect([await sink.write(new Uint8Array(0)), sink.received]).toEqual([0, 0])
    for (let at = 0; at < bytes.length - 1; at++) {
      expect(await sink.write(bytes.subarray(at, at + 1))).toBe(1)
      expect([sink.received, sink.isComplete]).toEqual([at + 1, false])
    }
    const rest = new Uint8Array(5)
    rest[0] = bytes.at(-1)!
    expect(await sink.write(rest)).toBe(1)
    expect([sink.received, sink.isComplete]).toEqual([bytes.length, true])
    expect(received).toEqual([
      expect.objectContaining({ tree, sessions: new SessionMap(SESSIONS), nodesWithoutAcl: [] }),
    ])
    expect([tree.lastZxid, tree.has('/5')]).toEqual([9, true])
    // It is over, and stays complete.
    sink.abort()
    expect(sink.isComplete).toBe(true)
    await expect(sink.write(bytes)).rejects.toThrow('is written one call at a time until it is complete')
  })

  it('parses 64 KiB in a turn of the event loop', async () => {
    const bytes = await bytesOf(treeOf(4, 65_536))
    const { sink, clock } = receiver()
    expect(await sink.write(bytes)).toBe(bytes.length)
    expect(clock.turns).toBe(Math.ceil(bytes.length / 65_536) - 1)
  })

  it('rejects bytes that are no snapshot, with the number of those before', async () => {
    const { sink, received } = receiver()
    await sink.write(new Uint8Array([0, 0, 0, 0]))
    const failure = sink.write(new Uint8Array([255, 255, 255, 255]))
    await expect(failure).rejects.toThrow(
      /^(?!Expected a snapshot).*Expected the number of access control lists, got -1/,
    )
    await expect(failure).rejects.toBeInstanceOf(DamageError)
    expect([sink.isComplete, received]).toEqual([false, []])
    await expect(sink.write(new Uint8Array(1))).rejects.toThrow('one call at a time')
    sink.abort()
  })

  it('rejects a number that cannot be read, as damage', async () => {
    const writer = new Writer()
    for (const value of [0, 1, 0x7fff_ffff, 0, 0]) writer.int(value)
    const { sink } = receiver()
    const failure = sink.write(writer.take())
    await expect(failure).rejects.toThrow('Expected a snapshot (Expected a number from -2^53 to 2^53')
    await expect(failure).rejects.toBeInstanceOf(DamageError)
    await expect(failure).rejects.toMatchObject({ cause: expect.any(ProtocolError) })
  })

  it('takes one write at a time', async () => {
    const bytes = await bytesOf(treeOf(4, 65_536))
    const { sink } = receiver()
    const first = sink.write(bytes)
    await expect(sink.write(bytes)).rejects.toThrow('one call at a time')
    expect(await first).toBe(bytes.length)
  })

  it('is not complete when it is aborted, between writes and during one', async () => {
    const bytes = await bytesOf(treeOf(4, 65_536))
    const { sink, received } = receiver()
    await sink.write(bytes.subarray(0, 100))
    sink.abort()
    await settled()
    expect([sink.isComplete, sink.received, received]).toEqual([false, 100, []])
    const other = receiver()
    const writing = other.sink.write(bytes)
    other.sink.abort()
    expect(await writing).toBe(bytes.length)
    await settled()
    expect([other.sink.isComplete, other.sink.received, other.received]).toEqual([false, 0, []])
  })
})
