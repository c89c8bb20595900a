import { bytes, frame, openAcl } from '../harness/bytes.ts'
import { connectRequest, createBody, multiBody } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import type { Prng } from '../harness/prng.ts'
import { part, ttlBody, versionBody, watchBody } from '../differential/requests.ts'

const types: readonly number[] = Object.values(op)
const boundaryValues = [0, 1, -1, -2, 2147483647, -2147483648, 65536, 1_048_575, 255]

/** Returns a well-formed request as the basis of a mutation. */
function wellFormed(prng: Prng): Buffer {
  const path = `/f/${prng.int(12)}`
  const bodies: readonly (() => [number, Buffer])[] = [
    () => [op.create, createBody(path, 'x', prng.pick([0, 1, 1, 1, 3]))],
    () => [op.create2, createBody(path, null, prng.pick([0, 1, 2, 3]))],
    () => [op.createContainer, createBody(path, '', 4)],
    () => [op.createTTL, ttlBody(path, prng.pick([0, 1, 5, 6]), BigInt(prng.pick([1, -1, 0, 1000])))],
    () => [op.delete, versionBody(path, -1)],
    () => [
      op.setData,
      bytes()
        .str(path)
        .buffer(prng.bytes(prng.int(40)))
        .int(-1)
        .done(),
    ],
    () => [op.setACL, bytes().str(path).acl(openAcl).int(-1).done()],
    () => [
      prng.pick([op.exists, op.getData, op.getChildren, op.getChildren2]),
      watchBody(path, prng.int(2) === 1),
    ],
    () => [
      prng.pick([op.getACL, op.sync, op.getEphemerals, op.getAllChildrenNumber]),
      bytes().str(path).done(),
    ],
    () => [
      op.multi,
      multiBody([
        part.create(path, 1),
        part.set(path),
        part.check(path),
        part.delete(path),
        part.ttl(`${path}/t`, 5),
      ]),
    ],
    () => [op.multiRead, multiBody([part.get(path), part.list(path)])],
    () => [op.addWatch, versionBody(path, prng.int(2))],
    () => [prng.pick([op.checkWatches, op.removeWatches]), versionBody(path, prng.int(6))],
    () => [
      op.setWatches,
      bytes().long(prng.int(1000)).strings([path]).strings([path]).strings([path]).done(),
    ],
    () => [
      op.setWatches2,
      bytes().long(0).strings([path]).strings([]).strings([]).strings([path]).strings([path]).done(),
    ],
    () => [op.auth, bytes().int(0).str('digest').buffer('u:p').done()],
    () => [op.sasl, bytes().buffer(prng.bytes(8)).done()],
    () => [op.reconfig, bytes().str('a').str(null).str('server.1=x').long(-1).done()],
    () => [prng.pick([op.ping, op.whoAmI]), Buffer.alloc(0)],
  ]
  const [type, body] = prng.pick(bodies)()
  return bytes().int(prng.int(1000)).int(type).raw(body).done()
}

/** Mutates a message in one to three places, with a preference for lengths, counts and opcodes. */
export function mutate(prng: Prng, message: Buffer): Buffer {
  let bad = Buffer.from(message)
  for (let times = 1 + prng.int(3); times > 0; times--) {
    const at = prng.int(Math.max(1, bad.length))
    switch (prng.int(8)) {
      case 0:
        if (bad.length > 0) bad[at] = prng.int(256)
        break
      case 1:
        if (bad.length > 0) bad[at]! ^= 1 << prng.int(8)
        break
      case 2:
        bad = bad.subarray(0, at)
        break
      case 3:
        bad = Buffer.concat([bad.subarray(0, at), prng.bytes(prng.int(20)), bad.subarray(at)])
        break
      case 4:
        if (bad.length >= 12) bad.writeInt32BE(prng.pick(boundaryValues), 8)
        break
      case 5:
        if (bad.length >= 8) bad.writeInt32BE(prng.pick(types), 4)
        break
      case 6:
        if (bad.length >= 4) bad.writeInt32BE(prng.pick(boundaryValues), Math.min(at, bad.length - 4))
        break
      default:
        bad = Buffer.concat([bad, bad.subarray(at)])
    }
  }
  return bad
}

/** Returns a fuzzed frame with its length, which is false in some cases. */
export function fuzzedFrame(prng: Prng): Buffer {
  const roll = prng.int(100)
  if (roll < 3)
    return bytes()
      .int(prng.pick(boundaryValues))
      .raw(prng.bytes(prng.int(60)))
      .done()
  if (roll < 5) return frame(prng.bytes(prng.int(120)))
  // Known opcodes only: an unknown one closes the connection before the frames that follow.
  if (roll < 12)
    return frame(
      bytes()
        .int(prng.int(99))
        .int(prng.pick(types.slice(0, -2)))
        .raw(prng.bytes(prng.int(120)))
        .done(),
    )
  if (roll < 20) return frame(wellFormed(prng))
  return frame(mutate(prng, wellFormed(prng)))
}

/** Returns the first bytes of a connection: mostly a valid handshake, so that the server reads the frames after it. */
export function handshake(prng: Prng): Buffer {
  const roll = prng.int(20)
  if (roll < 15) return frame(connectRequest({ timeoutMs: 1000 }))
  if (roll === 15) return prng.bytes(prng.int(80))
  if (roll === 16)
    return Buffer.concat([
      Buffer.from(prng.pick(['ruok', 'srvr', 'mntr', 'stmk', 'zzzz', 'wchp'])),
      prng.bytes(prng.int(20)),
    ])
  if (roll === 17)
    return frame(connectRequest({ resume: { id: BigInt(prng.int(2 ** 31)), password: prng.bytes(16) } }))
  return frame(mutate(prng, connectRequest({ timeoutMs: prng.pick(boundaryValues) })))
}
