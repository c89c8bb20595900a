import { chainFault, MAX_CERTIFICATE_MESSAGE_BYTES } from './client-chain.ts'
import { HANDSHAKE } from './client-hello.ts'
import { RECORD_HEADER_BYTES, RecordOpener } from './record-opener.ts'

const CHANGE_CIPHER_SPEC = 0x14
const ALERT = 0x15
const APPLICATION_DATA = 0x17

const MESSAGE_HEADER_BYTES = 4
const CLIENT_HELLO = 1
const CERTIFICATE = 11
const CLIENT_KEY_EXCHANGE = 16
const FINISHED = 20
const COMPRESSED_CERTIFICATE = 25

/** A message whose header has arrived. */
interface Message {
  readonly type: number
  /** Bytes that have not arrived. */
  missing: number
  /** What has arrived of certificates. */
  readonly body: Uint8Array | undefined
}

/**
 * Looks at the records of a client before OpenSSL gets them, and judges the certificates in them. OpenSSL has to process a record before
 * the next one is judged: with TLS 1.3 those behind the ClientHello are encrypted.
 */
export class ClientFlight {
  #opener: RecordOpener | undefined
  /** The header of a message, as far as it has arrived. */
  #header: number[] = []
  #message: Message | undefined
  #isOver = false

  /** Whether the next records contain no certificates. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Sets the secret of the client in a handshake of TLS 1.3, by which its next records are encrypted. */
  decryptWith(suite: string, secret: Uint8Array): void {
    this.#opener = new RecordOpener(suite, secret)
    this.#header = []
    this.#message = undefined
  }

  /** Returns why OpenSSL must not get a record; undefined if it may. */
  faultOf(record: Uint8Array): string | undefined {
    const type = record[0] ?? 0
    switch (type) {
      case CHANGE_CIPHER_SPEC:
      case ALERT:
        return undefined
      case HANDSHAKE:
        return this.#opener === undefined
          ? this.#faultOfMessages(record.subarray(RECORD_HEADER_BYTES))
          : 'it has sent a message of the handshake that is not encrypted'
      case APPLICATION_DATA: {
        const opened = this.#opener?.open(record)
        if (opened === undefined) return 'it has sent a record that cannot be decrypted'
        return opened.type === HANDSHAKE ? this.#faultOfMessages(opened.content) : undefined
      }
      default:
        return `it has sent a record of the unknown type ${type}`
    }
  }

  #faultOfMessages(content: Uint8Array): string | undefined {
    for (let at = 0; at < content.length;) {
      if (this.#message === undefined) {
        this.#header.push(content[at++]!)
        if (this.#header.length < MESSAGE_HEADER_BYTES) continue
        const fault = this.#begin()
        if (fault !== undefined || this.#isOver) return fault
      }
      at += this.#append(content.subarray(at))
      if (this.#message!.missing > 0) continue
      const { type, body } = this.#message!
      this.#message = undefined
      // It is not known yet whether what follows has to be encrypted.
      if (type === CLIENT_HELLO && at < content.length)
        return 'it has sent more than its ClientHello in one record'
      const fault = body && chainFault(body, this.#opener !== undefined)
      if (fault !== undefined) return fault
    }
    return undefined
  }

  /** Begins the message whose header is complete. Returns why it must not be completed. */
  #begin(): string | undefined {
    const [type, high, middle, low] = this.#header as [number, number, number, number]
    const length = (high << 16) | (middle << 8) | low
    this.#header = []
    this.#isOver = type === (this.#opener === undefined ? CLIENT_KEY_EXCHANGE : FINISHED)
    if (type === COMPRESSED_CERTIFICATE)
      return 'it has shown compressed certificates, for which no server asks'
    const isChain = type === CERTIFICATE
    if (isChain && length > MAX_CERTIFICATE_MESSAGE_BYTES)
      return `it has shown certificates of ${length} bytes, and ${MAX_CERTIFICATE_MESSAGE_BYTES} is the limit`
    this.#message = { type, missing: length, body: isChain ? new Uint8Array(length) : undefined }
    return undefined
  }

  /** Adds bytes to the message. Returns how many of them belong to it. */
  #append(bytes: Uint8Array): number {
    const message = this.#message!
    const part = bytes.subarray(0, message.missing)
    message.body?.set(part, message.body.length - message.missing)
    message.missing -= part.length
    return part.length
  }
}
