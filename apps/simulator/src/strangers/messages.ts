import { Writer } from '@zabra/protocol'
import type { Prng } from '@zabra/testing'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

/** Numbers at the ends of what a protocol or a server can count. */
const EXTREMES: readonly bigint[] = [
  0n,
  1n,
  -1n,
  2n ** 20n,
  2n ** 31n - 1n,
  2n ** 40n,
  2n ** 52n,
  2n ** 53n,
  2n ** 63n - 1n,
  -(2n ** 63n),
]
/** Accepted epochs: near, at the jump that a leader follows, and at the last one. */
const EPOCHS: readonly bigint[] = [0n, 3n, 900n, 1025n, 100_000n, 2_097_148n, 2_097_149n, 2_097_150n]
const LAST_ROUND = 2n ** 52n
const ROUNDS: readonly bigint[] = [1n, 900n, 2n ** 20n, 2n ** 21n, 2n ** 40n]

const zxidOf = (epoch: bigint): bigint => BigInt.asIntN(64, epoch << 32n)

/** Returns bytes of another protocol, or of none. */
export function garbage(prng: Prng): Uint8Array {
  const kind = prng.pick(['http', 'tls', 'length', 'random'] as const)
  if (kind === 'http') return text('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  if (kind === 'tls') return Uint8Array.of(0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, ...prng.bytes(32))
  if (kind === 'length')
    return Uint8Array.of(
      ...prng.pick([
        [0x7f, 255, 255, 255],
        [128, 0, 0, 0],
        [0, 0, 0, 0],
      ]),
    )
  return prng.bytes(prng.integer(1, 200))
}

/** Returns the hello of a server on the election port. */
export function hello(id: number): Uint8Array {
  const address = text(`s${id}:3888`)
  const writer = new Writer(64)
  writer.long(-65_536n)
  writer.longNumber(id)
  writer.buffer(address)
  return writer.take()
}

/** Returns a vote with values that a member may not be able to count on from. */
export function vote(prng: Prng, servers: number): Uint8Array {
  const writer = new Writer(512)
  writer.int(prng.pick([0, 0, 0, 0, 1, 2, 2, 3, 7]))
  writer.long(BigInt(prng.integer(1, servers)))
  writer.long(prng.chance(0.5) ? zxidOf(prng.pick(EPOCHS)) : prng.pick(EXTREMES))
  writer.long(round(prng))
  writer.long(prng.chance(0.8) ? prng.pick(EPOCHS) : prng.pick(EXTREMES))
  writer.int(2)
  writer.buffer(text(configuration(prng, servers)))
  const body = writer.take()
  const frame = new Writer(body.length + 4)
  frame.buffer(body)
  return frame.take()
}

/** Returns a round, often one of the last that can be counted: only a server that looks for a leader at that moment may adopt one. */
const round = (prng: Prng): bigint =>
  prng.chance(0.5) ? LAST_ROUND - BigInt(prng.integer(0, 1)) : prng.pick(prng.chance(0.7) ? ROUNDS : EXTREMES)

/** Returns the text of a configuration that is newer than that of any member, and usually leaves most of them out. */
function configuration(prng: Prng, servers: number): string {
  const id = prng.integer(1, servers)
  const version = prng.pick(['0', '100000000', '7fffffff00000001', 'fffff00000000', 'x'])
  const line = `server.${id}=s${id}:2888:3888:participant;2181`
  return prng.pick([
    `${line}\nversion=${version}`,
    `version=${version}`,
    line.slice(0, 9),
    `${line}\nversion=1ffffe00000001`,
  ])
}

/** Returns a FOLLOWERINFO or OBSERVERINFO. */
export function learnerInfo(prng: Prng, id: number): Uint8Array {
  const data = new Writer(20)
  data.longNumber(id)
  data.int(prng.chance(0.9) ? 0x10000 : prng.integer(0, 3))
  data.long(prng.chance(0.8) ? 0n : prng.pick(EXTREMES))
  const writer = new Writer(64)
  writer.int(prng.chance(0.8) ? 11 : 16)
  writer.long(prng.chance(0.85) ? zxidOf(prng.pick(EPOCHS)) : prng.pick(EXTREMES))
  writer.buffer(data.take())
  writer.int(-1)
  return writer.take()
}

/** Returns a packet of the quorum port without data and identities. */
export function bare(type: number, zxid: bigint): Uint8Array {
  const writer = new Writer(20)
  writer.int(type)
  writer.long(zxid)
  writer.int(-1)
  writer.int(-1)
  return writer.take()
}

/** Returns an ACKEPOCH. */
export function ackEpoch(zxid: bigint, currentEpoch: number): Uint8Array {
  const writer = new Writer(32)
  writer.int(18)
  writer.long(zxid)
  writer.int(4)
  writer.int(currentEpoch)
  writer.int(-1)
  return writer.take()
}

/** Returns a REQUEST that deletes or overwrites a znode as a superuser. */
export function superRequest(path: string): Uint8Array {
  const body = new Writer(64)
  body.string(path)
  body.buffer(text('stolen'))
  body.int(-1)
  const data = new Writer(128)
  data.long(0x1234n)
  data.int(1)
  data.int(5)
  for (const byte of body.take()) data.byte(byte)
  const writer = new Writer(256)
  writer.int(1)
  writer.long(-1n)
  writer.buffer(data.take())
  writer.int(1)
  writer.string('super')
  writer.string('')
  return writer.take()
}
