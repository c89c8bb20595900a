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
import { AmbiguousResultError } from '../waiting/ambiguous.ts'
import { isNewSession, isUnclear, orMissing, throughSessions, untilClear } from '../waiting/errors.ts'
import { encodeName } from '../waiting/names.ts'
import { COORDINATOR, isDone, type Decision, type Record, type Vote } from './decide.ts'

const codec = json<Record>()

/** A transaction as it is kept: what one can do with it, each step safe to repeat. */
export class Transaction {
  readonly client: Client
  readonly path: string

  constructor(client: Client, path: string) {
    this.client = client
    this.path = path
  }

  get id(): string {
    return this.path.slice(this.path.lastIndexOf('/') + 1)
  }

  votePath(site: string): string {
    return `${this.path}/votes/${encodeName(site)}`
  }

  /** Makes it. The path is one that nobody else makes, so that what is there afterwards is ours. */
  async create(record: Record): Promise<void> {
    const below = ['votes', 'alive', 'acks'].map((name) => made(`${this.path}/${name}`))
    const operations: WriteOp[] = [
      { op: 'create', path: this.path, data: codec.encode(record) },
      ...below,
      { op: 'create', path: `${this.path}/alive/${COORDINATOR}`, mode: 'ephemeral' },
      ...record.participants.map((site) => made(this.votePath(site))),
    ]
    const { generation: epoch } = this.client.session
    for (;;) {
      try {
        return void (await this.client.multi(operations))
      } catch (error) {
        if (error instanceof MultiError && error.index === 0 && error.cause instanceof NoNodeError) {
          const parent = this.path.slice(0, this.path.lastIndexOf('/'))
          await throughSessions(this.client, () => this.client.mkdirp(parent, { mode: 'persistent' }))
        } else if (!this.#passes(error)) throw error
        else if ((await this.read()) !== undefined) return
        else if (this.client.session.generation !== epoch) throw this.#lost(error)
      }
    }
  }

  read(): Promise<{ record: Record; stat: Stat } | undefined> {
    return throughSessions(this.client, () => this.#settled())
  }

  /** What became of it is for the next look to tell. */
  async announce(decision: Decision, record: Record): Promise<void> {
    const data = codec.encode({ ...record, state: decision })
    const checks: WriteOp[] =
      decision === 'committed'
        ? record.participants.map((site) => ({ op: 'check', path: this.votePath(site), version: 1 }))
        : []
    await this.#once([...checks, { op: 'setData', path: this.path, data, version: 0 }])
  }

  /** Votes, unless that is done or decided. */
  async vote(site: string, vote: Vote): Promise<void> {
    await this.#once([
      { op: 'check', path: this.path, version: 0 },
      { op: 'setData', path: this.votePath(site), data: utf8.encode(vote), version: 0 },
    ])
  }

  async hasVoted(site: string): Promise<boolean> {
    const stat = await throughSessions(this.client, () => this.client.exists(this.votePath(site)))
    return stat === undefined || stat.version > 0
  }

  /** Shows that somebody is there, for as long as the session lives. */
  async showUp(who: string): Promise<void> {
    const path = `${this.path}/alive/${who}`
    try {
      await untilClear(this.client, () => this.client.create(path, undefined, { mode: 'ephemeral' }))
    } catch (error) {
      if (!(error instanceof NodeExistsError || error instanceof NoNodeError)) throw error
    }
  }

  /** Says that the decision has been applied here. The last one forgets the transaction. */
  async acknowledge(who: string, record: Record): Promise<void> {
    const acks = await throughSessions(this.client, () => this.#countedIn(who))
    if (acks !== undefined && acks >= record.participants.length) await this.#forget(record, acks)
  }

  /** The coordinator has heard of the decision. */
  async leave(record: Record): Promise<void> {
    await untilClear(this.client, async () => {
      await this.client.delete(`${this.path}/alive/${COORDINATOR}`, { missingOk: true })
      const stat = await this.client.exists(`${this.path}/acks`)
      if (stat !== undefined) await this.#forget(record, stat.version)
    })
  }

  /** How many have acknowledged, this one included: the folder is written with each. Undefined when all is over. */
  async #countedIn(who: string): Promise<number | undefined> {
    const folder = `${this.path}/acks`
    for (;;) {
      try {
        const [, stat] = await this.client.multi([
          { op: 'create', path: `${folder}/${who}` },
          { op: 'setData', path: folder, data: new Uint8Array(0) },
        ])
        return stat.version
      } catch (error) {
        const cause = error instanceof MultiError ? error.cause : error
        if (cause instanceof NoNodeError) return undefined
        if (cause instanceof NodeExistsError) return (await this.client.exists(folder))?.version
        if (!isUnclear(error) || isNewSession(this.client, error)) throw error
      }
    }
  }

  async #forget(record: Record, acks: number): Promise<void> {
    await untilClear(this.client, async () => {
      const waits = (await this.client.exists(`${this.path}/alive/${COORDINATOR}`)) !== undefined
      if (isDone(record, acks, waits))
        await this.client.delete(this.path, { recursive: true, missingOk: true })
    })
  }

  async #settled(): Promise<{ record: Record; stat: Stat } | undefined> {
    await this.client.sync(this.path)
    const found = await orMissing(this.client.getData(this.path))
    return found && { record: codec.decode(found.data), stat: found.stat }
  }

  /** Versions make it succeed once; whether it did shows in the znodes. */
  async #once(operations: readonly WriteOp[]): Promise<void> {
    try {
      await this.client.multi(operations)
    } catch (error) {
      const cause = error instanceof MultiError ? error.cause : undefined
      if (cause instanceof BadVersionError || cause instanceof NoNodeError || this.#passes(error)) return
      throw error
    }
  }

  /** It was not made, or others have finished it already; made again, it might be carried out twice. */
  #lost(cause: unknown): AmbiguousResultError {
    const message = 'The session ended before it could be told whether the transaction began'
    return new AmbiguousResultError(message, { path: this.path, cause })
  }

  #passes(error: unknown): boolean {
    return isNewSession(this.client, error) || (isUnclear(error) && this.client.state !== 'closed')
  }
}

const made = (path: string): WriteOp => ({ op: 'create', path })

export const decodeRecord = (data: Uint8Array): Record => codec.decode(data)

/** A vote as it is written, or undefined while there is none. */
export function voteOf(text: string): Vote | undefined {
  return text === 'commit' || text === 'abort' ? text : undefined
}
