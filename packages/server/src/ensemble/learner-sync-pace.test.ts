import { makeZxid, OpCode, Writer } from '@zabra/protocol'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import type { SetDataTxn, Txn } from '../core/types.ts'
import { PacketType, writePacket } from '../core/zab/index.ts'
import { Ensemble } from './testing/ensemble.ts'
import { payloadOf, startPlayedLeader } from './testing/played-leader.ts'

const MIB = 1 << 20
const PROPOSALS = 600

const setRoot = (counter: number, bytes = 0): SetDataTxn => ({
  type: OpCode.setData,
  path: '/',
  data: new Uint8Array(bytes),
  version: counter,
})

/** Returns the packets of committed transactions with these counters of epoch 1. */
function history(first: number, last: number, txn: (counter: number) => Txn): Uint8Array {
  const writer = new Writer()
  for (let counter = first; counter <= last; counter++) {
    const zxid = makeZxid(1, counter)
    writePacket(writer, PacketType.proposal, zxid, payloadOf(zxid, txn(counter)))
    writePacket(writer, PacketType.commit, zxid)
  }
  return writer.take()
}

/**
 * Counts what each turn of the event loop applies, on a clock on which each takes a tenth of a millisecond. What the end of a turn begins
 * counts for it, too: up to twice as much as one turn does.
 */
function countTurns(
  ensemble: Ensemble,
  method: 'apply' | 'applyPart',
  counts: (txn: Txn) => boolean,
): number[] {
  const turns: number[] = []
  const { clock } = ensemble
  const monotonic = clock.monotonic.bind(clock)
  const apply = Tree.prototype[method]
  let spent = 0
  let inTurn = 0
  vi.spyOn(clock, 'monotonic').mockImplementation(() => monotonic() + spent)
  vi.spyOn(Tree.prototype, method).mockImplementation(function (this: Tree, ...args) {
    if (counts(args[1])) {
      spent += 0.1
      if (inTurn++ === 0)
        clock.immediate(() => {
          turns.push(inTurn)
          inTurn = 0
        })
    }
    return apply.apply(this, args)
  })
  onTestFinished(() => void vi.restoreAllMocks())
  return turns
}

const total = (turns: readonly number[]): number => turns.reduce((sum, count) => sum + count, 0)
const isRootData = (txn: Txn): boolean => txn.type === OpCode.setData && txn.path === '/'

describe('the history that a leader sends to a learner', () => {
  it('is applied over several turns, however much of it arrives at once', async () => {
    const ensemble = new Ensemble(3)
    const turns = countTurns(ensemble, 'apply', isRootData)
    await startPlayedLeader(ensemble, {
      sync: (send, connection) => {
        send(PacketType.diff, makeZxid(1, PROPOSALS))
        connection.write(history(1, PROPOSALS, setRoot))
      },
    })
    await ensemble.until('the follower', () => ensemble.server(1).serving)
    expect(total(turns)).toBe(PROPOSALS)
    expect(Math.max(...turns)).toBeLessThan(130)
  })

  it('is applied in steps where a transaction is large', async () => {
    const ensemble = new Ensemble(3)
    const turns = countTurns(ensemble, 'applyPart', isRootData)
    const large: Txn = { type: OpCode.multi, txns: Array.from({ length: 3000 }, (_, at) => setRoot(at)) }
    await startPlayedLeader(ensemble, {
      sync: (send, connection) => {
        send(PacketType.diff, makeZxid(1, 2))
        connection.write(history(1, 2, (counter) => (counter === 1 ? large : setRoot(counter))))
      },
    })
    await ensemble.until('the follower', () => ensemble.server(1).serving)
    expect(total(turns)).toBe(3001)
    expect(Math.max(...turns)).toBeLessThan(300)
  })

  it('is applied to the end of a large transaction that has begun when the leader is lost', async () => {
    const ensemble = new Ensemble(3)
    const turns = countTurns(ensemble, 'applyPart', isRootData)
    const large: Txn = { type: OpCode.multi, txns: Array.from({ length: 3000 }, (_, at) => setRoot(at)) }
    let isLost = false
    await startPlayedLeader(ensemble, {
      sync: (send, connection) => {
        send(PacketType.diff, makeZxid(1, 2))
        if (isLost) return void connection.write(history(2, 2, setRoot))
        connection.write(history(1, 2, (counter) => (counter === 1 ? large : setRoot(counter))))
        isLost = true
        let left = 100
        const cut = (): void =>
          turns.length < 2 && left-- > 0 ? ensemble.clock.immediate(cut) : connection.destroy()
        cut()
      },
    })
    await ensemble.until('the follower', () => ensemble.server(1).serving)
    expect(total(turns)).toBe(3001)
  })

  it('is not read while the disk truncates what the learner has, which is no silence of the leader', async () => {
    const ensemble = new Ensemble(3)
    const { disk } = ensemble.member(1)
    let round = 1
    const list = disk.list.bind(disk)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const leader = await startPlayedLeader(ensemble, {
      epoch: () => round,
      sync: (send, connection) => {
        if (round === 1) {
          send(PacketType.diff, makeZxid(1, 5))
          return void connection.write(history(1, 5, setRoot))
        }
        disk.list = (folder) => held.then(() => list(folder))
        send(PacketType.trunc, makeZxid(1, 3))
        for (let counter = 4; counter < 20; counter++)
          connection.write(history(counter, counter, () => setRoot(counter, MIB - 1000)))
      },
    })
    await ensemble.until('the follower', () => ensemble.server(1).serving)
    round = 2
    leader.connection()!.destroy()
    await ensemble.until('the truncation', () =>
      ensemble.lines.some((line) => line.includes('"how":"trunc"')),
    )
    await ensemble.advance(60_000)
    expect(leader.connection()!.bufferedBytes / MIB).toBeGreaterThan(12)
    const { length } = ensemble.lines
    release()
    await ensemble.until('the follower', () => ensemble.server(1).serving)
    expect(ensemble.lines.slice(length).filter((line) => line.includes('silent'))).toEqual([])
    expect(ensemble.server(1).role).toBe('following')
  })
})
