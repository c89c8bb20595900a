import type { Connection, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests'
/** The four-letter commands of ZooKeeper, with their answers on a server without a role. */
const ANSWERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    'conf cons crst dirs dump envi gtmk hash mntr srst srvr stat stmk wchc wchp wchs ydld rqld'
      .split(' ')
      .map((name) => [name, `${NOT_SERVING}\n`]),
  ),
  ruok: 'imok',
  isro: 'null',
}
/** Connections that have not sent a command yet. Further ones are closed at once. */
const MAX_PENDING = 256
const TIMEOUT_MS = 3000

/** Handles client connections while the server has no role: answers four-letter commands and closes every other connection. */
export class NotServing {
  readonly #platform: Platform
  readonly #allowed: ReadonlySet<string>
  readonly #pending = new Set<Connection>()
  readonly #onRefused: () => void
  #isClosed = false

  /** `onRefused` is called for each connection that is closed without an answer. */
  constructor({ fourLetterWords }: ServerSettings, platform: Platform, onRefused: () => void) {
    this.#onRefused = onRefused
    this.#platform = platform
    this.#allowed = new Set(fourLetterWords.includes('*') ? Object.keys(ANSWERS) : fourLetterWords)
  }

  accept(wire: Connection): void {
    const name: number[] = []
    let isAnswered = false
    const cancelTimeout = this.#platform.clock.after(TIMEOUT_MS, 'client while there is no role', () =>
      isAnswered ? wire.destroy() : this.#refuse(wire),
    )
    wire.setHandler({
      data: (chunk) => {
        if (isAnswered) return
        name.push(...chunk.subarray(0, 4 - name.length))
        if (name.length < 4) return
        isAnswered = true
        this.#answer(wire, String.fromCharCode(...name))
      },
      drain() {},
      ended: () => isAnswered,
      closed: () => {
        cancelTimeout()
        this.#pending.delete(wire)
      },
    })
    // Commands are not available over WebSockets, whose bytes a web page controls.
    if (this.#isClosed || this.#pending.size >= MAX_PENDING || wire.transport === 'webSocket')
      return this.#refuse(wire)
    this.#pending.add(wire)
  }

  /** Closes all connections, and every later one. */
  close(): void {
    this.#isClosed = true
    for (const wire of this.#pending) wire.destroy()
  }

  #refuse(wire: Connection): void {
    this.#onRefused()
    wire.destroy()
  }

  #answer(wire: Connection, name: string): void {
    const answer = ANSWERS[name]
    if (answer === undefined) return this.#refuse(wire)
    const text = this.#allowed.has(name)
      ? answer
      : `${name} is not executed because it is not in the whitelist.\n`
    wire.write(new TextEncoder().encode(text))
    wire.end()
  }
}
