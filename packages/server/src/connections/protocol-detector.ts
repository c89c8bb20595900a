import { concatBytes } from '@zabra/protocol'

/** A four-letter command at the start of a connection. */
export interface Command {
  readonly name: string
  /** Bytes that follow the name. */
  readonly argumentBytes: number
}

/** The protocol that the first bytes of a connection belong to. */
export type DetectedProtocol =
  | { readonly kind: 'command'; readonly command: Command; readonly argument: Uint8Array }
  /** The first bytes of the frames of a client. */
  | { readonly kind: 'frames'; readonly bytes: Uint8Array }

/** Collects the first bytes of a connection until they are a whole four-letter command or the length of a frame. */
export class ProtocolDetector {
  readonly #commandIn: (bytes: Uint8Array) => Command | undefined
  #bytes: Uint8Array = new Uint8Array(0)

  /** `commandIn` returns the command with which at least four bytes begin, if they begin with one. */
  constructor(commandIn: (bytes: Uint8Array) => Command | undefined) {
    this.#commandIn = commandIn
  }

  /** Adds bytes. Returns undefined while more are needed. */
  push(chunk: Uint8Array): DetectedProtocol | undefined {
    const bytes = this.#bytes.length === 0 ? chunk : concatBytes([this.#bytes, chunk])
    const command = bytes.length < 4 ? undefined : this.#commandIn(bytes)
    if (bytes.length >= 4 && command === undefined) return { kind: 'frames', bytes }
    if (command !== undefined && bytes.length >= 4 + command.argumentBytes) {
      return { kind: 'command', command, argument: bytes.subarray(4, 4 + command.argumentBytes) }
    }
    this.#bytes = bytes.slice()
    return undefined
  }
}

const HTTP_METHODS = /^(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|PRI) /

/** Returns the name of another protocol with which the first bytes of a connection begin; undefined for none that is known. */
export function foreignProtocolOf(bytes: Uint8Array): string | undefined {
  // A TLS handshake record of version 3.x.
  if (bytes[0] === 0x16 && bytes[1] === 3) return 'TLS'
  const text = String.fromCharCode(...bytes.subarray(0, 4096))
  if (!HTTP_METHODS.test(text)) return undefined
  return /^upgrade: *websocket/im.test(text) ? 'WebSocket' : 'HTTP'
}
