import { describe, expect, it } from 'vitest'
import { PacketType, QuorumPacketParser } from './quorum-packet-parser.ts'

const packet = (type: number): Uint8Array => {
  const view = new DataView(new ArrayBuffer(20))
  view.setInt32(0, type)
  view.setInt32(12, -1)
  return new Uint8Array(view.buffer)
}

describe('the parser of packets between members', () => {
  it('reads on behind the packets that only Zabra sends, and stops at unknown ones', () => {
    const types: number[] = []
    const parser = new QuorumPacketParser(({ type }) => types.push(type))
    for (const type of [0x7a01, 0x7a02, 0x7a03, 0x7a04, 0x7a05, PacketType.UPTODATE])
      parser.push(packet(type))
    expect(types).toEqual([0x7a01, 0x7a02, 0x7a03, 0x7a04, 0x7a05, PacketType.UPTODATE])
    expect(parser.isBroken).toBe(false)
    parser.push(packet(20))
    expect(parser.isBroken).toBe(true)
  })
})
