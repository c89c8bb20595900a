import { HelloReader, type Hello, type ReceivedHello } from './election-hello.ts'
import type { LoginReader } from './member-login.ts'
import type { IdentificationReader } from './pending-connections.ts'

/** Reads a hello, and then the login of its sender (quorum-protocol 18.1). */
export class HelloWithLoginReader implements IdentificationReader<ReceivedHello> {
  received = 0
  readonly #helloReader = new HelloReader()
  readonly #loginReader: LoginReader
  #hello: Hello | undefined

  constructor(loginReader: LoginReader) {
    this.#loginReader = loginReader
  }

  push(chunk: Uint8Array): ReceivedHello | undefined {
    this.received += chunk.length
    if (this.#hello !== undefined) return this.#readLogin(this.#hello, chunk)
    const received = this.#helloReader.push(chunk)
    if (received === undefined) return undefined
    this.#hello = received.hello
    return received.rest.length === 0 ? undefined : this.#readLogin(received.hello, received.rest)
  }

  #readLogin(hello: Hello, chunk: Uint8Array): ReceivedHello | undefined {
    const login = this.#loginReader.push(chunk)
    return login === undefined ? undefined : { hello, rest: login.rest }
  }
}

/** Reads a login, and then what identifies its sender. */
export class LoginFirstReader<T> implements IdentificationReader<T> {
  received = 0
  readonly #loginReader: LoginReader
  readonly #inner: IdentificationReader<T>
  #hasLoggedIn = false

  constructor(loginReader: LoginReader, inner: IdentificationReader<T>) {
    this.#loginReader = loginReader
    this.#inner = inner
  }

  push(chunk: Uint8Array): T | undefined {
    this.received += chunk.length
    if (this.#hasLoggedIn) return this.#inner.push(chunk)
    const login = this.#loginReader.push(chunk)
    if (login === undefined) return undefined
    this.#hasLoggedIn = true
    return login.rest.length === 0 ? undefined : this.#inner.push(login.rest)
  }
}
