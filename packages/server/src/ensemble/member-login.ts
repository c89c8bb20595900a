import { ProtocolError } from '@zabra/protocol'
import { NetworkError, type AbortSignalLike, type Connection } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'

/** The kinds of ports between members. A proof for one is of no use on the other. */
export type MemberPort = 'election' | 'quorum'

/** A connection that this server opens to another member. */
export interface LoginTarget {
  readonly id: ServerId
  readonly port: MemberPort
}

/** The result of a login on an accepted connection. */
export interface AcceptedLogin {
  /** Returns why the owner of the credentials may not be a server; undefined when it may. */
  refusalOf(id: ServerId): string | undefined
  /** Whether the other side has proved anything: a login may be optional. */
  readonly isAuthenticated: boolean
  /** The bytes after the login. */
  readonly rest: Uint8Array
}

/** Reads the login of another member from an accepted connection, and answers it. */
export interface LoginReader {
  /** Takes bytes; returns the login once it is complete. Throws a `ProtocolError` that says why it is refused. */
  push(chunk: Uint8Array): AcceptedLogin | undefined
}

/** A kind of login between members. */
export interface LoginMethod {
  accept(connection: Connection, port: MemberPort): LoginReader
  /**
   * Logs in on a connection that this server has opened. Resolves to whether the other side has proved itself: a login may be optional.
   * Rejects with an `Error` when the other side refuses.
   */
  open(stream: LoginStream, target: LoginTarget): Promise<boolean>
}

/** Collects the bytes of a login, which may arrive in pieces, up to a limit. */
export class LoginBuffer {
  #bytes: Uint8Array = new Uint8Array(0)

  /** Throws a `ProtocolError` when the other side sends more than any login needs. */
  push(chunk: Uint8Array): void {
    if (this.#bytes.length + chunk.length > MAX_LOGIN_BYTES)
      throw new ProtocolError(
        `Expected at most ${MAX_LOGIN_BYTES} bytes before an answer, got more`,
        0,
        'a login',
      )
    const all = new Uint8Array(this.#bytes.length + chunk.length)
    all.set(this.#bytes)
    all.set(chunk, this.#bytes.length)
    this.#bytes = all
  }

  /** The bytes that are not taken. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** Takes bytes from the front. */
  take(length: number): Uint8Array {
    const taken = this.#bytes.slice(0, length)
    this.#bytes = this.#bytes.subarray(length)
    return taken
  }
}

/** Above the chunks of a socket: the first messages may follow a login at once. */
const MAX_LOGIN_BYTES = 128 * 1024

/** The bytes of a connection during a login that this server has begun. */
export class LoginStream {
  readonly #connection: Connection
  readonly #buffer = new LoginBuffer()
  #failure: Error | undefined
  #wake: () => void = () => {}

  constructor(connection: Connection) {
    this.#connection = connection
    connection.setHandler({
      data: (chunk) => this.#onData(chunk),
      drain() {},
      closed: (cause) => this.fail(cause ?? new Error('it closed the connection')),
    })
  }

  write(bytes: Uint8Array): void {
    this.#connection.write(bytes)
  }

  /** Resolves when `parse` returns something for the bytes that have arrived. Rejects when the connection fails or `parse` throws. */
  async read<T>(parse: (buffer: LoginBuffer) => T | undefined): Promise<T> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      const result = parse(this.#buffer)
      if (result !== undefined) return result
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Returns the bytes that the login has not read. */
  takeRest(): Uint8Array {
    return this.#buffer.take(this.#buffer.bytes.length)
  }

  /** Ends a `read` with an error. */
  fail(error: Error): void {
    this.#failure ??= error
    this.#wake()
  }

  #onData(chunk: Uint8Array): void {
    try {
      this.#buffer.push(chunk)
    } catch (error) {
      return this.fail(error as Error)
    }
    this.#wake()
  }
}

/** The result of a login on a connection that this server has opened. */
export type OpenedLogin = Pick<AcceptedLogin, 'isAuthenticated' | 'rest'>

/**
 * Logs in on a connection that this server has opened. The caller sets the handler of the connection in the turn in which this resolves. Rejects with a `NetworkError`, and destroys the connection, when the login fails or `signal` aborts.
 */
export async function logIn(
  method: LoginMethod,
  connection: Connection,
  target: LoginTarget,
  signal: AbortSignalLike,
): Promise<OpenedLogin> {
  const stream = new LoginStream(connection)
  const abort = (): void => stream.fail(new Error('it did not answer in time'))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    const isAuthenticated = await method.open(stream, target)
    return { isAuthenticated, rest: stream.takeRest() }
  } catch (error) {
    connection.destroy()
    const reason = error instanceof Error ? error.message : String(error)
    throw new NetworkError(`The login at server ${target.id} failed: ${reason}`, 'EACCES', { cause: error })
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
