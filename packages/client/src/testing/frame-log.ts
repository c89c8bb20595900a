import { concatBytes, OpCode, Reader, readConnectRequest, readMultiRequest, Xid } from '@zabra/protocol'

const names = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]))

/** Describes each frame that a client sends as text. The first frame of a connection is the handshake. */
export class FrameLog {
  readonly entries: string[] = []
  readonly #partialFrames = new Map<object, Uint8Array>()
  readonly #withHandshake: Set<object>

  /** `known` are the connections whose handshake is over. */
  constructor(known: Iterable<object>) {
    this.#withHandshake = new Set(known)
  }

  /** Adds the next bytes of a connection. */
  take(connection: object, chunk: Uint8Array): void {
    let bytes = concatBytes([this.#partialFrames.get(connection) ?? new Uint8Array(0), chunk])
    for (;;) {
      if (bytes.length < 4) break
      const length = new DataView(bytes.buffer, bytes.byteOffset).getInt32(0)
      if (bytes.length < 4 + length) break
      this.entries.push(this.#describe(connection, new Reader(bytes, 4, 4 + length)))
      bytes = bytes.subarray(4 + length)
    }
    this.#partialFrames.set(connection, bytes.slice())
  }

  splice(): string[] {
    return this.entries.splice(0)
  }

  #describe(connection: object, reader: Reader): string {
    if (!this.#withHandshake.has(connection)) {
      this.#withHandshake.add(connection)
      const { sessionId, readOnly } = readConnectRequest(reader)
      return `connect ${sessionId === 0n ? 'new' : 'again'}${readOnly ? ' readOnly' : ''}`
    }
    const xid = reader.int()
    const name = names.get(reader.int()) ?? 'unknown'
    if (xid === Xid.ping || xid === Xid.auth || xid === Xid.setWatches) return name
    if (name === 'multiRead') return [name, ...readMultiRequest(reader).map(({ path }) => path)].join(' ')
    const path = reader.remaining > 4 && name !== 'multi' ? reader.string() : ''
    return path ? `${name} ${path}` : name
  }
}
