import { OpCode, Writer } from '@zabra/protocol'
import type { Zxid } from '../../types.ts'

/** A transaction of a simulation, with an id that distinguishes two transactions with the same zxid. */
export interface Txn {
  readonly zxid: Zxid
  readonly id: number
  readonly payload: Uint8Array
}

/** Returns a transaction whose payload contains its id. */
export function makeTxn(zxid: Zxid, id: number, type: number = OpCode.setData): Txn {
  const writer = header(zxid, type)
  writer.int(id)
  return { zxid, id, payload: writer.take() }
}

/** Decodes the payload of `makeTxn`. */
export function readTxn(zxid: Zxid, payload: Uint8Array): Txn {
  const id = new DataView(payload.buffer, payload.byteOffset).getInt32(payload.length - 4)
  return { zxid, id, payload }
}

/** Returns the payload of a reconfig to the configuration with this text. */
export function makeReconfig(zxid: Zxid, text: string): Uint8Array {
  const writer = header(zxid, OpCode.reconfig)
  writer.string('/zookeeper/config')
  writer.buffer(new TextEncoder().encode(text))
  writer.int(-1)
  return writer.take()
}

function header(zxid: Zxid, type: number): Writer {
  const writer = new Writer(64)
  writer.long(1n)
  writer.int(1)
  writer.longNumber(zxid)
  writer.longNumber(0)
  writer.int(type)
  return writer
}
