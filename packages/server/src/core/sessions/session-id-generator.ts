/** The lowest number marks containers and can own nothing else. */
const CONTAINER_MARK = -(1n << 63n)

/** Hands out session ids: 8 bits of server id, 40 of time, 16 of counter, the counter running into the time. */
export class SessionIdGenerator {
  #next: bigint

  /** `millis` is any clock that has gone on since this server last started, so that ids never repeat. */
  constructor(serverId: number, millis: number) {
    const time = BigInt.asUintN(64, BigInt(Math.floor(millis)) << 24n) >> 8n
    this.#next = BigInt.asIntN(64, time | (BigInt(serverId & 0xff) << 56n))
  }

  next(): bigint {
    // 0 stands for a client that has no session yet.
    while (this.#next === 0n || this.#next === CONTAINER_MARK) this.#next++
    const id = this.#next
    this.#next = BigInt.asIntN(64, id + 1n)
    return id
  }
}
