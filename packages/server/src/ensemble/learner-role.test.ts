import { makeZxid, OpCode, Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { PacketSplitter, PacketType, PROTOCOL_VERSION, writePacket } from '../core/zab/index.ts'
import { encodeLoggedTxn } from '../persistence/index.ts'
import { Ensemble } from './testing/ensemble.ts'

const MIB = 1 << 20

/** Takes the part of the leader that member 1 has elected, until that serves. What it acknowledges from then on is collected. */
async function lead(): Promise<{ ensemble: Ensemble; wire: Connection; acknowledged: number[] }> {
  const ensemble = new Ensemble(3)
  const acknowledged: number[] = []
  let leading: Connection | undefined
  await ensemble.network.listen({ port: 9 }, (wire) => {
    const say = (type: number, zxid: number, data: Uint8Array | null = null): void => {
      const writer = new Writer(64)
      writePacket(writer, type, zxid, data)
      wire.write(writer.take())
    }
    const version = new Uint8Array(4)
    new DataView(version.buffer).setInt32(0, PROTOCOL_VERSION)
    const splitter = new PacketSplitter({
      maxData: 1024,
      packet: (type, zxid) => {
        if (type === PacketType.followerInfo) say(PacketType.leaderInfo, makeZxid(1, 0), version)
        if (type === PacketType.ackEpoch) {
          say(PacketType.diff, 0)
          say(PacketType.newLeader, makeZxid(1, 0))
        }
        if (type !== PacketType.ack) return
        if (leading === undefined) say(PacketType.upToDate, -1)
        else acknowledged.push(zxid)
        leading = wire
      },
    })
    wire.setHandler({ data: (chunk) => splitter.push(chunk), drain() {}, closed() {} })
  })
  ensemble.detour = (id, port) => (id === 1 && port === 2003 ? 9 : port)
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.until('the follower', () => ensemble.server(1).serving)
  acknowledged.length = 0
  return { ensemble, wire: leading!, acknowledged }
}

it('reads no more from its leader than its disk can take, and goes on when it has', async () => {
  const { ensemble, wire, acknowledged } = await lead()
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const { disk } = ensemble.member(1)
  disk.beforeWrite = () => held
  const data = new Uint8Array(MIB)
  for (let counter = 1; counter <= 80; counter++) {
    const zxid = makeZxid(1, counter)
    const writer = new Writer(MIB + 128)
    encodeLoggedTxn(writer, {
      header: { sessionId: 1n, cxid: counter, zxid, time: 7 },
      txn: { type: OpCode.setData, path: '/', data, version: counter },
      digest: undefined,
    })
    const packet = new Writer(MIB + 256)
    writePacket(packet, PacketType.proposal, zxid, writer.take())
    wire.write(packet.take())
    await ensemble.untilIdle()
  }
  expect(acknowledged).toEqual([])
  const unread = wire.bufferedBytes / MIB
  expect(unread).toBeGreaterThan(10)
  expect(unread).toBeLessThan(18)
  disk.beforeWrite = undefined
  release()
  await ensemble.until('everything', () => acknowledged.at(-1) === makeZxid(1, 80), 2000)
})
