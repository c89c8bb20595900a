import { bytes, frame, openAcl } from '../harness/bytes.ts'
import { connectRequest, createBody, multiBody } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import type { Dice } from '../harness/seed.ts'
import { part, ttlBody, versionBody, watchBody } from '../differential/requests.ts'

const types: readonly number[] = Object.values(op)
const interesting = [0, 1, -1, -2, 2147483647, -2147483648, 65536, 1_048_575, 255]

/** A well-formed request: what mutation begins with. */
function wellFormed(dice: Dice): Buffer {
  const path = `/f/${dice.int(12)}`
  const bodies: readonly (() => [number, Buffer])[] = [
    () => [op.create, createBody(path, 'x', dice.pick([0, 1, 1, 1, 3]))],
    () => [op.create2, createBody(path, null, dice.pick([0, 1, 2, 3]))],
    () => [op.createContainer, createBody(path, '', 4)],
    () => [op.createTTL, ttlBody(path, dice.pick([0, 1, 5, 6]), BigInt(dice.pick([1, -1, 0, 1000])))],
    () => [op.delete, versionBody(path, -1)],
    () => [
      op.setData,
      bytes()
        .str(path)
        .buffer(dice.bytes(dice.int(40)))
        .int(-1)
        .done(),
    ],
    () => [op.setACL, bytes().str(path).acl(openAcl).int(-1).done()],
    () => [
      dice.pick([op.exists, op.getData, op.getChildren, op.getChildren2]),
      watchBody(path, dice.int(2) === 1),
    ],
    () => [
      dice.pick([op.getACL, op.sync, op.getEphemerals, op.getAllChildrenNumber]),
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
    () => [op.addWatch, versionBody(path, dice.int(2))],
    () => [dice.pick([op.checkWatches, op.removeWatches]), versionBody(path, dice.int(6))],
    () => [
      op.setWatches,
      bytes().long(dice.int(1000)).strings([path]).strings([path]).strings([path]).done(),
    ],
    () => [
      op.setWatches2,
      bytes().long(0).strings([path]).strings([]).strings([]).strings([path]).strings([path]).done(),
    ],
    () => [op.auth, bytes().int(0).str('digest').buffer('u:p').done()],
    () => [op.sasl, bytes().buffer(dice.bytes(8)).done()],
    () => [op.reconfig, bytes().str('a').str(null).str('server.1=x').long(-1).done()],
    () => [dice.pick([op.ping, op.whoAmI]), Buffer.alloc(0)],
  ]
  const [type, body] = dice.pick(bodies)()
  return bytes().int(dice.int(1000)).int(type).raw(body).done()
}

/** Changes a message in one to three places, with a liking for lengths, counts and opcodes. */
export function mutate(dice: Dice, message: Buffer): Buffer {
  let bad = Buffer.from(message)
  for (let times = 1 + dice.int(3); times > 0; times--) {
    const at = dice.int(Math.max(1, bad.length))
    switch (dice.int(8)) {
      case 0:
        if (bad.length > 0) bad[at] = dice.int(256)
        break
      case 1:
        if (bad.length > 0) bad[at]! ^= 1 << dice.int(8)
        break
      case 2:
        bad = bad.subarray(0, at)
        break
      case 3:
        bad = Buffer.concat([bad.subarray(0, at), dice.bytes(dice.int(20)), bad.subarray(at)])
        break
      case 4:
        if (bad.length >= 12) bad.writeInt32BE(dice.pick(interesting), 8)
        break
      case 5:
        if (bad.length >= 8) bad.writeInt32BE(dice.pick(types), 4)
        break
      case 6:
        if (bad.length >= 4) bad.writeInt32BE(dice.pick(interesting), Math.min(at, bad.length - 4))
        break
      default:
        bad = Buffer.concat([bad, bad.subarray(at)])
    }
  }
  return bad
}

/** One frame of hostile traffic, its length included. Now and then the length itself lies. */
export function hostileFrame(dice: Dice): Buffer {
  const roll = dice.int(100)
  if (roll < 3)
    return bytes()
      .int(dice.pick(interesting))
      .raw(dice.bytes(dice.int(60)))
      .done()
  if (roll < 5) return frame(dice.bytes(dice.int(120)))
  // Known opcodes, for an unknown one ends the connection and with it the frames that follow.
  if (roll < 12)
    return frame(
      bytes()
        .int(dice.int(99))
        .int(dice.pick(types.slice(0, -2)))
        .raw(dice.bytes(dice.int(120)))
        .done(),
    )
  if (roll < 20) return frame(wellFormed(dice))
  return frame(mutate(dice, wellFormed(dice)))
}

/** The first bytes of a connection: mostly a proper handshake, so that the frames behind it get in. */
export function handshake(dice: Dice): Buffer {
  const roll = dice.int(20)
  if (roll < 15) return frame(connectRequest({ timeoutMs: 1000 }))
  if (roll === 15) return dice.bytes(dice.int(80))
  if (roll === 16)
    return Buffer.concat([
      Buffer.from(dice.pick(['ruok', 'srvr', 'mntr', 'stmk', 'zzzz', 'wchp'])),
      dice.bytes(dice.int(20)),
    ])
  if (roll === 17)
    return frame(connectRequest({ resume: { id: BigInt(dice.int(2 ** 31)), password: dice.bytes(16) } }))
  return frame(mutate(dice, connectRequest({ timeoutMs: dice.pick(interesting) })))
}
