import type { Connection, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests'
/** Words of ZooKeeper, with what is said to those that do not need a role. */
const ANSWERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    'conf cons crst dirs dump envi gtmk hash mntr srst srvr stat stmk wchc wchp wchs ydld rqld'
      .split(' ')
      .map((name) => [name, `${NOT_SERVING}\n`]),
  ),
  ruok: 'imok',
  isro: 'null',
}
/** Connections that have not said anything yet; more are closed at once. */
const MOST_WAITING = 256
const PATIENCE_MS = 3000

/** Where clients end up while a server has no role: words are answered, and everybody else is to try another server. */
export class NotServing {
  readonly #ports: Platform
  readonly #allowed: ReadonlySet<string>
  readonly #waiting = new Set<Connection>()
  #closed = false

  constructor({ fourLetterWords }: ServerSettings, ports: Platform) {
    this.#ports = ports
    this.#allowed = new Set(fourLetterWords.includes('*') ? Object.keys(ANSWERS) : fourLetterWords)
  }

  accept(wire: Connection): void {
    const first: number[] = []
    let answered = false
    const cancel = this.#ports.clock.after(PATIENCE_MS, 'client while there is no role', () => wire.destroy())
    wire.setHandler({
      data: (chunk) => {
        if (answered) return
        first.push(...chunk.subarray(0, 4 - first.length))
        if (first.length < 4) return
        answered = true
        this.#answer(wire, String.fromCharCode(...first))
      },
      drain() {},
      ended: () => answered,
      closed: () => {
        cancel()
        this.#waiting.delete(wire)
      },
    })
    // A page must not be able to have words run, so a WebSocket has nothing to wait for.
    if (this.#closed || this.#waiting.size >= MOST_WAITING || wire.transport === 'webSocket')
      return wire.destroy()
    this.#waiting.add(wire)
  }

  close(): void {
    this.#closed = true
    for (const wire of this.#waiting) wire.destroy()
  }

  #answer(wire: Connection, word: string): void {
    const answer = ANSWERS[word]
    if (answer === undefined) return wire.destroy()
    const text = this.#allowed.has(word)
      ? answer
      : `${word} is not executed because it is not in the whitelist.\n`
    wire.write(new TextEncoder().encode(text))
    wire.end()
  }
}
