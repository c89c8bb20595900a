import { ProtocolError, Reader, Writer } from '@zabra/protocol'
import type { ServerId } from '../quorum/index.ts'

/** The longest time for which a member may ask for a permit to stop, in milliseconds. */
export const MAX_STOP_PERMIT_MS = 3_600_000

/** What a learner sends about its permit to stop (quorum-protocol 18.7). */
export interface StopPermitRequest {
  /** Above 0: the leader answers with the same number. 0: a permit that the learner holds, of this leader or one before. */
  readonly number: number
  /** For how long, in milliseconds; 0 gives a permit back. */
  readonly forMs: number
}

/** The decision of a leader about a request. */
export interface StopPermitAnswer {
  readonly number: number
  readonly isGranted: boolean
  /** The voters that the leader misses, or that are behind. */
  readonly missing: readonly ServerId[]
  /** The members that hold a permit to stop. */
  readonly stopping: readonly ServerId[]
}

/** The result of a request: the answer of a leader, or why there is none. */
export type StopPermitResult = Omit<StopPermitAnswer, 'number'> | { readonly unavailable: string }

/** Whether a server may stop, and the voters that are missing. */
export type StopDecision = { readonly isAllowed: boolean; readonly missing: readonly ServerId[] }

const FIELD = 'a permit to stop'
/** The most servers in an answer. */
const MAX_SERVERS = 1000

export function encodeStopPermitRequest({ number, forMs }: StopPermitRequest): Uint8Array {
  const writer = new Writer(12)
  writer.longNumber(number)
  writer.int(forMs)
  return writer.take()
}

export function decodeStopPermitRequest(data: Uint8Array | null): StopPermitRequest {
  const reader = readerOf(data)
  const [number, forMs] = [reader.longNumber(), reader.int()]
  if (number < 0 || forMs < 0 || forMs > MAX_STOP_PERMIT_MS)
    throw new ProtocolError(`Expected a time from 0 to ${MAX_STOP_PERMIT_MS} ms, got ${forMs}`, 0, FIELD)
  return { number, forMs }
}

export function encodeStopPermitAnswer({
  number,
  isGranted,
  missing,
  stopping,
}: StopPermitAnswer): Uint8Array {
  const writer = new Writer(64)
  writer.longNumber(number)
  writer.bool(isGranted)
  for (const ids of [missing, stopping]) {
    writer.int(ids.length)
    for (const id of ids) writer.longNumber(id)
  }
  return writer.take()
}

export function decodeStopPermitAnswer(data: Uint8Array | null): StopPermitAnswer {
  const reader = readerOf(data)
  const [number, isGranted] = [reader.longNumber(), reader.bool()]
  const readIds = (): ServerId[] => {
    const count = reader.int()
    if (count < 0 || count > MAX_SERVERS)
      throw new ProtocolError(`Expected at most ${MAX_SERVERS} servers, got ${count}`, 0, FIELD)
    return Array.from({ length: count }, () => reader.longNumber())
  }
  const [missing, stopping] = [readIds(), readIds()]
  return { number, isGranted, missing, stopping }
}

function readerOf(data: Uint8Array | null): Reader {
  if (data === null) throw new ProtocolError('Expected data, got null', 0, FIELD)
  return new Reader(data)
}
