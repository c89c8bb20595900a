import { ErrorCode, EventType, Perms } from '@zabra/protocol'
import { allows } from '../history/acl.ts'
import type { TreeModel, PathChange } from '../history/model.ts'
import {
  formatZxid,
  type ClientEvent,
  type WatchNotification,
  type OneShotWatch,
  type Operation,
  type WatchesReset,
  type WatchKind,
} from '../history/records.ts'
import type { Checker } from './checker.ts'
import { PersistentWatches } from './persistent-watches.ts'

export const watches: Checker = {
  name: 'watches',
  proves:
    'A watch fires before any reply that shows the change, also when its session moves; it fires once, never without a change, and never for a node that the session may not read.',
  check({ history, committed }) {
    const wrong: string[] = []
    for (const [session, arrivals] of history.eventsBySession()) {
      const watching = new SessionWatches(committed.model, session)
      for (const arrival of arrivals) watching.observe(arrival)
      wrong.push(...watching.violations)
    }
    return wrong
  },
}

/** The one-shot watches that each request kind matches. */
const ONE_SHOT_KINDS: Readonly<Record<WatchKind, readonly OneShotWatch[]>> = {
  any: ['data', 'exist', 'child'],
  data: ['data', 'exist'],
  children: ['child'],
  persistent: [],
  recursive: [],
}

const ONE_SHOTS = ['data', 'exist', 'child'] as const
const NONE = { data: [], exist: [], child: [] }

/** A watch that a server has registered. */
interface ArmedWatch {
  readonly kind: OneShotWatch
  readonly path: string
  readonly since: number
  /** The change that it reports; undefined when there is none. */
  readonly next: PathChange | undefined
}

/** The watches of one session. */
class SessionWatches {
  readonly violations: string[] = []
  readonly #model: TreeModel
  readonly #session: string
  /** The registered watches, by kind and path. */
  readonly #armed = new Map<string, ArmedWatch>()
  /**
   * Watches on the server that the client may have dropped, because a notification for another watch of the path
   * matched them, too.
   */
  readonly #forgotten = new Set<string>()
  #connection = 0
  /** The authenticated user. */
  #user = ''
  readonly #mayRead = (acl: readonly string[]): boolean => allows(acl, Perms.READ, this.#user)
  readonly #persistent: PersistentWatches
  /** Notifications received before the watches are reset, which belong to the reset; undefined after it. */
  #rearming: WatchNotification[] | undefined
  #isReadOnly = false

  constructor(model: TreeModel, session: string) {
    this.#model = model
    this.#session = session
    this.#persistent = new PersistentWatches(model, this.#mayRead)
  }

  observe(arrival: ClientEvent): void {
    if (arrival.kind === 'attached') {
      this.#connection = arrival.connection
      this.#isReadOnly = arrival.isReadOnly === true
      // The connection broke during the reset: these notifications were delivered.
      for (const notice of this.#rearming ?? []) this.#forget(notice)
      if (arrival.isNew) this.#clear()
      this.#rearming = []
    } else if (arrival.kind === 'rearmed') {
      this.#persistent.reset(arrival.zxid)
      this.#rearmed(arrival)
    } else if (arrival.kind === 'notice') this.#noticed(arrival)
    else if (arrival.kind === 'operation') this.#answered(arrival)
    else this.#clear()
  }

  #clear(): void {
    this.#armed.clear()
    this.#forgotten.clear()
    this.#persistent.clear()
  }

  #answered({ request, result, zxid, connection, xid, user }: Operation): void {
    if (connection !== this.#connection) return
    this.#user = user
    // A reconnecting client resets its watches first: an earlier reply shows that it had none.
    if (this.#rearming !== undefined) this.#rearmed({ since: zxid, zxid, requested: NONE })
    if (zxid > 0) this.#demand(zxid, `its answer to request ${xid}`)
    if (request.op === 'close' && result.err === 0) return this.#clear()
    if (request.op === 'addWatch' && result.err === 0)
      return this.#persistent.add(request.path, request.recursive, zxid)
    if (request.op === 'removeWatches' || request.op === 'checkWatches')
      return this.#checkQuery(request.path, request.watches, request.op === 'removeWatches', result.err)
    if (request.op !== 'get' && request.op !== 'exists' && request.op !== 'children') return
    if (!request.watch) return
    if (result.err === ErrorCode.NONODE && request.op === 'exists') this.#arm('exist', request.path, zxid)
    else if (result.err === 0) this.#arm(request.op === 'children' ? 'child' : 'data', request.path, zxid)
  }

  /** Checks the reply to a query or removal of watches: it must say whether any watch matched. */
  #checkQuery(path: string, watches: WatchKind, remove: boolean, err: number): void {
    const kinds = ONE_SHOT_KINDS[watches]
      .map((kind) => `${kind} ${path}`)
      .filter((key) => this.#armed.has(key))
    const lasting = this.#persistent.matching(path, watches)
    const had = lasting.length > 0 || kinds.length > 0
    if (remove) {
      for (const key of kinds) this.#armed.delete(key)
      this.#persistent.remove(lasting)
    }
    if ((err === 0) !== had)
      this.violations.push(
        `Session ${this.#session} ${remove ? 'removed' : 'queried'} ${watches} watches of ${path}, was answered ${err === 0 ? 'that it had some' : 'that it had none'}, and ${had ? 'had some' : 'had none'}`,
      )
  }

  #arm(kind: OneShotWatch, path: string, zxid: number): void {
    const key = `${kind} ${path}`
    this.#forgotten.delete(key)
    if (!this.#armed.has(key)) this.#register(kind, path, zxid)
  }

  #register(kind: OneShotWatch, path: string, since: number): void {
    this.#armed.set(`${kind} ${path}`, { kind, path, since, next: this.#next(kind, path, since) })
  }

  /** Checks that every change up to a zxid of a watched node has been reported. */
  #demand(zxid: number, what: string): void {
    const missed = this.#persistent.missed(zxid)
    if (missed !== undefined)
      this.violations.push(
        `Session ${this.#session} saw ${what} at ${formatZxid(zxid)} before its persistent watch reported event ${missed.type} of ${missed.path} at ${formatZxid(missed.zxid)}`,
      )
    for (const [key, { kind, path, since, next: step }] of this.#armed) {
      if (step === undefined || step.zxid > zxid) continue
      this.#armed.delete(key)
      // The node changed while the session could not read it: the server removed the watch without a notification.
      if (!this.#mayRead(step.acl)) continue
      this.violations.push(
        `Session ${this.#session} watched ${kind} of ${path} from ${formatZxid(since)} on and saw ${what} at ${formatZxid(zxid)} before it was notified of ${formatZxid(step.zxid)}`,
      )
    }
  }

  #noticed(notice: WatchNotification): void {
    const { type, path } = notice
    if (this.#rearming !== undefined) return void this.#rearming.push(notice)
    const lasting = this.#persistent.notified(type, path)
    if (typeof lasting === 'string') return void this.violations.push(`Session ${this.#session} ${lasting}`)
    const kinds: OneShotWatch[] =
      type === EventType.NodeChildrenChanged
        ? ['child']
        : type === EventType.NodeDeleted
          ? ['data', 'exist', 'child']
          : ['data', 'exist']
    const fired = kinds.filter((kind) => this.#armed.has(`${kind} ${path}`))
    if (lasting && fired.every((kind) => this.#isSilenced(kind, path))) return
    if (fired.length === 0)
      return void this.violations.push(
        `Session ${this.#session} was notified of event ${type} of ${path}, which it did not watch`,
      )
    let explained = false
    for (const kind of fired) {
      const step = this.#armed.get(`${kind} ${path}`)!.next
      explained ||= step !== undefined && this.#mayRead(step.acl) && eventOf(kind, step) === type
      this.#armed.delete(`${kind} ${path}`)
    }
    if (!explained)
      this.violations.push(
        `Session ${this.#session} was notified of event ${type} of ${path}, and no such change came next`,
      )
  }

  /**
   * Checks a reset of watches. Changes since the relative zxid are reported before the reply, and nothing else is. A node that
   * the session may not read counts as absent. Other watches are registered from the zxid of the reply.
   */
  #rearmed({ since, zxid, requested }: Pick<WatchesReset, 'since' | 'zxid' | 'requested'>): void {
    const notified = (this.#rearming ?? []).map(({ type, path }) => `${type} of ${path}`)
    this.#rearming = undefined
    const keys = ONE_SHOTS.flatMap((kind) =>
      requested[kind].map((path): [OneShotWatch, string] => [kind, path]),
    )
    const due = keys.flatMap(([kind, path]) => {
      const type = this.#dueOnReturn(kind, path, since, zxid)
      return type === undefined ? [] : [{ key: `${kind} ${path}`, type, path }]
    })
    const expected = due.map(({ type, path }) => `${type} of ${path}`)
    // Transactions that a read-only server shows may never have been committed; they have no place in the history.
    if (!this.#isReadOnly && notified.sort().join() !== expected.sort().join())
      this.violations.push(
        `Session ${this.#session} reset its watches at ${formatZxid(zxid)} knowing all up to ${formatZxid(since)}, with watches [${keys.map((key) => key.join(' ')).join(', ')}] and was notified of events [${notified.join(', ')}] when [${expected.join(', ')}] were due`,
      )
    this.#checkLoss(due, new Set(keys.map((key) => key.join(' '))), zxid)
    this.#armed.clear()
    this.#forgotten.clear()
    for (const [kind, path] of keys) this.#register(kind, path, zxid)
    for (const { key } of due) this.#armed.delete(key)
    for (const { type, path } of due) this.#forget({ type, path })
  }

  /** Checks that a reset names every registered watch, and that changes while the session was detached are reported. */
  #checkLoss(due: readonly { readonly key: string }[], requested: ReadonlySet<string>, zxid: number): void {
    if (this.#isReadOnly) return
    for (const [key, watch] of this.#armed) {
      if (due.some((one) => one.key === key) || (!requested.has(key) && this.#forgotten.has(key))) continue
      if (this.#mustTell(watch, zxid))
        this.violations.push(
          `Session ${this.#session} reset its watches at ${formatZxid(zxid)} and was not notified that ${watch.kind} of ${watch.path} had changed since ${formatZxid(watch.since)}`,
        )
    }
  }

  /** Returns the event that a server reports immediately for a watch that is reset. */
  #dueOnReturn(kind: OneShotWatch, path: string, since: number, zxid: number): number | undefined {
    const state = this.#visibleAt(path, zxid)
    if (kind === 'exist') return state === undefined ? undefined : EventType.NodeCreated
    if (state === undefined) return EventType.NodeDeleted
    if (kind === 'data') return state.stat.mzxid > since ? EventType.NodeDataChanged : undefined
    return state.stat.pzxid > since ? EventType.NodeChildrenChanged : undefined
  }

  /**
   * A client applies a notification to every watch of the path that it matches, whichever watch of the server caused
   * it.
   */
  #forget({ type, path }: Pick<WatchNotification, 'type' | 'path'>): void {
    for (const kind of ONE_SHOTS) if (concerns(kind, type)) this.#forgotten.add(`${kind} ${path}`)
  }

  /** Returns whether a change that the session may not read has removed a watch without a notification. */
  #isSilenced(kind: OneShotWatch, path: string): boolean {
    const step = this.#armed.get(`${kind} ${path}`)!.next
    return step !== undefined && !this.#mayRead(step.acl)
  }

  #mustTell({ kind, path, next: step }: ArmedWatch, zxid: number): boolean {
    if (step === undefined || step.zxid > zxid) return false
    return kind !== 'exist' || this.#visibleAt(path, zxid) !== undefined
  }

  /** Returns the state of a node that the session may read; undefined of another one, and where there is none. */
  #visibleAt(path: string, zxid: number): ReturnType<TreeModel['stateAt']> {
    const state = this.#model.stateAt(path, zxid)
    return state !== undefined && this.#mayRead(state.acl) ? state : undefined
  }

  #next(kind: OneShotWatch, path: string, since: number): PathChange | undefined {
    return this.#model.firstChangeAfter(path, since, (step) => eventOf(kind, step) !== undefined)
  }
}

function concerns(kind: OneShotWatch, type: number): boolean {
  if (kind === 'child') return type === EventType.NodeChildrenChanged || type === EventType.NodeDeleted
  return type !== EventType.NodeChildrenChanged
}

/** Returns the event that a change causes for a kind of watch; undefined for none. */
function eventOf(kind: OneShotWatch, { change }: PathChange): number | undefined {
  if (change === 'deleted') return EventType.NodeDeleted
  if (kind === 'child') return change === 'children' ? EventType.NodeChildrenChanged : undefined
  if (change === 'created') return EventType.NodeCreated
  return change === 'data' ? EventType.NodeDataChanged : undefined
}
