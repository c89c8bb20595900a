/** The lowest number is the owner of containers, and no session id (client-protocol 4.5.1). */
const CONTAINER_OWNER_ID = -(1n << 63n)

/**
 * Returns when the server that gave a session its id had started, in milliseconds since 1970: the time nearest to `near` with the 40
 * bits that the id has of it (client-protocol 2.4).
 */
export function sessionDate(id: bigint, near: number): number {
  const distance = BigInt.asIntN(40, (BigInt.asUintN(64, id) >> 16n) - BigInt(Math.floor(near)))
  return Math.floor(near) + Number(distance)
}

/**
 * Generates session ids: 8 bits of server id, 40 of time, 16 of counter; the counter overflows into the time (client-protocol 2.4).
 */
export class SessionIdGenerator {
  #next: bigint

  /** `millis` must be greater than at the last start of this server, so that ids never repeat. */
  constructor(serverId: number, millis: number) {
    const time = BigInt.asUintN(64, BigInt(Math.floor(millis)) << 24n) >> 8n
    this.#next = BigInt.asIntN(64, time | (BigInt(serverId & 0xff) << 56n))
  }

  /** Continues with ids of this time, in milliseconds since 1970, unless they are behind those that were given out. */
  renew(millis: number): void {
    const time = BigInt(Math.floor(millis)) << 16n
    const next = BigInt.asUintN(56, this.#next)
    const ahead = BigInt.asIntN(56, time - next)
    if (ahead > 0n) this.#next = BigInt.asIntN(64, this.#next - next + BigInt.asUintN(56, time))
  }

  next(): bigint {
    // In a handshake, 0 stands for no session.
    while (this.#next === 0n || this.#next === CONTAINER_OWNER_ID) this.#next++
    const id = this.#next
    this.#next = BigInt.asIntN(64, id + 1n)
    return id
  }
}
