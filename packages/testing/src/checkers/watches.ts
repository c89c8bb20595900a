import { ErrorCode, EventType, Perms } from '@zabra/protocol'
import { allows } from '../history/acl.ts'
import type { Model, Step } from '../history/model.ts'
import { formatZxid, type Arrival, type Notice, type Operation, type WatchKind } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { Lasting } from './lasting-watches.ts'

export const watches: Checker = {
  name: 'watches',
  proves:
    'A watch is told of before any answer that shows the change, also when its session moved meanwhile; it is told once, never without a change, and never of a node that the session may not read.',
  check({ history, chronicle }) {
    const wrong: string[] = []
    for (const [session, arrivals] of history.bySession()) {
      const watching = new Watching(chronicle.model, session)
      for (const arrival of arrivals) watching.see(arrival)
      wrong.push(...watching.wrong)
    }
    return wrong
  },
}

type Kind = 'data' | 'exist' | 'child'

/** Watches that tell once, by what they are asked for as. */
const KINDS: Readonly<Record<WatchKind, readonly Kind[]>> = {
  any: ['data', 'exist', 'child'],
  data: ['data', 'exist'],
  children: ['child'],
  persistent: [],
  recursive: [],
}

/** What one session watches. */
class Watching {
  readonly wrong: string[] = []
  readonly #model: Model
  readonly #session: string
  /** By kind and path, the zxid at which it was armed. */
  readonly #armed = new Map<string, number>()
  /** Those that met a change which they may not tell of: the server has none any more, and the client does not know. */
  readonly #silenced = new Set<string>()
  /** Of these, those that the client may have set again with all others when it came back. */
  readonly #unsure = new Set<string>()
  #connection = 0
  /** Whom the client has proved to be. */
  #user = ''
  readonly #mayRead = (acl: readonly string[]): boolean => allows(acl, Perms.READ, this.#user)
  readonly #lasting: Lasting
  /** Notices before the answer that arms watches again belong to it. */
  #rearming: Notice[] | undefined

  constructor(model: Model, session: string) {
    this.#model = model
    this.#session = session
    this.#lasting = new Lasting(model, this.#mayRead)
  }

  see(arrival: Arrival): void {
    if (arrival.kind === 'attached') {
      this.#connection = arrival.connection
      // The connection broke amid the answer: what was told before is told.
      this.#settle(this.#rearming ?? [])
      const some = this.#armed.size + this.#silenced.size + this.#unsure.size + this.#lasting.size > 0
      this.#rearming = !arrival.isNew && some ? [] : undefined
    } else if (arrival.kind === 'rearmed') {
      this.#lasting.rearmed(arrival.zxid)
      this.#rearmed(arrival.zxid)
    } else if (arrival.kind === 'notice') this.#noticed(arrival)
    else if (arrival.kind === 'operation') this.#answered(arrival)
    else this.#clear()
  }

  #clear(): void {
    this.#armed.clear()
    this.#silenced.clear()
    this.#unsure.clear()
    this.#lasting.clear()
  }

  #answered({ request, result, zxid, connection, xid, user }: Operation): void {
    if (connection !== this.#connection) return
    this.#user = user
    this.#hadNone()
    if (zxid > 0) this.#demand(zxid, `its answer to request ${xid}`)
    if (request.op === 'close' && result.err === 0) return this.#clear()
    if (request.op === 'addWatch' && result.err === 0)
      return this.#lasting.add(request.path, request.recursive, zxid)
    if (request.op === 'removeWatches' || request.op === 'checkWatches')
      return this.#asked(request.path, request.watches, request.op === 'removeWatches', result.err)
    if (request.op !== 'get' && request.op !== 'exists' && request.op !== 'children') return
    if (!request.watch) return
    if (result.err === ErrorCode.NONODE && request.op === 'exists') this.#arm('exist', request.path, zxid)
    else if (result.err === 0) this.#arm(request.op === 'children' ? 'child' : 'data', request.path, zxid)
  }

  /** A client that came back asks for its watches before anything else: one that was answered already had none. */
  #hadNone(): void {
    if (this.#rearming === undefined || this.#armed.size + this.#silenced.size + this.#lasting.size > 0)
      return
    const told = this.#rearming
    this.#rearming = undefined
    this.#unsure.clear()
    for (const notice of told) this.#noticed(notice)
  }

  /** Watches of a kind at a path are gone, or were asked for: whether there was any must be told. */
  #asked(path: string, watches: WatchKind, remove: boolean, err: number): void {
    const kinds = KINDS[watches].map((kind) => `${kind} ${path}`).filter((key) => this.#armed.has(key))
    const lasting = this.#lasting.holds(path, watches)
    const had = lasting.length > 0 || kinds.length > 0
    const unsure = KINDS[watches].map((kind) => `${kind} ${path}`).filter((key) => this.#unsure.has(key))
    if (remove) {
      for (const key of kinds) this.#armed.delete(key)
      for (const key of unsure) this.#unsure.delete(key)
      this.#lasting.remove(lasting)
    }
    if ((err === 0) !== had && (had || unsure.length === 0))
      this.wrong.push(
        `Session ${this.#session} ${remove ? 'removed' : 'asked for'} ${watches} watches of ${path}, was told ${err === 0 ? 'that it had some' : 'that it had none'}, and ${had ? 'had some' : 'had none'}`,
      )
  }

  #arm(kind: Kind, path: string, zxid: number): void {
    const key = `${kind} ${path}`
    this.#silenced.delete(key)
    this.#unsure.delete(key)
    if (!this.#armed.has(key)) this.#armed.set(key, zxid)
  }

  /** Everything that is watched and changed up to a zxid must have been told. */
  #demand(zxid: number, what: string): void {
    const missed = this.#lasting.missed(zxid)
    if (missed !== undefined)
      this.wrong.push(
        `Session ${this.#session} saw ${what} at ${formatZxid(zxid)} before its lasting watch told it of event ${missed.type} of ${missed.path} at ${formatZxid(missed.zxid)}`,
      )
    for (const [key, since] of this.#armed) {
      const [kind, path] = split(key)
      const step = this.#next(kind, path, since)
      if (step === undefined || step.zxid > zxid) continue
      this.#armed.delete(key)
      if (!this.#mayRead(step.acl)) {
        this.#silenced.add(key)
        continue
      }
      this.wrong.push(
        `Session ${this.#session} watched ${kind} of ${path} from ${formatZxid(since)} on and saw ${what} at ${formatZxid(zxid)} before it was told of ${formatZxid(step.zxid)}`,
      )
    }
  }

  #noticed(notice: Notice): void {
    const { type, path } = notice
    if (this.#rearming !== undefined) return void this.#rearming.push(notice)
    const lasting = this.#lasting.told(type, path)
    if (typeof lasting === 'string') return void this.wrong.push(`Session ${this.#session} ${lasting}`)
    const kinds: Kind[] =
      type === EventType.NodeChildrenChanged
        ? ['child']
        : type === EventType.NodeDeleted
          ? ['data', 'exist', 'child']
          : ['data', 'exist']
    const fired = kinds.filter((kind) => this.#armed.has(`${kind} ${path}`))
    if (lasting && fired.every((kind) => this.#isSilenced(kind, path))) return
    if (kinds.filter((kind) => this.#unsure.delete(`${kind} ${path}`)).length > 0 && fired.length === 0)
      return
    if (fired.length === 0)
      return void this.wrong.push(
        `Session ${this.#session} was told of event ${type} of ${path}, which it did not watch`,
      )
    let explained = false
    for (const kind of fired) {
      const step = this.#next(kind, path, this.#armed.get(`${kind} ${path}`)!)
      explained ||= step !== undefined && this.#mayRead(step.acl) && eventOf(kind, step) === type
      this.#armed.delete(`${kind} ${path}`)
    }
    if (!explained)
      this.wrong.push(
        `Session ${this.#session} was told of event ${type} of ${path}, and no such change came next`,
      )
  }

  /**
   * Armed again at a zxid: what changed while the session was away was told before this answer, whoever may read it, as
   * ZooKeeper does.
   */
  #rearmed(zxid: number): void {
    const told = this.#rearming ?? []
    this.#rearming = undefined
    for (const key of this.#silenced) this.#unsure.add(key)
    this.#silenced.clear()
    this.#settle(told)
    for (const [key, since] of Array.from(this.#armed)) {
      const [kind, path] = split(key)
      if (this.#mustTell(kind, path, since, zxid))
        this.wrong.push(
          `Session ${this.#session} came back at ${formatZxid(zxid)} and was not told that ${kind} of ${path} had changed since ${formatZxid(since)}`,
        )
      // Made and deleted again while it was away: nothing shows it, and the watch goes on from here.
      else this.#armed.set(key, Math.max(since, zxid))
    }
    for (const { path, type } of told) {
      const changed = (this.#model.paths.get(path) ?? []).some((step) => step.zxid > 0)
      if (!changed)
        this.wrong.push(`Session ${this.#session} was told of event ${type} of ${path}, which never changed`)
    }
  }

  /**
   * What was told while watches were set again is told. The deletion of a node says nothing to who waits for it to be made,
   * nor its creation to who has its data: these hear of it of another watch, and the client may take it for theirs as well.
   */
  #settle(told: readonly Notice[]): void {
    for (const { path, type } of told)
      for (const kind of ['data', 'exist', 'child'] as const) {
        const key = `${kind} ${path}`
        if (!concerns(kind, type)) continue
        const isOthers =
          type === (kind === 'data' ? EventType.NodeCreated : EventType.NodeDeleted) && kind !== 'child'
        if (!isOthers) this.#unsure.delete(key)
        if (this.#armed.delete(key) && isOthers) this.#unsure.add(key)
      }
  }

  /** Whether a watch met a change that it may not tell of, and is gone. */
  #isSilenced(kind: Kind, path: string): boolean {
    const step = this.#next(kind, path, this.#armed.get(`${kind} ${path}`)!)
    return step !== undefined && !this.#mayRead(step.acl)
  }

  #mustTell(kind: Kind, path: string, since: number, zxid: number): boolean {
    const step = this.#next(kind, path, since)
    if (step === undefined || step.zxid > zxid) return false
    const state = this.#model.at(path, zxid)
    return kind !== 'exist' || state !== undefined
  }

  #next(kind: Kind, path: string, since: number): Step | undefined {
    for (const step of this.#model.stepsAfter(path, since)) if (eventOf(kind, step) !== undefined) return step
    return undefined
  }
}

function concerns(kind: Kind, type: number): boolean {
  if (kind === 'child') return type === EventType.NodeChildrenChanged || type === EventType.NodeDeleted
  return type !== EventType.NodeChildrenChanged
}

/** The event that a change is for who watches so; undefined when it is none. */
function eventOf(kind: Kind, { change }: Step): number | undefined {
  if (change === 'deleted') return EventType.NodeDeleted
  if (kind === 'child') return change === 'children' ? EventType.NodeChildrenChanged : undefined
  if (change === 'created') return EventType.NodeCreated
  return change === 'data' ? EventType.NodeDataChanged : undefined
}

function split(key: string): [Kind, string] {
  const space = key.indexOf(' ')
  return [key.slice(0, space) as Kind, key.slice(space + 1)]
}
