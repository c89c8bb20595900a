import type { ServerId } from '../quorum/index.ts'
import type { Commits } from './commits.ts'
import { Confirmations } from './confirmations.ts'
import { votes, type Handle, type Handles } from './handles.ts'

/** PINGs, and what their answers prove: that a quorum followed this leader at some time after they were sent. */
export class Rounds {
  readonly #self: ServerId
  readonly #handles: Handles
  readonly #commits: Commits
  readonly #confirmed: (ticket: number) => void
  readonly #sendPing: (handle: Handle) => void
  readonly #confirmations = new Confirmations()

  constructor(
    self: ServerId,
    handles: Handles,
    commits: Commits,
    confirmed: (ticket: number) => void,
    sendPing: (handle: Handle) => void,
  ) {
    this.#self = self
    this.#handles = handles
    this.#commits = commits
    this.#confirmed = confirmed
    this.#sendPing = sendPing
  }

  ask(ticket: number): void {
    this.#confirmations.add(ticket, this.#commits.lastProposed)
    this.advance()
  }

  /** C3 One round at a time: a PING to every voter that follows, whose answer says that it followed me still. */
  advance(): void {
    while (this.#commits.isOpen && this.#confirmations.wantsRound) {
      this.#confirmations.begin()
      for (const handle of this.#handles) {
        handle.target = 0
        if (votes(handle)) this.#ping(handle)
      }
      this.#judge()
    }
    this.release()
  }

  /** Answers those whose round is done and whose transactions are committed. */
  release(): void {
    if (this.#commits.isOpen) this.#confirmations.release(this.#commits.lastCommitted, this.#confirmed)
  }

  /** Everybody hears of me. */
  pingAll(): void {
    for (const handle of this.#handles) if (handle.phase === 'active') this.#ping(handle)
    this.#judge()
    this.advance()
  }

  /** C4 The k-th answer of a connection is for its k-th PING; more than were asked for mean nothing. */
  answered(handle: Handle): void {
    if (handle.answered === handle.pinged) return
    handle.answered++
    this.#judge()
    this.advance()
  }

  /** A PING that is sent later counts for a round as well as the first one, for those whom the round did not ask. */
  #ping(handle: Handle): void {
    handle.pinged++
    if (handle.target === 0) handle.target = handle.pinged
    this.#sendPing(handle)
  }

  #judge(): void {
    if (!this.#confirmations.running) return
    const servers = new Set([this.#self])
    for (const handle of this.#handles)
      if (votes(handle) && handle.target > 0 && handle.answered >= handle.target) servers.add(handle.server)
    if (this.#commits.isQuorum(servers)) this.#confirmations.finish()
  }
}
