import { epochOf, ProtocolError, Reader, readText, textByteLength, Writer, writeText } from '@zabra/protocol'
import { NO_VALUE, PeerState, type Vote } from './vote.ts'

/** A message on the election port: the state and the vote of a server. */
export interface Notification {
  readonly state: PeerState
  readonly vote: Vote
  /** Version of the message format: 2 since 3.5, 1 and 0 for older releases. */
  readonly version: number
  /** Text of the sender's active configuration; absent before version 2. */
  readonly configuration?: string
}

const VERSION = 2
/** State, leader, zxid, round. */
const BARE_BYTES = 28
/** State, leader, zxid, round, epoch, and a version that cannot be relied on. */
const UNVERSIONED_BYTES = 40
/** The last round. Leaves room for increments that stay exact as a number. */
export const MAX_ROUND = 2 ** 52

const states: readonly PeerState[] = ['looking', 'following', 'leading', 'observing']

/** Encodes the payload of a message, always of version 2 and with the configuration (quorum-protocol 4). */
export function encodeNotification(state: PeerState, vote: Vote, configuration: string): Uint8Array {
  const text = new Uint8Array(textByteLength(configuration))
  writeText(configuration, text, 0)
  const writer = new Writer(BARE_BYTES + 16 + text.length)
  writer.int(PeerState[state])
  writer.longNumber(vote.leader)
  writer.longNumber(vote.zxid)
  writer.longNumber(vote.round)
  writer.longNumber(vote.epoch)
  writer.int(VERSION)
  writer.buffer(text)
  return writer.take()
}

/**
 * Decodes a payload of any release from 3.3 to 3.9 (quorum-protocol 4):
 *
 * | bytes | format |
 * | --- | --- |
 * | 28 | before 3.4: the epoch is that of the zxid, and there is no version |
 * | 36 | 3.4.0 to 3.4.5: rejected, as in later releases |
 * | 40 | 3.4.6 and later: treated as version 0 |
 * | more, version up to 1 | without configuration |
 * | 44 and more, version 2 and up | with configuration |
 *
 * Throws a `ProtocolError` for any other payload.
 */
export function decodeNotification(payload: Uint8Array): Notification {
  const reader = new Reader(payload)
  const code = reader.int()
  const state = states[code]
  if (state === undefined)
    throw new ProtocolError(`Expected a state from 0 to 3, got ${code}`, 0, 'the state')
  const [leader, zxid, round] = [readLong(reader), readLong(reader), readRound(reader)]
  if (payload.length === BARE_BYTES)
    return {
      state,
      vote: { leader, zxid, round, epoch: zxid === NO_VALUE ? NO_VALUE : epochOf(zxid) },
      version: 0,
    }
  const vote = { leader, zxid, round, epoch: readLong(reader) }
  const version = reader.int()
  if (payload.length === UNVERSIONED_BYTES) return { state, vote, version: 0 }
  return version < 2
    ? { state, vote, version }
    : { state, vote, version, configuration: readConfigurationText(reader) }
}

/** Returns how many bytes of a payload belong to its notification; those of a member extension may follow. */
export function notificationBytes(payload: Uint8Array): number {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length)
  const head = UNVERSIONED_BYTES + 4
  return payload.length < head || view.getInt32(UNVERSIONED_BYTES - 4) < 2
    ? payload.length
    : head + Math.max(0, view.getInt32(UNVERSIONED_BYTES))
}

function readConfigurationText(reader: Reader): string {
  const text = reader.raw(reader.int())
  return readText(text, 0, text.length)
}

/** Reads a long that is exact as a number, or `NO_VALUE`. */
function readLong(reader: Reader): number {
  const value = reader.long()
  const number = Number(value)
  if (number !== NO_VALUE && !Number.isSafeInteger(number)) throw inexact(reader, value)
  return number
}

function readRound(reader: Reader): number {
  const round = readLong(reader)
  if (round > MAX_ROUND) throw inexact(reader, BigInt(round))
  return round
}

function inexact(reader: Reader, value: bigint): ProtocolError {
  return new ProtocolError(
    `Expected a number that can be incremented exactly, got ${value}`,
    reader.offset - 8,
    'a vote',
  )
}
