import { OpCode, Writer } from '@zabra/protocol'
import type { Zxid } from '../../types.ts'
import type { Txn } from './simulated-disk.ts'

/** The bytes of a transaction: a header, and a number that tells two with the same zxid apart. */
export function makeTxn(zxid: Zxid, id: number): Txn {
  const writer = header(zxid, OpCode.setData)
  writer.int(id)
  return { zxid, id, payload: writer.take() }
}

/** The transaction that such bytes hold. */
export function readTxn(zxid: Zxid, payload: Uint8Array): Txn {
  const id = new DataView(payload.buffer, payload.byteOffset).getInt32(payload.length - 4)
  return { zxid, id, payload }
}

/** A change of the configuration to this text, as it is logged. */
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
