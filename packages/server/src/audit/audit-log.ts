import type { Platform } from '@zabra/runtime'
import { useSettingFile, type ServerSettings } from '../settings/index.ts'
import { ApacheLines } from './apache-lines.ts'
import {
  apacheLine,
  fileLine,
  fileTime,
  jsonFields,
  type AuditCategory,
  type AuditClient,
  type AuditEvent,
  type AuditStamp,
  type PlainChange,
} from './audit-event.ts'
import { AuditChain } from './audit-chain.ts'
import { AuditFile } from './audit-file.ts'
import { JsonLines } from './json-lines.ts'
import { ReadPaths } from './read-paths.ts'
import type { RequestsInFlight } from './requests-in-flight.ts'

/** Lines that are formatted in one turn of the event loop, of a transaction that has more. */
const LINES_PER_TURN = 200
/** Milliseconds of a turn for the lines of one transaction: a line may show a list of a thousand access entries. */
const FORMAT_MS = 1
/** Transactions with more lines that may wait to be formatted; each is held in memory. */
const MAX_WAITING = 64

/**
 * Records who changed what. A line is formatted after the reply of its request and written in the background, so that no request
 * waits for it.
 */
export class AuditLog {
  /** Lines that could not be kept. */
  lost = 0
  readonly #settings: ServerSettings
  readonly #platform: Pick<Platform, 'clock' | 'logger'>
  #categories: ReadonlySet<AuditCategory> = new Set()
  recordsWrites = false
  /** The paths whose reads are recorded. */
  readPaths = new ReadPaths([])
  /** Whether lines are JSON, which say more. */
  readonly isJson: boolean
  readonly #mayRefuse: boolean
  readonly #file: AuditFile | undefined
  /** Adds lines to the file; undefined where they go to the log. */
  readonly #lines: ApacheLines | JsonLines | undefined
  /** The user whose process the server is. */
  readonly #owner: readonly string[]
  #id = 0
  /** The wall-clock time of the lines of this turn of the event loop; undefined before the first one. */
  #time: number | undefined
  /** The events of transactions with many lines, of which the first is being formatted. */
  readonly #long: Iterator<AuditEvent>[] = []

  private constructor(settings: ServerSettings, platform: Platform) {
    this.#settings = settings
    this.#platform = platform
    this.applySettings()
    this.isJson = settings.auditFormat === 'json'
    this.#mayRefuse = settings.auditOnFailure === 'refuse'
    const [, owner] = platform.system.environment().find(([name]) => name === 'user.name') ?? []
    this.#owner = owner === undefined || owner === '' ? [] : [owner]
    const {
      auditFile: path,
      auditFileMaxBytes: maxBytes,
      auditFileCount: maxFiles,
      auditFsync: fsync,
    } = settings
    if (path === undefined) return
    const lostLine = (count: number): string => this.#lostLine(count)
    const chain = settings.auditChain ? this.#createChain(platform) : undefined
    this.#file = new AuditFile({ path, maxBytes, maxFiles, fsync, chain, lostLine }, platform)
    this.#lines = this.isJson ? new JsonLines(this.#file, settings.serverId) : new ApacheLines(this.#file)
  }

  /** Returns undefined where the settings ask for no audit log. Rejects with a `SettingFileError` when the file cannot be written, and with a `RangeError` without what its hashes need. */
  static async open(settings: ServerSettings, platform: Platform): Promise<AuditLog | undefined> {
    if (!settings.auditEnabled) return undefined
    const log = new AuditLog(settings, platform)
    await useSettingFile('audit.file', async () => log.#file?.open())
    return log
  }

  /** Takes `audit.events` anew. */
  applySettings(): void {
    const { auditEvents } = this.#settings
    this.readPaths = new ReadPaths(auditEvents)
    this.#categories = new Set(auditEvents.map(categoryOf))
    this.recordsWrites = this.#categories.has('writes')
  }

  /** Whether writes have to be refused, since they cannot be recorded and `audit.onFailure` asks for it. */
  get refusesWrites(): boolean {
    return this.#mayRefuse && (this.#file?.isFailing === true || this.#long.length >= MAX_WAITING)
  }

  records(category: AuditCategory): boolean {
    return this.#categories.has(category)
  }

  record(event: AuditEvent): void {
    if (!this.#categories.has(event.category)) return
    this.#id++
    if (this.#lines !== undefined) {
      if (!this.#lines.add(event, this.#now(), this.#id)) this.lost++
      return
    }
    const { logger } = this.#platform
    const [context, message] = this.isJson
      ? [{ audit: jsonFields(event, this.#stamp()) }, 'audit']
      : [{}, apacheLine(event)]
    if (event.result === 'failure') logger.error({ id: 'audit.failed-event', ...context }, message)
    else logger.info({ id: 'audit.event', ...context }, message)
  }

  /**
   * Records that the first request in flight has succeeded, if its line says nothing but what `change` has and the path. Returns false
   * where it needs an event.
   */
  recordFirst(client: AuditClient, change: PlainChange, requests: RequestsInFlight): boolean {
    return this.#count(this.#lines?.addFirst(client, change, requests, this.#now(), this.#id + 1))
  }

  /** Does the same for a path that differs from that of the request. */
  recordChange(client: AuditClient, change: PlainChange, path: string): boolean {
    return this.#count(this.#lines?.addChange(client, change, path, this.#now(), this.#id + 1))
  }

  /** Counts a line that was added or lost. Returns whether it was one of both. */
  #count(isAdded: boolean | undefined): boolean {
    if (isAdded === undefined) return false
    this.#id++
    if (!isAdded) this.lost++
    return true
  }

  /** Records at most `count` events, over several turns of the event loop if they are many. */
  recordAll(count: number, events: Iterable<AuditEvent>): void {
    const left = events[Symbol.iterator]()
    const isFull = this.#long.length >= MAX_WAITING
    if (count <= LINES_PER_TURN && this.#recordUntil(left, isFull ? Infinity : FORMAT_MS)) return
    if (isFull) {
      this.#id += count
      this.lost += count
      this.#file?.append(this.#lostLine(count))
      return
    }
    if (this.#long.push(left) === 1) this.#formatSome()
  }

  /** Records an event of the server itself, such as its start. */
  recordServer(operation: string, result: AuditEvent['result']): void {
    this.record({ category: 'writes', operation, result, users: this.#owner })
  }

  /** Returns the deletion of an ephemeral node, which the server does for a session that has ended. */
  ephemeralDeletion(session: bigint, path: string): AuditEvent {
    const operation = 'ephemeralZNodeDeletionOnSessionCloseOrExpire'
    return { category: 'writes', operation, session, users: this.#owner, path, result: 'success' }
  }

  /** Opens the file again, which may have been renamed. */
  reload(): void {
    this.#file?.reopen()
  }

  async close(): Promise<void> {
    while (this.#long.length > 0) this.#formatSlice()
    await this.#file?.close()
  }

  #formatSome(): void {
    this.#formatSlice()
    if (this.#long.length > 0) this.#platform.clock.immediate(() => this.#formatSome())
  }

  #formatSlice(): void {
    if (this.#recordUntil(this.#long[0]!, FORMAT_MS)) this.#long.shift()
  }

  /** Records events for some milliseconds, and as many as a turn may have. Returns whether they were the last ones. */
  #recordUntil(events: Iterator<AuditEvent>, ms: number): boolean {
    const { clock } = this.#platform
    const end = clock.monotonic() + ms
    for (let count = 1; ; count++) {
      const { done, value } = events.next()
      if (done === true) return true
      this.record(value)
      if (count > LINES_PER_TURN || clock.monotonic() >= end) return false
    }
  }

  #createChain({ cryptography }: Platform): AuditChain {
    if (cryptography === undefined)
      throw new RangeError(
        'Cannot link the lines of the audit log: this program gave the server no cryptography. Pass it in its platform, or remove audit.chain.',
      )
    const torn = { category: 'admin', operation: 'auditLineTorn', result: 'failure' } as const
    return new AuditChain(cryptography, () => JSON.stringify(jsonFields(torn, this.#stamp())))
  }

  #lostLine(lost: number): string {
    const event = { category: 'admin', operation: 'auditLinesLost', lost, result: 'failure' } as const
    return this.isJson
      ? JSON.stringify(jsonFields(event, this.#stamp()))
      : fileLine(event, fileTime(this.#now()))
  }

  #stamp(): AuditStamp {
    return { time: this.#now(), id: this.#id, serverId: this.#settings.serverId }
  }

  /** Returns the wall-clock time, read once in a turn of the event loop, which is short. */
  #now(): number {
    if (this.#time !== undefined) return this.#time
    const { clock } = this.#platform
    clock.immediate(() => (this.#time = undefined))
    return (this.#time = clock.wall())
  }
}

/** Returns the category of one of the texts of `audit.events`, which may end in a path. */
const categoryOf = (event: string): AuditCategory => event.replace(/:.*/, '') as AuditCategory
