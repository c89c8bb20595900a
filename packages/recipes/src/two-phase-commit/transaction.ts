import {
  BadVersionError,
  json,
  MultiError,
  NodeExistsError,
  NoNodeError,
  utf8,
  type Client,
  type Stat,
  type WriteOp,
} from '@zabra/client/core'
import { nameOf, parentOf, withoutTimeout } from '@zabra/client/recipe-kit'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import {
  isNewSession,
  isAmbiguous,
  pauses,
  undefinedIfMissing,
  retryInNewSession,
  retryUntilKnown,
} from '../support/retry.ts'
import { encodeName } from '../support/name-codec.ts'
import { COORDINATOR, isDone, type Decision, type TransactionRecord, type Vote } from './decide.ts'

const codec = json<TransactionRecord>()

/** The stored transaction; every step is idempotent. */
export class Transaction {
  readonly client: Client
  readonly path: string

  constructor(client: Client, path: string) {
    this.client = withoutTimeout(client).unordered()
    this.path = path
  }

  get id(): string {
    return nameOf(this.path)
  }

  votePath(site: string): string {
    return `${this.path}/votes/${encodeName(site)}`
  }

  /** Creates the transaction. Its path is random, so an existing znode afterwards is this client's. */
  async create(record: TransactionRecord): Promise<void> {
    const below = ['votes', 'alive', 'acks'].map((name) => createOp(`${this.path}/${name}`))
    const operations: WriteOp[] = [
      { op: 'create', path: this.path, data: codec.encode(record) },
      ...below,
      { op: 'create', path: `${this.path}/alive/${COORDINATOR}`, mode: 'ephemeral' },
      ...record.participants.map((site) => createOp(this.votePath(site))),
    ]
    const { generation } = this.client.session
    const pause = pauses(this.client)
    for (;;) {
      try {
        return void (await this.client.multi(operations))
      } catch (error) {
        if (error instanceof MultiError && error.index === 0 && error.cause instanceof NoNodeError) {
          await retryInNewSession(this.client, () => this.client.createMissing([parentOf(this.path)]))
        } else if (!this.#isTransient(error)) throw error
        else if ((await this.read()) !== undefined) return
        else if (this.client.session.generation !== generation) throw this.#ambiguous(error)
        else await pause()
      }
    }
  }

  read(): Promise<{ record: TransactionRecord; stat: Stat } | undefined> {
    return retryInNewSession(this.client, () => this.#readSynced())
  }

  /** Writes the decision. The next read shows the outcome. */
  async writeDecision(decision: Decision, record: TransactionRecord): Promise<void> {
    const data = codec.encode({ ...record, state: decision })
    const checks: WriteOp[] =
      decision === 'committed'
        ? record.participants.map((site) => ({ op: 'check', path: this.votePath(site), version: 1 }))
        : []
    await this.#applyOnce([...checks, { op: 'setData', path: this.path, data, version: 0 }])
  }

  /** Votes, unless the site has voted or the transaction is decided. */
  async vote(site: string, vote: Vote): Promise<void> {
    await this.#applyOnce([
      { op: 'check', path: this.path, version: 0 },
      { op: 'setData', path: this.votePath(site), data: utf8.encode(vote), version: 0 },
    ])
  }

  async hasVoted(site: string): Promise<boolean> {
    const stat = await retryInNewSession(this.client, () => this.client.exists(this.votePath(site)))
    return stat === undefined || stat.version > 0
  }

  /** Creates an ephemeral znode that shows that a site is alive. */
  async announcePresence(name: string): Promise<void> {
    const path = `${this.path}/alive/${name}`
    try {
      await retryUntilKnown(this.client, () => this.client.create(path, { mode: 'ephemeral' }))
    } catch (error) {
      if (!(error instanceof NodeExistsError || error instanceof NoNodeError)) throw error
    }
  }

  /**
   * Returns the transaction, and whether a site has applied its decision. That is read before, so that a transaction which was
   * deleted since is not taken for one that the site has not applied.
   */
  readFor(name: string): Promise<{ record: TransactionRecord; hasAcknowledged: boolean } | undefined> {
    const path = `${this.path}/acks/${name}`
    return retryInNewSession(this.client, async () => {
      // In one round trip, in this order.
      const [, acknowledgement, found] = await Promise.all([
        this.client.sync(path),
        this.client.exists(path),
        this.#readOnce(),
      ])
      return found && { record: found.record, hasAcknowledged: acknowledgement !== undefined }
    })
  }

  /**
   * Records that the site has applied the decision. The last site deletes the transaction. Returns whether it is gone.
   */
  async acknowledge(name: string, record: TransactionRecord): Promise<boolean> {
    const acks = await retryInNewSession(this.client, () => this.#countAcknowledgement(name))
    if (acks === undefined) return true
    return acks >= record.participants.length && (await this.#forget(record, acks))
  }

  /** Deletes the transaction if nothing needs it any more. Returns whether it is gone. */
  removeIfDone(record: TransactionRecord): Promise<boolean> {
    return retryUntilKnown(this.client, async () => {
      const stat = await this.client.exists(`${this.path}/acks`)
      return stat === undefined || this.#forget(record, stat.version)
    })
  }

  /** Records that the coordinator knows the decision, or takes part no longer. */
  async removeCoordinator(record: TransactionRecord): Promise<void> {
    await this.client.delete(`${this.path}/alive/${COORDINATOR}`, { guaranteed: true, missingOk: true })
    await this.removeIfDone(record)
  }

  /**
   * Acknowledges and returns the number of acknowledgements, which is the version of the directory. Returns
   * undefined when the transaction is gone.
   */
  async #countAcknowledgement(name: string): Promise<number | undefined> {
    const folder = `${this.path}/acks`
    const pause = pauses(this.client)
    for (;;) {
      try {
        const [, stat] = await this.client.multi([
          { op: 'create', path: `${folder}/${name}` },
          { op: 'setData', path: folder, data: new Uint8Array(0) },
        ])
        return stat.version
      } catch (error) {
        const cause = error instanceof MultiError ? error.cause : error
        if (cause instanceof NoNodeError) return undefined
        if (cause instanceof NodeExistsError) return (await this.client.exists(folder))?.version
        if (!isAmbiguous(error) || isNewSession(this.client, error)) throw error
        await pause()
      }
    }
  }

  #forget(record: TransactionRecord, acks: number): Promise<boolean> {
    return retryUntilKnown(this.client, async () => {
      const waits = (await this.client.exists(`${this.path}/alive/${COORDINATOR}`)) !== undefined
      if (!isDone(record, acks, waits)) return false
      await this.client.delete(this.path, { recursive: true, missingOk: true })
      return true
    })
  }

  async #readSynced(): Promise<{ record: TransactionRecord; stat: Stat } | undefined> {
    await this.client.sync(this.path)
    return this.#readOnce()
  }

  async #readOnce(): Promise<{ record: TransactionRecord; stat: Stat } | undefined> {
    const found = await undefinedIfMissing(this.client.getData(this.path))
    const record = found && decodeRecord(found.data)
    return record && { record, stat: found.stat }
  }

  /** Versions make the transaction apply at most once; the znodes show whether it did. */
  async #applyOnce(operations: readonly WriteOp[]): Promise<void> {
    try {
      await this.client.multi(operations)
    } catch (error) {
      const cause = error instanceof MultiError ? error.cause : undefined
      if (cause instanceof BadVersionError || cause instanceof NoNodeError || this.#isTransient(error)) return
      throw error
    }
  }

  /** Either it was not created, or the sites have finished it; creating it again could apply it twice. */
  #ambiguous(cause: unknown): AmbiguousResultError {
    const message = 'The session expired, and it is unknown whether the transaction was created'
    return new AmbiguousResultError(message, { path: this.path, cause })
  }

  #isTransient(error: unknown): boolean {
    return isNewSession(this.client, error) || (isAmbiguous(error) && this.client.state !== 'closed')
  }
}

const createOp = (path: string): WriteOp => ({ op: 'create', path })

/**
 * Decodes the data of a transaction. Returns undefined for those of a mere directory: a site that takes over just after the
 * transaction was deleted makes one for its queue.
 */
export const decodeRecord = (data: Uint8Array): TransactionRecord | undefined =>
  data.length === 0 ? undefined : codec.decode(data)

/** Returns the vote in the data, or undefined while there is none. */
export function voteOf(text: string): Vote | undefined {
  return text === 'commit' || text === 'abort' ? text : undefined
}
