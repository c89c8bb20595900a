import { OpCode, Reader, readConnectRequest, readMultiRequest, Xid } from '@zabra/protocol'

const names = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]))

/** What a client sent, as words: one for each frame. The first frame of a connection is the handshake. */
export class FrameLog {
  readonly entries: string[] = []
  readonly #partialFrames = new Map<object, Uint8Array>()
  readonly #withHandshake: Set<object>

  /** `known` are the connections whose handshake has gone by. */
  constructor(known: Iterable<object>) {
    this.#withHandshake = new Set(known)
  }

  /** Takes the next bytes of a connection. */
  take(wire: object, chunk: Uint8Array): void {
    let bytes = join(this.#partialFrames.get(wire) ?? new Uint8Array(0), chunk)
    for (;;) {
      if (bytes.length < 4) break
      const length = new DataView(bytes.buffer, bytes.byteOffset).getInt32(0)
      if (bytes.length < 4 + length) break
      this.entries.push(this.#describe(wire, new Reader(bytes, 4, 4 + length)))
      bytes = bytes.subarray(4 + length)
    }
    this.#partialFrames.set(wire, bytes.slice())
  }

  splice(): string[] {
    return this.entries.splice(0)
  }

  #describe(wire: object, reader: Reader): string {
    if (!this.#withHandshake.has(wire)) {
      this.#withHandshake.add(wire)
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

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}
